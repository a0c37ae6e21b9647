//! Names of repositories and tags.

use std::{fmt, str::FromStr};

const MAX_NAME: usize = 255;
const MAX_TAG: usize = 128;

/// The name of a repository, such as `ocp/release`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepositoryName(String);

/// The name of a tag.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(String);

/// Why a text is no name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// It is no name of a repository.
    #[error(
        "the name of a repository has components of lower-case letters and digits, separated by slashes; inside a component they may be separated by one dot, one or two underscores, or dashes"
    )]
    Repository,
    /// It is no name of a tag.
    #[error(
        "a tag has at most 128 letters, digits, underscores, dots and dashes, and begins with none of the last two"
    )]
    Tag,
}

impl RepositoryName {
    /// The name as a text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Tag {
    /// The name as a text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for RepositoryName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        if text.len() <= MAX_NAME && text.split('/').all(is_component) {
            Ok(Self(text.to_owned()))
        } else {
            Err(NameError::Repository)
        }
    }
}

impl FromStr for Tag {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let fine = text.starts_with(is_word)
            && text.len() <= MAX_TAG
            && text.chars().all(|c| is_word(c) || matches!(c, '.' | '-'));
        if fine {
            Ok(Self(text.to_owned()))
        } else {
            Err(NameError::Tag)
        }
    }
}

/// Whether letters and digits begin and end it, with valid separators between them.
fn is_component(text: &str) -> bool {
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if !text.starts_with(is_word) || !text.ends_with(is_word) {
        return false;
    }
    let separators = text.split(is_word).filter(|part| !part.is_empty());
    for separator in separators {
        let dashes = separator.chars().all(|c| c == '-');
        if !(dashes || matches!(separator, "." | "_" | "__")) {
            return false;
        }
    }
    true
}

impl fmt::Display for RepositoryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_specification() {
        for (name, fine) in [
            ("a", true),
            ("ocp/release", true),
            ("a.b_c__d-e--f/0", true),
            ("", false),
            ("/a", false),
            ("a/", false),
            ("a//b", false),
            ("A", false),
            ("a..b", false),
            ("a___b", false),
            ("a._b", false),
            ("-a", false),
            ("a/../b", false),
            ("ä", false),
        ] {
            assert_eq!(name.parse::<RepositoryName>().is_ok(), fine, "{name}");
        }
        assert!("a".repeat(255).parse::<RepositoryName>().is_ok());
        assert!("a".repeat(256).parse::<RepositoryName>().is_err());
        for (tag, fine) in [
            ("latest", true),
            ("4.18.0-0.nightly-2026-01-01-000000", true),
            ("_x", true),
            (".x", false),
            ("-x", false),
            ("", false),
            ("a/b", false),
            ("a:b", false),
        ] {
            assert_eq!(tag.parse::<Tag>().is_ok(), fine, "{tag}");
        }
        assert!("a".repeat(128).parse::<Tag>().is_ok());
        assert!("a".repeat(129).parse::<Tag>().is_err());
    }
}
