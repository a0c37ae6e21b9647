//! The repositories with their blobs, manifests and tags: pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    digest::Digest,
    names::{RepositoryName, Tag},
};

/// All repositories.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Index {
    repositories: BTreeMap<RepositoryName, Repository>,
}

/// A repository.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Repository {
    pub(super) blobs: BTreeSet<Digest>,
    pub(super) manifests: BTreeMap<Digest, ManifestRecord>,
    pub(super) tags: BTreeMap<Tag, Digest>,
}

/// What is known about a manifest without reading it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ManifestRecord {
    pub(super) media_type: String,
    pub(super) size: u64,
    /// The blobs and manifests that it names, as texts.
    pub(super) references: Vec<String>,
    /// The manifest that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) subject: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) artifact_type: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) annotations: BTreeMap<String, Value>,
}

/// A change of a repository.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Change {
    AddBlob(Digest),
    RemoveBlob(Digest),
    PutManifest(Digest, ManifestRecord),
    /// Removes a manifest with the tags that lead to it.
    RemoveManifest(Digest),
    SetTag(Tag, Digest),
    RemoveTag(Tag),
}

impl Index {
    pub(super) fn repository(&self, name: &RepositoryName) -> Option<&Repository> {
        self.repositories.get(name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &RepositoryName> {
        self.repositories.keys()
    }

    pub(super) fn repositories(&self) -> impl Iterator<Item = (&RepositoryName, &Repository)> {
        self.repositories.iter()
    }

    pub(super) fn has_blob(&self, name: &RepositoryName, digest: &Digest) -> bool {
        let repository = self.repository(name);
        repository.is_some_and(|repository| repository.blobs.contains(digest))
    }

    /// Applies a change. A repository without content does not exist.
    pub(super) fn apply(&mut self, name: &RepositoryName, change: &Change) {
        let repository = self.repositories.entry(name.clone()).or_default();
        match change.clone() {
            Change::AddBlob(digest) => {
                repository.blobs.insert(digest);
            }
            Change::RemoveBlob(digest) => {
                repository.blobs.remove(&digest);
            }
            Change::PutManifest(digest, record) => {
                repository.manifests.insert(digest, record);
            }
            Change::RemoveManifest(digest) => {
                repository.manifests.remove(&digest);
                repository.tags.retain(|_, target| *target != digest);
            }
            Change::SetTag(tag, digest) => {
                repository.tags.insert(tag, digest);
            }
            Change::RemoveTag(tag) => {
                repository.tags.remove(&tag);
            }
        }
        if repository.is_empty() {
            self.repositories.remove(name);
        }
    }

    /// Every digest whose content is needed: all manifests, and what they name.
    pub(super) fn needed(&self) -> BTreeSet<Digest> {
        let manifests = self.repositories.values().flat_map(|it| &it.manifests);
        let mut needed = BTreeSet::new();
        for (digest, record) in manifests {
            let named = record
                .references
                .iter()
                .filter_map(|text| text.parse().ok());
            needed.extend(named);
            needed.insert(digest.clone());
        }
        needed
    }
}

impl Repository {
    fn is_empty(&self) -> bool {
        self.blobs.is_empty() && self.manifests.is_empty() && self.tags.is_empty()
    }
}
