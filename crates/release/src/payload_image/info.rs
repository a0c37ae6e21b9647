//! What is known of a payload, in the form that other programs read.

#[cfg(test)]
pub(super) mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::{
    go_json,
    image::ImageConfig,
    image_references::{ImageReferences, Tag},
    labels::{self, DISPLAY_NAMES, VERSIONS},
    reader::Payload,
    release_metadata::ReleaseMetadata,
};
use crate::oci::{manifest::Manifest, reference::ImageRef};

/// A payload, in the form of `info -o json`. All fields are always there.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseInfo {
    /// The image as the user named it.
    pub image: String,
    /// The digest of the manifest.
    pub digest: String,
    /// The digest of what was read.
    pub content_digest: String,
    /// The digest of the list, or nothing.
    pub list_digest: String,
    /// The configuration.
    pub config: ImageConfig,
    /// Version and upgrades.
    pub metadata: Option<ReleaseMetadata>,
    /// The images.
    pub references: ImageReferences,
    versions: Option<()>,
    /// Versions of components.
    pub display_versions: Option<BTreeMap<String, DisplayVersion>>,
    /// By version, the component that brings it.
    pub versions_tags: BTreeMap<String, String>,
    /// The images themselves, where they were asked for.
    pub images: Option<BTreeMap<String, ImageInfo>>,
    /// Warnings.
    pub warnings: Option<Vec<String>>,
}

/// The version of a component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct DisplayVersion {
    /// The version.
    pub version: String,
    /// What it is called.
    pub display_name: String,
}

/// An image, in the form of `image info -o json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageInfo {
    /// The pull spec.
    pub name: String,
    /// The digest.
    pub digest: String,
    /// The digest of what was read.
    pub content_digest: String,
    /// The digest of the list, or nothing.
    pub list_digest: String,
    /// The type of the manifest.
    pub media_type: String,
    /// The layers.
    pub layers: Vec<LayerInfo>,
    /// The configuration.
    pub config: ImageConfig,
}

/// A layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LayerInfo {
    /// Its type.
    pub media_type: String,
    /// Its digest.
    pub digest: String,
    /// Its size.
    pub size: u64,
}

impl ImageInfo {
    /// What is known of an image; `list` is the list that it was chosen from.
    pub fn new(
        image: &ImageRef,
        manifest: &Manifest,
        list: Option<&Manifest>,
        config: ImageConfig,
    ) -> Self {
        let layers = manifest
            .image()
            .map(|it| it.layers().as_slice())
            .unwrap_or_default();
        let layers = layers.iter().map(|it| LayerInfo {
            media_type: it.media_type().to_string(),
            digest: it.digest().to_string(),
            size: it.size(),
        });
        Self {
            name: image.to_string(),
            digest: manifest.digest.to_string(),
            content_digest: manifest.digest.to_string(),
            list_digest: list.map(|list| list.digest.to_string()).unwrap_or_default(),
            media_type: manifest.media_type.clone(),
            layers: layers.collect(),
            config,
        }
    }
}

/// What is known of a payload, and of its images where they were read.
pub fn info(payload: &Payload, images: Option<BTreeMap<String, ImageInfo>>) -> ReleaseInfo {
    let tags = &payload.contents.references.spec.tags;
    let (display_versions, mut warnings) = display_versions(tags);
    warnings.sort();
    warnings.dedup();
    let digest = payload.manifest.digest.to_string();
    ReleaseInfo {
        image: payload.image.to_string(),
        content_digest: digest.clone(),
        digest,
        list_digest: payload
            .list
            .as_ref()
            .map(|list| list.digest.to_string())
            .unwrap_or_default(),
        config: payload.config.clone(),
        metadata: payload.contents.metadata.clone(),
        references: payload.contents.references.clone(),
        versions: None,
        versions_tags: versions_tags(tags),
        display_versions: Some(display_versions).filter(|it| !it.is_empty()),
        images,
        warnings: Some(warnings).filter(|it| !it.is_empty()),
    }
}

impl ReleaseInfo {
    /// The document, with a final newline.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        go_json::to_string(self).map(|text| text + "\n")
    }

    /// The version of the release.
    pub fn version(&self) -> &str {
        let metadata = self.metadata.as_ref().map(|it| it.version.as_str());
        metadata.unwrap_or(&self.references.metadata.name)
    }
}

/// Versions with their names, and warnings about labels that disagree or are not understood. The version and
/// the name that are shown belong to the same image: that of the smallest version.
fn display_versions(tags: &[Tag]) -> (BTreeMap<String, DisplayVersion>, Vec<String>) {
    let mut found: BTreeMap<String, BTreeSet<(String, String)>> = BTreeMap::new();
    let mut warnings = Vec::new();
    for tag in tags {
        let versions = labels::versions(tag.annotation(VERSIONS));
        let names = labels::display_names(tag.annotation(DISPLAY_NAMES));
        let (versions, names) = match (versions, names) {
            (Ok(versions), Ok(names)) => (versions, names),
            (Err(error), _) | (_, Err(error)) => {
                warnings.push(format!("component {}: {error}", tag.name));
                continue;
            }
        };
        for (key, version) in versions {
            if labels::counts(&tag.name, &key) {
                let name = names.get(&key).cloned().unwrap_or_default();
                found.entry(key).or_default().insert((version, name));
            }
        }
    }
    let several = found.iter().filter(|(key, values)| {
        let versions: BTreeSet<_> = values.iter().map(|(version, _)| version).collect();
        versions.len() > 1 && *key != "machine-os"
    });
    let several: Vec<_> = several.map(|(key, _)| key.clone()).collect();
    if !several.is_empty() {
        warnings.push(format!(
            "multiple versions reported for {}",
            several.join(", ")
        ));
    }
    let shown = found.into_iter().filter_map(|(key, values)| {
        let named = values.iter().find(|(_, name)| !name.is_empty());
        let (version, own) = values.first()?;
        let of_first = values
            .iter()
            .find(|(other, name)| other == version && !name.is_empty());
        let name = of_first
            .or(named.filter(|_| values.len() == 1))
            .map_or(own, |(_, name)| name);
        let shown = DisplayVersion {
            version: version.clone(),
            display_name: name.clone(),
        };
        Some((key, shown))
    });
    (shown.collect(), warnings)
}

fn versions_tags(tags: &[Tag]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for tag in tags {
        for key in labels::versions(tag.annotation(VERSIONS))
            .unwrap_or_default()
            .into_keys()
        {
            if labels::counts(&tag.name, &key) {
                found.insert(key, tag.name.clone());
            }
        }
    }
    found
}

/// A value as JSON with two spaces of indentation, as in [`ReleaseInfo::to_json`].
pub fn json(value: &Value) -> Result<String, serde_json::Error> {
    go_json::to_string(value).map(|text| text + "\n")
}
