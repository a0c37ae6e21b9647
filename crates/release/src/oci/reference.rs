//! Names of images: pull specs.
//!
//! Nothing is added to what the user wrote: [`ImageRef`] prints as it was given, except that a digest hides
//! a tag. Only [`ImageRef::endpoint`] knows the conventions of Docker Hub.

use std::{fmt, str::FromStr, sync::LazyLock};

use regex::Regex;
use serde::{Deserialize, Serialize};

use super::digest::{self, Digest};

/// The longest repository name that registries take.
const MAX_REPOSITORY: usize = 255;

static COMPONENT: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$"));
static TAG: LazyLock<Regex> = LazyLock::new(|| pattern(r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$"));
static HOST: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"^(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(?::[0-9]{1,5})?$")
});

fn pattern(text: &str) -> Regex {
    Regex::new(text).unwrap_or_else(|error| unreachable!("{error}"))
}

/// Why a text is not the name of an image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not the name of an image: {reason}")]
pub struct InvalidRef {
    /// The text.
    pub text: String,
    /// What is wrong with it.
    pub reason: String,
}

/// `[registry/][namespace/]name[:tag][@digest]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ImageRef {
    registry: String,
    repository: String,
    tag: Option<String>,
    digest: Option<String>,
}

/// Where a repository is reached.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// Host, and port if there is one.
    pub host: String,
    /// The repository as the registry knows it.
    pub repository: String,
}

impl ImageRef {
    /// The registry; empty if none was given.
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// The repository inside the registry.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// The registry and the repository.
    pub fn name(&self) -> String {
        if self.registry.is_empty() {
            self.repository.clone()
        } else {
            format!("{}/{}", self.registry, self.repository)
        }
    }

    /// The tag.
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// The digest.
    pub fn digest(&self) -> Option<Digest> {
        digest::parse(self.digest.as_deref()?).ok()
    }

    /// The text of the digest.
    pub fn digest_text(&self) -> Option<&str> {
        self.digest.as_deref()
    }

    /// Whether it is a repository without tag and digest.
    pub fn is_bare(&self) -> bool {
        self.tag.is_none() && self.digest.is_none()
    }

    /// What a registry is asked for: the digest, or the tag, or `latest`.
    pub fn selector(&self) -> &str {
        let given = self.digest.as_deref().or(self.tag.as_deref());
        given.unwrap_or("latest")
    }

    /// The same repository, by this digest and without a tag.
    pub fn at_digest(&self, digest: &Digest) -> Self {
        Self {
            tag: None,
            digest: Some(digest.to_string()),
            ..self.clone()
        }
    }

    /// The same repository with this tag.
    pub fn with_tag(&self, tag: &str) -> Result<Self, InvalidRef> {
        if !TAG.is_match(tag) {
            return Err(invalid(
                &format!("{}:{tag}", self.name()),
                "the tag may have up to 128 letters, digits, _, . and -",
            ));
        }
        Ok(Self {
            tag: Some(tag.to_owned()),
            digest: None,
            ..self.clone()
        })
    }

    /// The repository alone.
    pub fn bare(&self) -> Self {
        Self {
            tag: None,
            digest: None,
            ..self.clone()
        }
    }

    /// Where the repository is reached. Names without a registry, and names at docker.io, are Docker Hub's.
    pub fn endpoint(&self) -> Endpoint {
        let hub = matches!(self.registry.as_str(), "" | "docker.io" | "index.docker.io");
        let repository = if hub && !self.repository.contains('/') {
            format!("library/{}", self.repository)
        } else {
            self.repository.clone()
        };
        let host = if hub {
            "registry-1.docker.io"
        } else {
            &self.registry
        };
        let host = host.to_owned();
        Endpoint { host, repository }
    }
}

/// Whether `text` may be a tag.
pub fn is_tag(text: &str) -> bool {
    TAG.is_match(text)
}

impl FromStr for ImageRef {
    type Err = InvalidRef;

    fn from_str(text: &str) -> Result<Self, InvalidRef> {
        let refuse = |reason: &str| invalid(text, reason);
        let (rest, digest) = match text.split_once('@') {
            Some((rest, found)) => {
                let digest = digest::parse(found).map_err(|error| refuse(&error.to_string()))?;
                (rest, Some(digest.to_string()))
            }
            None => (text, None),
        };
        // A colon after the last slash starts a tag; one before it belongs to the port of the registry.
        let start = rest.rfind('/').map_or(0, |at| at + 1);
        let (name, tag) = match rest[start..].find(':') {
            Some(at) => (&rest[..start + at], Some(&rest[start + at + 1..])),
            None => (rest, None),
        };
        if tag.is_some_and(|tag| !TAG.is_match(tag)) {
            return Err(refuse(
                "the tag may have up to 128 letters, digits, _, . and -",
            ));
        }
        let (registry, repository) = split(name);
        if !registry.is_empty() && !HOST.is_match(registry) {
            return Err(refuse(
                "the registry is not a host name with an optional port",
            ));
        }
        if repository.is_empty() || repository.len() > MAX_REPOSITORY {
            return Err(refuse("the repository must have 1 to 255 characters"));
        }
        if let Some(wrong) = repository.split('/').find(|part| !COMPONENT.is_match(part)) {
            return Err(refuse(&format!(
                "{wrong:?} must be lowercase letters and digits, with single separators between them"
            )));
        }
        Ok(Self {
            registry: registry.to_owned(),
            repository: repository.to_owned(),
            tag: tag.map(str::to_owned),
            digest,
        })
    }
}

/// The registry and the repository: the first part is a registry if it looks like a host.
fn split(name: &str) -> (&str, &str) {
    match name.split_once('/') {
        Some((first, rest)) if first.contains(['.', ':', '[']) || first == "localhost" => {
            (first, rest)
        }
        _ => ("", name),
    }
}

fn invalid(text: &str, reason: &str) -> InvalidRef {
    let mut text = text.to_owned();
    if text.len() > 2 * MAX_REPOSITORY {
        let end = text.floor_char_boundary(2 * MAX_REPOSITORY);
        text.truncate(end);
        text.push('…');
    }
    InvalidRef {
        text,
        reason: reason.to_owned(),
    }
}

impl fmt::Display for ImageRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())?;
        match (&self.digest, &self.tag) {
            (Some(digest), _) => write!(f, "@{digest}"),
            (None, Some(tag)) => write!(f, ":{tag}"),
            (None, None) => Ok(()),
        }
    }
}

impl Serialize for ImageRef {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ImageRef {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const D: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn parts(text: &str) -> (String, String, Option<String>, bool) {
        let found: ImageRef = text.parse().unwrap();
        let tag = found.tag().map(str::to_owned);
        (
            found.registry().to_owned(),
            found.repository().to_owned(),
            tag,
            found.digest().is_some(),
        )
    }

    #[test]
    fn names_have_up_to_four_parts() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            parts("reg.example:5000/ocp/cli:4.99"),
            (
                "reg.example:5000".into(),
                "ocp/cli".into(),
                some("4.99"),
                false
            )
        );
        assert_eq!(
            parts("localhost/cli"),
            ("localhost".into(), "cli".into(), None, false)
        );
        assert_eq!(
            parts("ocp/cli:v1"),
            (String::new(), "ocp/cli".into(), some("v1"), false)
        );
        assert_eq!(
            parts(&format!("[::1]:5000/a/b:t@{D}")),
            ("[::1]:5000".into(), "a/b".into(), some("t"), true)
        );
    }

    #[test]
    fn a_name_prints_as_given_and_a_digest_hides_the_tag() {
        for text in ["cli", "ocp/cli:4.99", "reg.example/ocp/cli"] {
            assert_eq!(text.parse::<ImageRef>().unwrap().to_string(), text);
        }
        let both: ImageRef = format!("reg.example/cli:t@{D}").parse().unwrap();
        assert_eq!(both.to_string(), format!("reg.example/cli@{D}"));
    }

    #[test]
    fn names_without_a_registry_are_docker_hubs() {
        let endpoint = |text: &str| {
            let endpoint = text.parse::<ImageRef>().unwrap().endpoint();
            (endpoint.host, endpoint.repository)
        };
        assert_eq!(
            endpoint("cli"),
            ("registry-1.docker.io".into(), "library/cli".into())
        );
        assert_eq!(
            endpoint("docker.io/a/b"),
            ("registry-1.docker.io".into(), "a/b".into())
        );
        assert_eq!(
            endpoint("localhost:5000/b"),
            ("localhost:5000".into(), "b".into())
        );
    }

    #[test]
    fn what_is_no_name_is_refused_with_the_reason() {
        for text in [
            "",
            ":",
            "/",
            "a//b",
            "a/",
            "UPPER/case",
            "a:",
            "a:b c",
            "a@sha256:short",
            "reg.example/",
            "a/../b",
            "http://reg.example/a",
            "a:b:c",
            "a..b",
            "-a",
            "-host.example/a",
        ] {
            let error = text.parse::<ImageRef>().unwrap_err();
            assert!(
                !error.reason.is_empty() && error.to_string().contains("name of an image"),
                "{error}"
            );
        }
        assert!(
            "a".repeat(100_000)
                .parse::<ImageRef>()
                .unwrap_err()
                .to_string()
                .len()
                < 1000
        );
    }
}
