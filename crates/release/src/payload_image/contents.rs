//! The files of a payload, and the layer that they make.

use std::collections::BTreeMap;

use crate::oci::layer::{self, EntryKind, LayerBlob, LayerEntry, LayerFile};

use super::{
    image_references::{self, ImageReferences},
    manifest_file::{ManifestFile, is_manifest},
    release_metadata::{self, ReleaseMetadata},
};

/// The folder of a payload's files.
pub const FOLDER: &str = "release-manifests";

/// Why a layer is not that of a payload, or cannot become one.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A required file is absent.
    #[error("the image is not a payload: {FOLDER}/{0} is missing")]
    Missing(&'static str),
    /// The list of images is not usable.
    #[error("{FOLDER}/{0} is not usable")]
    References(&'static str, #[source] image_references::Error),
    /// The metadata are not usable.
    #[error("{FOLDER}/{0} is not usable")]
    Metadata(&'static str, #[source] release_metadata::Error),
    /// The layer cannot be read or written.
    #[error(transparent)]
    Layer(#[from] layer::Error),
    /// Serialization.
    #[error("the payload's documents cannot be written")]
    Json(#[from] serde_json::Error),
}

/// The files of a payload.
#[derive(Debug, Clone, PartialEq)]
pub struct Contents {
    /// The list of images.
    pub references: ImageReferences,
    /// Version and upgrades; only old payloads have none.
    pub metadata: Option<ReleaseMetadata>,
    /// Everything else, in the order of the layer.
    pub files: Vec<ManifestFile>,
    /// The two documents as they were read; none while the payload is being made.
    raw: Option<(Vec<u8>, Option<Vec<u8>>)>,
}

impl Contents {
    /// A payload that is being made.
    pub fn new(
        references: ImageReferences,
        metadata: ReleaseMetadata,
        files: Vec<ManifestFile>,
    ) -> Self {
        Self {
            references,
            metadata: Some(metadata),
            files,
            raw: None,
        }
    }

    /// The layer. Equal contents give equal bytes.
    pub fn to_layer(&self) -> Result<LayerBlob, Error> {
        Ok(layer::write(&self.to_files()?)?)
    }

    /// The entries of the layer, in their order.
    pub fn to_files(&self) -> Result<Vec<LayerFile>, Error> {
        let newest = self.files.iter().map(|file| file.mtime).max().unwrap_or(0);
        let mut files = vec![LayerFile {
            name: FOLDER.to_owned(),
            content: None,
            mode: 0o777,
            mtime: newest,
        }];
        let mut add = |name: &str, content: Vec<u8>, mtime: i64| {
            files.push(LayerFile {
                name: format!("{FOLDER}/{name}"),
                content: Some(content),
                mode: 0o444,
                mtime,
            });
        };
        add(image_references::FILE, self.references_bytes()?, newest);
        if let Some(metadata) = self.metadata_bytes()? {
            add(release_metadata::FILE, metadata, newest);
        }
        for file in &self.files {
            add(&file.name, file.content.clone(), file.mtime);
        }
        Ok(files)
    }

    /// The bytes of `image-references`.
    pub fn references_bytes(&self) -> Result<Vec<u8>, Error> {
        match &self.raw {
            Some((references, _)) => Ok(references.clone()),
            None => Ok(self.references.to_bytes()?),
        }
    }

    /// The bytes of `release-metadata`.
    pub fn metadata_bytes(&self) -> Result<Option<Vec<u8>>, Error> {
        match (&self.raw, &self.metadata) {
            (Some((_, metadata)), _) => Ok(metadata.clone()),
            (None, Some(metadata)) => Ok(Some(metadata.to_bytes()?)),
            (None, None) => Ok(None),
        }
    }

    /// Whether the file of a layer belongs to a payload.
    pub fn is_part(head: &layer::EntryHead) -> bool {
        head.kind == EntryKind::File && file_name(&head.name).is_some()
    }

    /// Reads the files of a layer.
    pub fn from_entries(entries: Vec<LayerEntry>) -> Result<Self, Error> {
        let mut files = BTreeMap::new();
        let mut order = Vec::new();
        for entry in entries {
            let Some(name) = file_name(&entry.head.name) else {
                continue;
            };
            let file = ManifestFile {
                name: name.to_owned(),
                mtime: entry.head.mtime,
                content: entry.content,
            };
            order.push(name.to_owned());
            files.insert(name.to_owned(), file);
        }
        let references = files.remove(image_references::FILE);
        let references = references.ok_or(Error::Missing(image_references::FILE))?;
        let metadata = files.remove(release_metadata::FILE);
        let parsed = ImageReferences::read(&references.content)
            .map_err(|error| Error::References(image_references::FILE, error))?;
        let parsed_metadata = metadata
            .as_ref()
            .map(|file| ReleaseMetadata::read(&file.content));
        let parsed_metadata = parsed_metadata
            .transpose()
            .map_err(|error| Error::Metadata(release_metadata::FILE, error))?;
        Ok(Self {
            references: parsed,
            metadata: parsed_metadata,
            files: order.iter().filter_map(|name| files.remove(name)).collect(),
            raw: Some((references.content, metadata.map(|file| file.content))),
        })
    }

    /// The manifests, by name.
    pub fn manifests(&self) -> BTreeMap<&str, &ManifestFile> {
        let files = self.files.iter().filter(|file| is_manifest(&file.name));
        files.map(|file| (file.name.as_str(), file)).collect()
    }

    /// Files that are not manifests, by name.
    pub fn other_files(&self) -> BTreeMap<&str, &ManifestFile> {
        let files = self.files.iter().filter(|file| !is_manifest(&file.name));
        files.map(|file| (file.name.as_str(), file)).collect()
    }

    /// The name of the release.
    pub fn name(&self) -> &str {
        &self.references.metadata.name
    }
}

/// The name of a payload's file; none of another file, or of one in a folder below.
fn file_name(path: &str) -> Option<&str> {
    let name = path.strip_prefix(FOLDER)?.strip_prefix('/')?;
    (!name.is_empty() && !name.contains('/')).then_some(name)
}
