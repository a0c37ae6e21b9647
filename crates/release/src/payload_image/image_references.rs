//! `image-references`: the list of a payload's images, and of the images that a component's manifests name.
//!
//! It is an ImageStream of a fixed form: the order of its fields and its null and empty values are those that
//! other readers and digests expect, which is why these are not the types of the API.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};

use super::go_json;
use crate::image_stream::api::{ImageSource, ImportPolicy, ReferencePolicy};

/// The name of the file.
pub const FILE: &str = "image-references";
/// Where the images came from: `NAMESPACE/NAME`.
pub const FROM_IMAGE_STREAM: &str = "release.openshift.io/from-image-stream";
/// The payload that this one was made from.
pub const FROM_RELEASE: &str = "release.openshift.io/from-release";
/// The annotation of tags that the user replaced.
pub const OVERRIDE: &str = "io.openshift.release.override";

const KIND: &str = "ImageStream";
const API_VERSION: &str = "image.openshift.io/v1";

/// Why a file is no list of images.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be parsed.
    #[error("image-references cannot be read: {0}")]
    Unreadable(String),
    /// It is another kind of object.
    #[error("image-references is {found}, and must be {API_VERSION} {KIND}")]
    Kind {
        /// What it is.
        found: String,
    },
}

/// The list of a payload's images.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageReferences {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    api_version: String,
    /// Name, creation and annotations.
    #[serde(default)]
    pub metadata: Metadata,
    /// The images.
    #[serde(default)]
    pub spec: Spec,
    #[serde(default)]
    status: Status,
}

/// Metadata in the order in which Go writes it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// The name of the release.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Of a source object; kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Of a source object; kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Of a source object; kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
    /// Of a source object; kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// When the release was created; `null` where it is not known.
    #[serde(default, serialize_with = "whole_seconds")]
    pub creation_timestamp: Option<Timestamp>,
    /// Of a source object; kept.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub labels: BTreeMap<String, String>,
    /// Where it came from.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub annotations: BTreeMap<String, String>,
}

/// The images.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    #[serde(default)]
    lookup_policy: LookupPolicy,
    /// The images, by name.
    #[serde(default, deserialize_with = "null_is_default")]
    pub tags: Vec<Tag>,
}

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
struct LookupPolicy {
    #[serde(default)]
    local: bool,
}

/// An image.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tag {
    /// The name of the component.
    pub name: String,
    /// What is known of the image.
    #[serde(default, deserialize_with = "null_is_default")]
    pub annotations: BTreeMap<String, String>,
    /// The image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<ImageSource>,
    /// Kept from the source.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reference: bool,
    /// Kept from the source.
    #[serde(default)]
    pub generation: Option<i64>,
    /// Kept from the source.
    #[serde(default, deserialize_with = "null_is_default")]
    pub import_policy: ImportPolicy,
    /// Kept from the source.
    #[serde(default, deserialize_with = "null_is_default")]
    pub reference_policy: ReferencePolicy,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    #[serde(default)]
    docker_image_repository: String,
}

impl Tag {
    /// The pull spec, if it is an image in a registry.
    pub fn pull_spec(&self) -> Option<&str> {
        let from = self.from.as_ref()?;
        (from.kind == crate::image_stream::api::DOCKER_IMAGE).then_some(&from.name)
    }

    /// An annotation; empty if there is none.
    pub fn annotation(&self, name: &str) -> &str {
        self.annotations.get(name).map_or("", String::as_str)
    }
}

impl ImageReferences {
    /// A list of these images, sorted by name.
    pub fn new(metadata: Metadata, mut tags: Vec<Tag>) -> Self {
        tags.sort_by(|one, other| one.name.cmp(&other.name));
        Self {
            kind: KIND.to_owned(),
            api_version: API_VERSION.to_owned(),
            metadata,
            spec: Spec {
                lookup_policy: LookupPolicy::default(),
                tags,
            },
            status: Status::default(),
        }
    }

    /// Reads the file, which is JSON or YAML.
    pub fn read(content: &[u8]) -> Result<Self, Error> {
        let text =
            std::str::from_utf8(content).map_err(|error| Error::Unreadable(error.to_string()))?;
        let found: Self = if text.trim_start().starts_with('{') {
            serde_json::from_str(text).map_err(|error| Error::Unreadable(error.to_string()))?
        } else {
            serde_saphyr::from_str(text).map_err(|error| Error::Unreadable(error.to_string()))?
        };
        if found.kind != KIND || found.api_version != API_VERSION {
            let found = format!("{:?} {:?}", found.api_version, found.kind);
            return Err(Error::Kind { found });
        }
        Ok(found)
    }

    /// The bytes of the file.
    pub fn to_bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        go_json::to_vec(self)
    }

    /// An image by the name of its component.
    pub fn tag(&self, name: &str) -> Option<&Tag> {
        self.spec.tags.iter().find(|tag| tag.name == name)
    }
}

fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[expect(clippy::ref_option, reason = "serde calls it with a reference")]
fn whole_seconds<S: serde::Serializer>(
    time: &Option<Timestamp>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => serializer.collect_str(&truncated(*time)),
        None => serializer.serialize_none(),
    }
}

/// Without fractions of a second.
pub fn truncated(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_and_yaml_are_read_and_other_kinds_refused() {
        let yaml = b"kind: ImageStream\napiVersion: image.openshift.io/v1\nspec:\n  tags:\n  - name: cli\n    from: {kind: DockerImage, name: quay.io/ex/cli}\n";
        let found = ImageReferences::read(yaml).unwrap();
        assert_eq!(
            found.tag("cli").unwrap().pull_spec(),
            Some("quay.io/ex/cli")
        );
        let again = ImageReferences::read(&found.to_bytes().unwrap()).unwrap();
        assert_eq!(again, found);
        for text in ["kind: List\napiVersion: v1\n", "a: [", "\u{0}", "{}"] {
            assert!(ImageReferences::read(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn absent_values_are_written_as_other_readers_expect() {
        let tag = Tag {
            name: "cli".to_owned(),
            from: Some(ImageSource::image("reg.example/cli")),
            ..Tag::default()
        };
        let metadata = Metadata {
            name: "4.99.0".to_owned(),
            creation_timestamp: Some("2026-01-02T03:05:10.75Z".parse().unwrap()),
            ..Metadata::default()
        };
        let bytes = ImageReferences::new(metadata, vec![tag])
            .to_bytes()
            .unwrap();
        let expected = r#"{
  "kind": "ImageStream",
  "apiVersion": "image.openshift.io/v1",
  "metadata": {
    "name": "4.99.0",
    "creationTimestamp": "2026-01-02T03:05:10Z"
  },
  "spec": {
    "lookupPolicy": {
      "local": false
    },
    "tags": [
      {
        "name": "cli",
        "annotations": {},
        "from": {
          "kind": "DockerImage",
          "name": "reg.example/cli"
        },
        "generation": null,
        "importPolicy": {},
        "referencePolicy": {
          "type": ""
        }
      }
    ]
  },
  "status": {
    "dockerImageRepository": ""
  }
}"#;
        assert_eq!(String::from_utf8(bytes).unwrap(), expected);
    }
}
