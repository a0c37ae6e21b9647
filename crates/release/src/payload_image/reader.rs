//! Reads payloads from registries.

use super::{
    contents::{self, Contents},
    image::{self, ImageConfig},
    layer_files,
};
use crate::oci::{
    client::{Error as RegistryError, RegistryClient},
    layer::Limits,
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
