//! Manifests as they are pushed: pure.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::{
    digest::Digest,
    error::{ErrorCode, RegistryError},
    index::{ManifestRecord, Repository},
};

pub(super) const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub(super) const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
/// Images with these layers name them for other places to fetch from.
const FOREIGN_LAYERS: [&str; 2] = ["nondistributable", "foreign"];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    schema_version: u64,
    media_type: Option<String>,
    artifact_type: Option<String>,
    config: Option<Descriptor>,
    #[serde(default)]
    layers: Vec<Descriptor>,
    #[serde(default)]
    manifests: Vec<Descriptor>,
    subject: Option<Descriptor>,
    #[serde(default)]
    annotations: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    media_type: String,
    digest: String,
    #[serde(default)]
    size: u64,
}

/// What was read from a manifest.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) record: ManifestRecord,
    /// The blobs that have to be in the repository.
    pub(super) blobs: Vec<Digest>,
    /// The manifests that have to be in the repository.
    pub(super) manifests: Vec<Digest>,
    pub(super) subject: Option<Digest>,
}

fn invalid(message: impl Into<String>) -> RegistryError {
    RegistryError::new(ErrorCode::ManifestInvalid, message)
}

/// Reads a manifest that is pushed with this Content-Type.
pub(super) fn parse(content: &[u8], content_type: Option<&str>) -> Result<Parsed, RegistryError> {
    let document: Document = serde_json::from_slice(content)
        .map_err(|error| invalid(format!("the manifest cannot be parsed: {error}")))?;
    if document.schema_version != 2 {
        return Err(invalid("only manifests with schemaVersion 2 are accepted"));
    }
    let content_type = content_type.map(|text| text.split(';').next().unwrap_or(text).trim());
    if let (Some(inside), Some(outside)) = (&document.media_type, content_type)
        && inside != outside
    {
        return Err(invalid(format!(
            "the Content-Type is {outside:?} and the mediaType of the manifest is {inside:?}"
        )));
    }
    let media_type = document.media_type.as_deref().or(content_type);
    let media_type = media_type.ok_or_else(|| invalid("there is no Content-Type"))?;
    let is_index = match media_type {
        OCI_INDEX | DOCKER_LIST => true,
        OCI_MANIFEST | DOCKER_MANIFEST => false,
        other => return Err(invalid(format!("{other:?} is not the type of a manifest"))),
    };
    if is_index && (document.config.is_some() || !document.layers.is_empty()) {
        return Err(invalid(
            "an index has manifests, and neither config nor layers",
        ));
    }
    if !is_index && document.config.is_none() {
        return Err(invalid("an image has a config"));
    }
    let media_type = media_type.to_owned();
    record(document, media_type, content.len())
}

fn record(document: Document, media_type: String, size: usize) -> Result<Parsed, RegistryError> {
    let digests = |descriptors: &[Descriptor]| -> Result<Vec<Digest>, RegistryError> {
        let local = descriptors.iter().filter(|it| !is_foreign(it));
        local.map(digest_of).collect()
    };
    let mut blobs = digests(&document.layers)?;
    if let Some(config) = &document.config {
        blobs.push(digest_of(config)?);
    }
    let manifests = digests(&document.manifests)?;
    let subject = document.subject.as_ref().map(digest_of).transpose()?;
    let config_type = document.config.map(|config| config.media_type);
    let named = blobs.iter().chain(&manifests);
    let record = ManifestRecord {
        media_type,
        size: size as u64,
        references: named.map(ToString::to_string).collect(),
        subject: subject.as_ref().map(ToString::to_string),
        artifact_type: document.artifact_type.or(config_type),
        annotations: document.annotations,
    };
    Ok(Parsed {
        record,
        blobs,
        manifests,
        subject,
    })
}

fn is_foreign(descriptor: &Descriptor) -> bool {
    FOREIGN_LAYERS
        .iter()
        .any(|word| descriptor.media_type.contains(word))
}

fn digest_of(descriptor: &Descriptor) -> Result<Digest, RegistryError> {
    if descriptor.size > i64::MAX as u64 {
        return Err(invalid("the size of a descriptor is too large"));
    }
    let digest = descriptor.digest.parse();
    digest.map_err(|error: super::DigestError| {
        invalid(error.to_string()).about("digest", &descriptor.digest)
    })
}

impl Parsed {
    /// The first thing that it names and that is not in the repository.
    pub(super) fn check(&self, repository: Option<&Repository>) -> Result<(), RegistryError> {
        let has_blob = |digest: &&Digest| {
            repository.is_some_and(|repository| repository.blobs.contains(*digest))
        };
        let has_manifest = |digest: &&Digest| {
            repository.is_some_and(|repository| repository.manifests.contains_key(*digest))
        };
        let missing = self.blobs.iter().find(|digest| !has_blob(digest));
        let missing = missing.or_else(|| self.manifests.iter().find(|it| !has_manifest(it)));
        match missing {
            None => Ok(()),
            Some(digest) => Err(RegistryError::new(
                ErrorCode::ManifestBlobUnknown,
                "the manifest names a blob or manifest that is not in the repository",
            )
            .about("digest", digest)),
        }
    }
}
