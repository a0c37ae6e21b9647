//! A folder with working copies of source repositories, read with the program `git`.
//!
//! What is there already is used as it is: a repository is fetched only if a commit that is needed is absent, so
//! a folder of clones works without a network.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::source::Source;
use crate::oci::digest;

/// The most commits that are read between two releases.
const MAX_COMMITS: usize = 20_000;
/// The end of a commit in the output of `git log`; messages cannot contain it.
const END: char = '\u{1e}';

/// Why the commits of a repository are not known.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The folder.
    #[error("{folder} cannot be used")]
    Folder {
        /// The folder.
        folder: String,
        /// Why.
        source: io::Error,
    },
    /// The program cannot be run.
    #[error("git cannot be run")]
    NotRun(#[source] io::Error),
    /// The program failed.
    #[error("git {command} failed: {reason}")]
    Failed {
        /// What it was to do.
        command: String,
        /// What it said.
        reason: String,
    },
    /// A commit is not in the repository.
    #[error("{location} has no commit {commit}")]
    Absent {
        /// The repository.
        location: String,
        /// The commit.
        commit: String,
    },
    /// The output is not understood.
    #[error("git log printed what is not understood")]
    Output,
}

/// A commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// Its id.
    pub id: String,
    /// How many commits it continues; a merge has several.
    pub parents: usize,
    /// When it was made, by RFC 3339.
    pub date: String,
    /// Its message.
    pub message: String,
}

/// A folder with working copies.
#[derive(Debug)]
pub struct WorkingCopies {
    root: PathBuf,
    /// Locked: two programs that clone into one folder would disturb each other.
    _lock: File,
}

impl WorkingCopies {
    /// The copies in a folder, which is created. Waits while another process uses it.
    pub fn open(root: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Folder {
            folder: root.display().to_string(),
            source,
        };
        fs::create_dir_all(root).map_err(failed)?;
        let lock = File::create(root.join(".neap.lock")).map_err(failed)?;
        lock.lock().map_err(failed)?;
        Ok(Self {
            root: root.to_owned(),
            _lock: lock,
        })
    }

    /// The commits that are in `to` and not in `from`, in topological order: those on the main line, or all.
    pub fn commits(
        &self,
        old: &Source,
        new: &Source,
        (from, to): (&str, &str),
        main_line: bool,
    ) -> Result<Vec<Commit>, Error> {
        let copy = self.with(&[(old, from), (new, to)])?;
        let (count, range) = (
            format!("--max-count={MAX_COMMITS}"),
            format!("{from}..{to}"),
        );
        let which = if main_line {
            "--first-parent"
        } else {
            "--no-merges"
        };
        let format = "--format=%H%n%P%n%cI%n%B%x1e";
        let log = ["log", "--topo-order", which, &count, format, &range, "--"];
        let text = git(Some(&copy), &log)?;
        let parts = text.split(END).map(str::trim_start);
        let commits = parts.filter(|part| !part.is_empty()).map(parse);
        commits.collect::<Option<_>>().ok_or(Error::Output)
    }

    /// The copy of a repository, with a commit in it.
    pub fn verify(&self, source: &Source, commit: &str) -> Result<PathBuf, Error> {
        self.with(&[(source, commit)])
    }

    /// Checks out a commit beside the copy: `NAME@COMMIT`.
    pub fn check_out(&self, source: &Source, commit: &str) -> Result<PathBuf, Error> {
        let copy = self.with(&[(source, commit)])?;
        let mut folder = copy.clone().into_os_string();
        folder.push(format!("@{commit}"));
        let folder = PathBuf::from(folder);
        if !folder.exists() {
            let path = folder.display().to_string();
            git(Some(&copy), &["worktree", "prune"])?;
            git(Some(&copy), &["worktree", "add", "--detach", &path, commit])?;
        }
        Ok(folder)
    }

    /// The copy that has these commits: it is cloned if it is not there, and fetched if one is absent. The first
    /// repository may have moved; both are remotes of the copy of the last.
    fn with(&self, wanted: &[(&Source, &str)]) -> Result<PathBuf, Error> {
        let Some((newest, _)) = wanted.last() else {
            return Ok(self.root.clone());
        };
        let copy = newest.folder(&self.root);
        if !copy.exists() {
            clone(newest, &copy)?;
        }
        for (source, commit) in wanted {
            if has(&copy, commit) {
                continue;
            }
            let remote = remote(source);
            let known = git(Some(&copy), &["remote"])?;
            if !known.lines().any(|line| line == remote) {
                git(Some(&copy), &["remote", "add", &remote, source.location()])?;
            }
            git(
                Some(&copy),
                &["fetch", "--quiet", "--filter=blob:none", &remote],
            )?;
            if !has(&copy, commit) {
                return Err(Error::Absent {
                    location: source.location().to_owned(),
                    commit: (*commit).to_owned(),
                });
            }
        }
        Ok(copy)
    }
}

/// The first clone is made beside its place: one that broke off is not taken for a copy.
fn clone(source: &Source, copy: &Path) -> Result<(), Error> {
    let failed = |source| Error::Folder {
        folder: copy.display().to_string(),
        source,
    };
    let parent = copy.parent().unwrap_or(copy);
    fs::create_dir_all(parent).map_err(failed)?;
    let partly = tempfile::tempdir_in(parent).map_err(failed)?;
    let (remote, path) = (remote(source), partly.path().join("copy"));
    let place = path.display().to_string();
    let clone = [
        "clone",
        "--quiet",
        "--bare",
        "--filter=blob:none",
        "--origin",
        &remote,
        "--",
    ];
    git(None, &[&clone[..], &[source.location(), &place]].concat())?;
    fs::rename(&path, copy).map_err(failed)
}

/// The name of the remote of a repository.
fn remote(source: &Source) -> String {
    let digest = digest::sha256(source.location().as_bytes());
    format!("up-{}", &digest.digest()[..10])
}

fn has(copy: &Path, commit: &str) -> bool {
    let object = format!("{commit}^{{commit}}");
    // A partial clone must not ask its remote for an object that is absent.
    git_with(
        Some(copy),
        &["cat-file", "-e", &object],
        &[("GIT_NO_LAZY_FETCH", "1")],
    )
    .is_ok()
}

fn parse(text: &str) -> Option<Commit> {
    let mut lines = text.splitn(4, '\n');
    let (id, parents, date) = (lines.next()?, lines.next()?, lines.next()?);
    Some(Commit {
        id: id.to_owned(),
        parents: parents.split_whitespace().count(),
        date: date.to_owned(),
        message: lines.next().unwrap_or_default().trim().to_owned(),
    })
}

fn git(copy: Option<&Path>, arguments: &[&str]) -> Result<String, Error> {
    git_with(copy, arguments, &[])
}

fn git_with(
    copy: Option<&Path>,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Result<String, Error> {
    let mut command = Command::new("git");
    if let Some(copy) = copy {
        command.arg("-C").arg(copy);
        // A folder that is no repository must not be taken for a part of one around it.
        command.env("GIT_CEILING_DIRECTORIES", copy.parent().unwrap_or(copy));
    }
    // Nothing in a repository or in a location runs a program, and nothing waits for a password.
    let settings = [
        "protocol.ext.allow=never",
        "core.fsmonitor=false",
        "core.hooksPath=/dev/null",
    ];
    for setting in settings {
        command.args(["-c", setting]);
    }
    command.args(arguments).stdin(Stdio::null());
    command.env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C");
    command.envs(variables.iter().copied());
    let output = command.output().map_err(Error::NotRun)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let reason = said.lines().rfind(|line| !line.trim().is_empty());
        return Err(Error::Failed {
            command: arguments.first().copied().unwrap_or_default().to_owned(),
            reason: reason.unwrap_or("it said nothing").to_owned(),
        });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
