//! What is different between two payloads.

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, fmt::Write};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::{Serialize, Serializer};

use super::{
    go_json,
    image_references::Tag,
    info::{ReleaseInfo, info},
    labels::{COMMIT_ID, SOURCE_LOCATION},
    reader::Payload,
    text::{aligned, commit_url, digest_of, row, web_path},
};

/// The difference between two payloads, in the form of `info -o json` with two images.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// The first.
    pub from: ReleaseInfo,
    /// The second.
    pub to: ReleaseInfo,
    /// Images that are not the same.
    pub changed_images: BTreeMap<String, ImageChange>,
    /// Manifests that are not the same.
    pub changed_manifests: BTreeMap<String, ManifestChange>,
}

/// An image that is not the same.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ImageChange {
    /// The component.
    pub name: String,
    /// In the first.
    pub from: Option<Tag>,
    /// In the second.
    pub to: Option<Tag>,
}

/// A manifest that is not the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ManifestChange {
    /// The file.
    pub filename: String,
    /// In the first.
    #[serde(serialize_with = "base64_or_null")]
    pub from: Option<Vec<u8>>,
    /// In the second.
    #[serde(serialize_with = "base64_or_null")]
    pub to: Option<Vec<u8>>,
}

#[expect(clippy::ref_option, reason = "serde calls it with a reference")]
fn base64_or_null<S: Serializer>(
    content: &Option<Vec<u8>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match content {
        Some(content) => serializer.serialize_str(&BASE64_STANDARD.encode(content)),
        None => serializer.serialize_none(),
    }
}

/// How the image of a component changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// It was built from another commit.
    Changed,
    /// It is another image, as far as is known of the same source.
    Rebuilt,
    /// It is new.
    Added,
    /// It is gone.
    Removed,
}

impl ImageChange {
    /// How it changed.
    pub fn kind(&self) -> Kind {
        match (&self.from, &self.to) {
            (Some(from), Some(to)) => {
                let (from, to) = (from.annotation(COMMIT_ID), to.annotation(COMMIT_ID));
                if !from.is_empty() && !to.is_empty() && from != to {
                    Kind::Changed
                } else {
                    Kind::Rebuilt
                }
            }
            (None, _) => Kind::Added,
            (_, None) => Kind::Removed,
        }
    }
}

/// Compares two payloads: images by their pull specs, manifests by their bytes.
pub fn difference(from: &Payload, to: &Payload) -> Difference {
    let tags = |payload: &Payload| -> BTreeMap<String, Tag> {
        let tags = payload.contents.references.spec.tags.iter();
        tags.map(|tag| (tag.name.clone(), tag.clone())).collect()
    };
    let manifests = |payload: &Payload| -> BTreeMap<String, Vec<u8>> {
        let files = payload.contents.manifests().into_iter();
        files
            .map(|(name, file)| (name.to_owned(), file.content.clone()))
            .collect()
    };
    let images = pairs(tags(from), tags(to))
        .filter(|(_, from, to)| spec(from.as_ref()) != spec(to.as_ref()));
    let images = images.map(|(name, from, to)| (name.clone(), ImageChange { name, from, to }));
    let files = pairs(manifests(from), manifests(to)).filter(|(_, from, to)| from != to);
    let files =
        files.map(|(filename, from, to)| (filename.clone(), ManifestChange { filename, from, to }));
    Difference {
        from: info(from, None),
        to: info(to, None),
        changed_images: images.collect(),
        changed_manifests: files.collect(),
    }
}

fn spec(tag: Option<&Tag>) -> Option<&str> {
    tag.map(|tag| tag.pull_spec().unwrap_or_default())
}

/// All keys of two maps with their values.
fn pairs<T>(
    mut from: BTreeMap<String, T>,
    to: BTreeMap<String, T>,
) -> impl Iterator<Item = (String, Option<T>, Option<T>)> {
    let mut found: BTreeMap<String, (Option<T>, Option<T>)> = BTreeMap::new();
    for (name, value) in to {
        let before = from.remove(&name);
        found.insert(name, (before, Some(value)));
    }
    found.extend(
        from.into_iter()
            .map(|(name, value)| (name, (Some(value), None))),
    );
    found.into_iter().map(|(name, (from, to))| (name, from, to))
}

impl Difference {
    /// Whether the payloads are the same.
    pub fn is_empty(&self) -> bool {
        self.changed_images.is_empty() && self.changed_manifests.is_empty()
    }

    /// The document, with a final newline.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        go_json::to_string(self).map(|text| text + "\n")
    }

    /// The difference as text; with `commits`, links to what changed.
    pub fn to_text(&self, commits: bool) -> String {
        let (from, to) = (&self.from, &self.to);
        if from.digest == to.digest && from.list_digest == to.list_digest {
            return format!("The payloads are the same: {}\n", from.digest);
        }
        let mut rows = vec![row(&["", "FROM", "TO"])];
        rows.push(row(&[
            "Name:",
            &from.references.metadata.name,
            &to.references.metadata.name,
        ]));
        let created = |it: &ReleaseInfo| {
            it.config
                .created
                .map(|time| time.to_string())
                .unwrap_or_default()
        };
        rows.push(row(&["Created:", &created(from), &created(to)]));
        let platform = |it: &ReleaseInfo| format!("{}/{}", it.config.os, it.config.architecture);
        if platform(from) != platform(to) {
            rows.push(row(&["OS/Arch:", &platform(from), &platform(to)]));
        }
        rows.push(row(&["Version:", from.version(), to.version()]));
        let previous = to
            .metadata
            .as_ref()
            .map(|it| it.previous.as_slice())
            .unwrap_or_default();
        let upgrades = if previous.iter().any(|it| it == from.version()) {
            "Yes"
        } else {
            "No"
        };
        rows.push(row(&["Upgrade From:", "", upgrades]));
        let mut out = aligned(&rows, "");
        for (kind, title) in [
            (Kind::Changed, "Images Changed:"),
            (Kind::Rebuilt, "Images Rebuilt:"),
            (Kind::Added, "Images Added:"),
            (Kind::Removed, "Images Removed:"),
        ] {
            let images = self.changed_images.values().filter(|it| it.kind() == kind);
            let rows: Vec<_> = images.map(|it| change(it, commits)).collect();
            if !rows.is_empty() {
                let _ = write!(out, "\n{title}\n{}", aligned(&rows, "  "));
            }
        }
        if !self.changed_manifests.is_empty() {
            let _ = write!(out, "\nManifests:\n{}", self.manifest_rows());
        }
        out
    }

    fn manifest_rows(&self) -> String {
        let rows = self.changed_manifests.values().map(|it| {
            let what = match (&it.from, &it.to) {
                (None, _) => "added",
                (_, None) => "removed",
                _ => "changed",
            };
            row(&[&it.filename, what])
        });
        aligned(&rows.collect::<Vec<_>>(), "  ")
    }
}

fn change(image: &ImageChange, commits: bool) -> Vec<String> {
    let commit = |tag: &Option<Tag>| {
        tag.as_ref()
            .map(|tag| tag.annotation(COMMIT_ID).to_owned())
            .unwrap_or_default()
    };
    let (before, after) = (commit(&image.from), commit(&image.to));
    let source = image.to.as_ref().or(image.from.as_ref());
    let source = source
        .map(|tag| tag.annotation(SOURCE_LOCATION).to_owned())
        .unwrap_or_default();
    match (image.kind(), commits) {
        (Kind::Changed, true) => {
            let link = web_path(&source)
                .map(|path| format!("https://github.com/{path}/compare/{before}...{after}"));
            row(&[
                &image.name,
                &link.unwrap_or_else(|| format!("{source} {before}...{after}")),
            ])
        }
        (Kind::Added | Kind::Rebuilt, true) => row(&[&image.name, &commit_url(&source, &after)]),
        (Kind::Removed, _) => row(&[&image.name]),
        _ => {
            let digest = |tag: &Option<Tag>| tag.as_ref().map(digest_of).unwrap_or_default();
            row(&[&image.name, &digest(&image.from), &digest(&image.to)])
        }
    }
}
