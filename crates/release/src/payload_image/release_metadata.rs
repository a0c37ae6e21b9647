//! `release-metadata`: the version of a payload, and the versions that may be upgraded to it.

use semver::Version;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::go_json;

/// The name of the file.
pub const FILE: &str = "release-metadata";
/// The kind of the document.
pub const KIND: &str = "cincinnati-metadata-v0";

/// Why a document is no metadata of a release.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be parsed.
    #[error("release-metadata cannot be read")]
    Unreadable(#[source] serde_json::Error),
    /// It is another kind.
    #[error("release-metadata has kind {0:?}, and must have {KIND}")]
    Kind(String),
    /// A version is not semantic.
    #[error("{field} has {text:?}, which is not a semantic version such as 4.99.0-ci.7")]
    Version {
        /// The field or flag.
        field: &'static str,
        /// The text.
        text: String,
    },
}

/// The metadata of a release.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReleaseMetadata {
    /// [`KIND`].
    pub kind: String,
    /// The version.
    #[serde(default)]
    pub version: String,
    /// The versions that may be upgraded to this one.
    #[serde(default, deserialize_with = "null_is_default")]
    pub previous: Vec<String>,
    /// The versions that this one may be upgraded to.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub next: Vec<String>,
    /// Anything else, such as `url`.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "Map::is_empty"
    )]
    pub metadata: Map<String, Value>,
}

impl ReleaseMetadata {
    /// Metadata of this version.
    pub fn new(
        version: &str,
        previous: &[String],
        next: &[String],
        metadata: Map<String, Value>,
    ) -> Result<Self, Error> {
        semantic("--name", version)?;
        Ok(Self {
            kind: KIND.to_owned(),
            version: version.to_owned(),
            previous: sorted("--previous", previous)?,
            next: sorted("--next", next)?,
            metadata,
        })
    }

    /// Reads the file.
    pub fn read(content: &[u8]) -> Result<Self, Error> {
        let found: Self = serde_json::from_slice(content).map_err(Error::Unreadable)?;
        if found.kind != KIND {
            return Err(Error::Kind(found.kind));
        }
        Ok(found)
    }

    /// The bytes of the file.
    pub fn to_bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        go_json::to_vec(self)
    }
}

/// Checks that `text` is a semantic version.
pub fn semantic(field: &'static str, text: &str) -> Result<Version, Error> {
    Version::parse(text).map_err(|_| Error::Version {
        field,
        text: text.to_owned(),
    })
}

/// By version and not by bytes, so that 4.9.1 precedes 4.10.2; each once.
fn sorted(field: &'static str, versions: &[String]) -> Result<Vec<String>, Error> {
    let given = versions.iter().map(|text| text.trim());
    let given = given.filter(|text| !text.is_empty());
    let parsed = given.map(|text| Ok((semantic(field, text)?, text.to_owned())));
    let mut parsed = parsed.collect::<Result<Vec<_>, Error>>()?;
    parsed.sort();
    parsed.dedup();
    Ok(parsed.into_iter().map(|(_, text)| text).collect())
}

fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(list: &[&str]) -> Vec<String> {
        list.iter().map(|&text| text.to_owned()).collect()
    }

    #[test]
    fn versions_are_sorted_as_versions() {
        let previous = texts(&["4.10.2", "", "4.9.1", "4.9.1", " 4.9.0-rc.1 "]);
        let found = ReleaseMetadata::new("4.11.0", &previous, &[], Map::new()).unwrap();
        assert_eq!(found.previous, ["4.9.0-rc.1", "4.9.1", "4.10.2"]);
        let text = String::from_utf8(found.to_bytes().unwrap()).unwrap();
        assert!(text.starts_with("{\n  \"kind\": \"cincinnati-metadata-v0\",\n  \"version\": \"4.11.0\",\n  \"previous\": ["), "{text}");
        assert!(
            !text.contains("next") && !text.contains("metadata\":"),
            "{text}"
        );
    }

    #[test]
    fn what_is_no_version_is_refused_with_its_flag() {
        let error = ReleaseMetadata::new("4.11", &[], &[], Map::new()).unwrap_err();
        assert!(error.to_string().contains("--name"), "{error}");
        let error = ReleaseMetadata::new("4.11.0", &texts(&["v4"]), &[], Map::new()).unwrap_err();
        assert!(
            error.to_string().contains("--previous") && error.to_string().contains("v4"),
            "{error}"
        );
        assert!(matches!(
            ReleaseMetadata::read(br#"{"kind": "x"}"#),
            Err(Error::Kind(_))
        ));
        assert!(ReleaseMetadata::read(b"[").is_err());
    }

    #[test]
    fn null_lists_are_read() {
        let found = ReleaseMetadata::read(br#"{"kind":"cincinnati-metadata-v0","version":"1.0.0","previous":null,"metadata":null}"#);
        assert!(found.unwrap().previous.is_empty());
    }
}
