//! Reads payloads from registries.

use super::{
    contents::{self, Contents},
    image::{self, ImageConfig},
    layer_files,
};
use crate::oci::{
    client::{Error as RegistryError, RegistryClient},
    image_folder::ImageFolder,
    layer::{self, Limits},
    manifest::Manifest,
    platform::PlatformFilter,
    reference::ImageRef,
};

/// Why a payload was not read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The registry.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// A layer.
    #[error(transparent)]
    Layer(#[from] layer_files::Error),
    /// The image has no layer.
    #[error("{0} has no layers, and is not a payload")]
    NoLayers(String),
    /// The files of the layer.
    #[error("{image}")]
    Contents {
        /// The image.
        image: String,
        /// Why.
        source: contents::Error,
    },
    /// The configuration.
    #[error("{image}")]
    Config {
        /// The image.
        image: String,
        /// Why.
        source: image::Error,
    },
}

/// A payload as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Payload {
    /// The image as the user named it.
    pub image: ImageRef,
    /// The manifest of the image that was read.
    pub manifest: Manifest,
    /// The list that it belongs to.
    pub list: Option<Manifest>,
    /// Its configuration.
    pub config: ImageConfig,
    /// Its files.
    pub contents: Contents,
}

impl Payload {
    /// The payload by digest: of the list, if there is one.
    pub fn by_digest(&self) -> ImageRef {
        let outer = self.list.as_ref().unwrap_or(&self.manifest);
        self.image.at_digest(&outer.digest)
    }
}

/// Reads a payload. Of a list, the first of `platforms` that has exactly one image chooses.
///
/// Only the last layer is read: where a payload was built on a payload, the files of the older one that the
/// newer one dropped are still in the layers below.
pub async fn read(
    client: &RegistryClient,
    image: &ImageRef,
    platforms: &[PlatformFilter],
) -> Result<Payload, Error> {
    let outer = client.manifest(image).await?;
    let (manifest, list) = if outer.list().is_some() {
        let mut chosen = client.image_of(image, &outer, &PlatformFilter::Any).await;
        for platform in platforms {
            if chosen.is_ok() {
                break;
            }
            chosen = client.image_of(image, &outer, platform).await;
        }
        (chosen?, Some(outer))
    } else {
        (outer, None)
    };
    let config = client.config(image, &manifest).await?;
    let config = ImageConfig::read(&config).map_err(|source| Error::Config {
        image: image.to_string(),
        source,
    })?;
    let last = manifest.image().and_then(|it| it.layers().last());
    let last = last.ok_or_else(|| Error::NoLayers(image.to_string()))?;
    let limits = Limits::for_manifests(last.size());
    let entries = layer_files::read(client, image, last, limits, Contents::is_part).await?;
    let contents = Contents::from_entries(entries).map_err(|source| Error::Contents {
        image: image.to_string(),
        source,
    })?;
    Ok(Payload {
        image: image.clone(),
        manifest,
        list,
        config,
        contents,
    })
}

/// The largest configuration, and the largest layer of a payload, in a folder.
const MAX_CONFIG: u64 = 8 << 20;
const MAX_LAYER: u64 = 256 << 20;

/// Reads a payload from a folder, as [`read`] does from a registry.
pub fn read_from_folder(
    folder: &ImageFolder,
    image: &ImageRef,
    platforms: &[PlatformFilter],
) -> Result<Payload, Error> {
    let outer = folder.manifest(image)?;
    let (manifest, list) = if outer.list().is_some() {
        let mut chosen = PlatformFilter::Any.only(&outer);
        for platform in platforms {
            chosen = chosen.or_else(|_| platform.only(&outer));
        }
        let chosen = chosen.map_err(|source| RegistryError::Platform {
            image: image.to_string(),
            source,
        })?;
        let chosen = folder.manifest(&image.at_digest(chosen.digest()))?;
        (chosen, Some(outer))
    } else {
        (outer, None)
    };
    let content = manifest.image();
    let content = content.ok_or_else(|| Error::NoLayers(image.to_string()))?;
    let config = folder.blob_bytes(image, content.config(), MAX_CONFIG)?;
    let config = ImageConfig::read(&config).map_err(|source| Error::Config {
        image: image.to_string(),
        source,
    })?;
    let last = content.layers().last();
    let last = last.ok_or_else(|| Error::NoLayers(image.to_string()))?;
    let limits = Limits::for_manifests(last.size());
    let bytes = folder.blob_bytes(image, last, MAX_LAYER)?;
    let failed = |source| Error::Contents {
        image: image.to_string(),
        source,
    };
    let entries = layer::read(bytes.as_ref(), limits, Contents::is_part);
    let entries = entries.map_err(|error| failed(error.into()))?;
    let contents = Contents::from_entries(entries).map_err(failed)?;
    Ok(Payload {
        image: image.clone(),
        manifest,
        list,
        config,
        contents,
    })
}
