//! Changelogs of repositories that the tests make with `git`; no network is there.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use super::*;
use crate::payload_image::{
    info::tests::payload,
    labels::{COMMIT_ID, SOURCE_LOCATION, VERSIONS},
    source::Source,
};

const SOURCE: &str = "https://github.com/example/project";

/// A bare clone below a folder, as it is found there.
struct Repository<'a> {
    root: &'a Path,
    source: Source,
    number: u32,
}

impl<'a> Repository<'a> {
    fn new(root: &'a Path, location: &str) -> Self {
        let repository = Self {
            root,
            source: Source::parse(location).unwrap(),
            number: 0,
        };
        fs::create_dir_all(repository.source.folder(root)).unwrap();
        repository.git(&["init", "--quiet", "--bare", "--initial-branch=main"]);
        repository
    }

    fn git(&self, arguments: &[&str]) -> String {
        let time = format!("{} +0000", 1_767_000_000 + self.number);
        let output = Command::new("git")
            .arg("-C")
            .arg(self.source.folder(self.root))
            .args(["-c", "user.name=Dev", "-c", "user.email=dev@example.com"])
            .args(arguments)
            .env("GIT_AUTHOR_DATE", &time)
            .env("GIT_COMMITTER_DATE", &time)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// A commit that changes no file; its id.
    fn commit(&mut self, message: &str, parents: &[&str]) -> String {
        self.number += 1;
        let tree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
        self.git(&["hash-object", "-w", "-t", "tree", "/dev/null"]);
        let mut arguments = vec!["commit-tree", tree, "-m", message];
        for parent in parents {
            arguments.extend(["-p", parent]);
        }
        let id = self.git(&arguments);
        self.git(&["update-ref", "refs/heads/main", &id]);
        id
    }
}

fn built_from<'a>(location: &'a str, commit: &'a str) -> [(&'a str, &'a str); 2] {
    [(SOURCE_LOCATION, location), (COMMIT_ID, commit)]
}

/// Two payloads, of which the second has a component less, two more, and two that were built from `new`.
fn compared(
    old: &[(&str, &str)],
    new: &[(&str, &str)],
    versions: &[(&str, &str)],
) -> (Payload, Payload) {
    let from = payload(
        "4.98.7",
        &[
            ("a", "1", old),
            ("b", "2", old),
            ("gone", "3", &[]),
            ("same", "4", old),
        ],
    );
    let to = payload(
        "4.99.0",
        &[
            ("a", "1x", new),
            ("b", "2x", new),
            ("new", "5", new),
            ("rebuilt", "6", versions),
            ("same", "4", old),
        ],
    );
    (from, to)
}

#[test]
fn merges_are_listed_with_their_issues_and_other_commits_counted() {
    let root = tempfile::tempdir().unwrap();
    let mut repository = Repository::new(root.path(), SOURCE);
    let first = repository.commit("first", &[]);
    let branch = repository.commit("on the branch, which is not listed", &[&first]);
    let merge =
        "Merge pull request #7 from dev/branch\n\n[main] OCPBUGS-12, API-3: use <less> memory";
    let merged = repository.commit(merge, &[&first, &branch]);
    let direct = repository.commit("pushed without a review", &[&merged]);
    let merge = "Merge pull request #8 from dev/other\n\nBug 123: fix";
    let last = repository.commit(merge, &[&direct, &branch]);

    let (old, new) = (built_from(SOURCE, &first), built_from(SOURCE, &last));
    let versions = [(VERSIONS, "kubernetes=1.34.1")];
    let (from, to) = compared(&old, &new, &versions);
    let copies = WorkingCopies::open(root.path()).unwrap();
    let (changelog, problems) = changelog(&from, &to, &copies).unwrap();
    assert_eq!(problems, [""; 0]);
    let text = changelog.to_markdown();
    let link = |path: &str| format!("{SOURCE}/{path}");
    for line in [
        "# 4.99.0".to_owned(),
        "## Changes from 4.98.7".to_owned(),
        "Created: 2026-01-02 03:05:10 +0000 UTC".to_owned(),
        "* Kubernetes 1.34.1".to_owned(),
        "* gone".to_owned(),
        format!("### [a, b]({})", link(&format!("tree/{last}"))),
        format!(
            "* [Bug 123](https://bugzilla.redhat.com/show_bug.cgi?id=123): fix [#8]({})",
            link("pull/8")
        ),
        format!(
            "* [API-3](https://issues.redhat.com/browse/API-3), [OCPBUGS-12](https://issues.redhat.com/browse/OCPBUGS-12): \
             use &lt;less&gt; memory [#7]({})",
            link("pull/7")
        ),
        "* And 1 elided commits (e.g. from squash or rebase merges)".to_owned(),
        format!(
            "* [Full changelog]({})",
            link(&format!("compare/{first}...{last}"))
        ),
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    assert!(!text.contains("on the branch"), "{text}");
    let ids: Vec<_> = changelog
        .bugs()
        .into_iter()
        .map(|bug| (bug.id, bug.source))
        .collect();
    assert_eq!(ids, [("123".to_owned(), 0), ("OCPBUGS-12".to_owned(), 1)]);
    let json: serde_json::Value = serde_json::from_str(&changelog.to_json().unwrap()).unwrap();
    assert_json(&json, &merged, &link(&format!("commit/{last}")));
}

fn assert_json(json: &serde_json::Value, merged: &str, newest: &str) {
    let updated = &json["updatedImages"][0];
    assert_eq!(
        (&updated["name"], &updated["elidedCommits"]),
        (&"a, b".into(), &1.into())
    );
    let commit = &updated["commits"][1];
    assert_eq!(
        (&commit["pullID"], &commit["subject"]),
        (&7.into(), &"use <less> memory".into())
    );
    assert_eq!(commit["commitID"], merged);
    assert_eq!(json["newImages"][0]["commit"], newest);
    assert_eq!(json["removedImages"][0]["name"], "gone");
}

#[test]
fn without_merges_the_numbers_are_in_the_subjects() {
    let root = tempfile::tempdir().unwrap();
    let location = "git@git.example.com:team/project.git";
    let mut repository = Repository::new(root.path(), location);
    let first = repository.commit("first", &[]);
    let squashed = repository.commit("API-1: fix (#5)\n\nbody", &[&first]);
    let last = repository.commit("no number", &[&squashed]);
    let (old, new) = (built_from(location, &first), built_from(location, &last));
    let (from, to) = (
        payload("4.98.7", &[("a", "1", &old)]),
        payload("4.99.0", &[("a", "2", &new)]),
    );
    let copies = WorkingCopies::open(root.path()).unwrap();
    let (changelog, problems) = changelog(&from, &to, &copies).unwrap();
    assert_eq!(problems, [""; 0]);
    let updated = &changelog.updated_images[0];
    assert_eq!((updated.commits.len(), updated.elided_commits), (1, 1));
    assert_eq!(
        updated.commits[0].pull_url,
        "https://git.example.com/team/project/pull/5"
    );
    let text = changelog.to_markdown();
    let range = format!(
        "* {location} from {} to {}",
        source::short(&first),
        source::short(&last)
    );
    assert!(text.contains(&range) && text.contains("### a\n"), "{text}");
    assert_eq!(changelog.bugs(), []);
}

#[test]
fn a_repository_that_cannot_be_read_is_named_and_the_rest_is_there() {
    let root = tempfile::tempdir().unwrap();
    let mut repository = Repository::new(root.path(), SOURCE);
    let first = repository.commit("first", &[]);
    let last = repository.commit("fix (#1)", &[&first]);
    // The remote of this one is nowhere, and the commit is not in the copy.
    let broken = "https://invalid.invalid/team/other";
    let mut other = Repository::new(root.path(), broken);
    let there = other.commit("first", &[]);
    let absent = "0123456789abcdef0123456789abcdef01234567";
    let tags = |one, two| (built_from(SOURCE, one), built_from(broken, two));
    let (old, old_broken) = tags(first.as_str(), there.as_str());
    let (new, new_broken) = tags(last.as_str(), absent);
    let evil = [
        (SOURCE_LOCATION, "--upload-pack=touch x:y"),
        (COMMIT_ID, "0123456"),
    ];
    let from = payload(
        "4.98.7",
        &[("a", "1", &old), ("b", "2", &old_broken), ("c", "3", &[])],
    );
    let to = payload(
        "4.99.0",
        &[
            ("a", "1x", &new),
            ("b", "2x", &new_broken),
            ("c", "3x", &evil),
        ],
    );
    let copies = WorkingCopies::open(root.path()).unwrap();
    let (changelog, problems) = changelog(&from, &to, &copies).unwrap();
    assert_eq!(problems.len(), 1);
    assert!(
        problems[0].starts_with("Could not load commits for https://invalid.invalid/team/other: "),
        "{problems:?}"
    );
    assert_eq!(changelog.updated_images.len(), 1);
    assert_eq!(
        changelog.rebuilt_images[0].name, "c",
        "what is no source is not asked"
    );
}

#[test]
fn a_payload_has_no_changelog_from_itself() {
    let root = tempfile::tempdir().unwrap();
    let copies = WorkingCopies::open(root.path()).unwrap();
    let one = payload("4.99.0", &[]);
    assert_eq!(changelog(&one, &one, &copies).unwrap_err(), SamePayload);
}

#[test]
fn a_source_is_checked_out_beside_its_copy_and_a_commit_that_is_absent_refused() {
    let root = tempfile::tempdir().unwrap();
    let mut repository = Repository::new(root.path(), SOURCE);
    let first = repository.commit("first", &[]);
    let copies = WorkingCopies::open(root.path()).unwrap();
    let folder = copies.check_out(&repository.source, &first).unwrap();
    assert_eq!(
        folder,
        root.path()
            .join(format!("github.com/example/project@{first}"))
    );
    assert!(folder.join(".git").exists());
    assert_eq!(
        copies.check_out(&repository.source, &first).unwrap(),
        folder,
        "once is enough"
    );
    assert!(copies.verify(&repository.source, &first).is_ok());
}
