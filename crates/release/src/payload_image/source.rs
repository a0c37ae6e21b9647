//! Source repositories, as the labels of images name them.
//!
//! Labels are not trusted: a location becomes an argument of a program and part of a path.

use std::path::{Path, PathBuf};

/// A text is no location of a repository.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not the location of a Git repository, such as https://github.com/example/project"
)]
pub struct InvalidSource(pub String);

/// A text is no commit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the id of a commit")]
pub struct InvalidCommit(pub String);

/// The location of a repository.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    location: String,
    host: String,
    path: String,
}

impl Source {
    /// The location in a label: an address, or `user@host:path`.
    pub fn parse(text: &str) -> Result<Self, InvalidSource> {
        let refuse = || InvalidSource(text.to_owned());
        let (host, path) = match text.split_once("://") {
            Some((scheme, rest)) => {
                if !["https", "http", "ssh", "git"].contains(&scheme) {
                    return Err(refuse());
                }
                rest.split_once('/').ok_or_else(refuse)?
            }
            None => text.split_once(':').ok_or_else(refuse)?,
        };
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        let host = host.split(':').next().unwrap_or_default();
        let path = path.trim_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path);
        let is_safe = |part: &str| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "._-~+".contains(c);
            !part.is_empty() && !part.starts_with(['.', '-']) && part.chars().all(plain)
        };
        if text.starts_with('-') || !is_safe(host) || !path.split('/').all(is_safe) {
            return Err(refuse());
        }
        Ok(Self {
            location: text.to_owned(),
            host: host.to_ascii_lowercase(),
            path: path.to_owned(),
        })
    }

    /// The location as the label has it.
    pub fn location(&self) -> &str {
        &self.location
    }

    /// Where people look at it.
    pub fn web(&self) -> String {
        format!("https://{}/{}", self.host, self.path)
    }

    /// Whether it is on github.com, whose links to trees, commits and comparisons are known.
    pub fn is_on_github(&self) -> bool {
        self.host == "github.com"
    }

    /// Its place among working copies.
    pub fn folder(&self, root: &Path) -> PathBuf {
        root.join(&self.host).join(&self.path)
    }
}

/// The id of a commit, if the text is one.
pub fn commit(text: &str) -> Result<&str, InvalidCommit> {
    let is_hash = |text: &str| text.chars().all(|c| c.is_ascii_hexdigit());
    if (7..=64).contains(&text.len()) && is_hash(text) {
        Ok(text)
    } else {
        Err(InvalidCommit(text.to_owned()))
    }
}

/// The first eight digits of a commit.
pub fn short(commit: &str) -> &str {
    commit.get(..8).unwrap_or(commit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_repository_is_known_by_all_its_names() {
        for text in [
            "https://github.com/example/project",
            "https://github.com/example/project.git",
            "https://user@GitHub.com/example/project/",
            "ssh://git@github.com:22/example/project.git",
            "git@github.com:example/project.git",
        ] {
            let source = Source::parse(text).unwrap();
            assert_eq!(source.web(), "https://github.com/example/project", "{text}");
            let folder = source.folder(Path::new("/clones"));
            assert_eq!(folder, Path::new("/clones/github.com/example/project"));
            assert!(source.is_on_github());
            assert_eq!(source.location(), text);
        }
        assert!(
            !Source::parse("https://git.example.com/a/b/c")
                .unwrap()
                .is_on_github()
        );
    }

    #[test]
    fn a_label_that_would_leave_the_folder_or_run_something_is_refused() {
        for text in [
            "",
            "project",
            "https://",
            "https://github.com",
            "https://github.com/",
            "https://github.com/../../etc",
            "https://../a/b",
            "https://github.com/a/./b",
            "https://github.com/a//b",
            "https://github.com/.git/hooks",
            "https://github.com/-a/b",
            "--upload-pack=touch x:a/b",
            "-oProxyCommand=touch@host:a/b",
            "ext::sh -c touch% x",
            "file:///etc",
            "/etc/passwd",
            "https://-oProxyCommand=x/a/b",
            "https://git hub.com/a/b",
            "https://github.com/a/b;c",
            "https://github.com/a/$(b)",
            "https://github.com/a\0/b",
        ] {
            assert!(Source::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_commit_is_a_hash_and_nothing_else() {
        let id = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!(commit(id), Ok(id));
        assert_eq!(short(id), "01234567");
        for text in [
            "",
            "main",
            "012345",
            "--all",
            "0123456789^",
            "HEAD~1",
            "0123456g",
        ] {
            assert!(commit(text).is_err(), "{text:?}");
        }
    }
}
