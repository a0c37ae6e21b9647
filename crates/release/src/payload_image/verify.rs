//! Reads all images of a payload, which proves that each is there and is what its digest says.

use futures::{StreamExt, stream};

use super::{
    image::{self, ImageConfig},
    image_references::Tag,
    info::ImageInfo,
    reader::Payload,
};
use crate::oci::{
    client::{Error as RegistryError, RegistryClient},
    platform::PlatformFilter,
    reference::{ImageRef, InvalidRef},
};

/// Why an image was not read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The registry.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The name.
    #[error(transparent)]
    Reference(#[from] InvalidRef),
    /// The configuration.
    #[error("{image}")]
    Config {
        /// The image.
        image: String,
        /// Why.
        source: image::Error,
    },
    /// It is not named by its digest.
    #[error("{0} is not by digest")]
    NoDigest(String),
}

/// An image of a payload.
#[derive(Debug)]
pub struct Verified {
    /// The component.
    pub component: String,
    /// The image, or why it was not read.
    pub result: Result<ImageInfo, Error>,
}

/// Reads the images of a payload; each manifest and configuration is compared with its digest. Of lists, the
/// first of `platforms` that has exactly one image chooses.
pub async fn images(
    client: &RegistryClient,
    payload: &Payload,
    platforms: &[PlatformFilter],
) -> Vec<Verified> {
    let tags = payload.contents.references.spec.tags.iter();
    let read = stream::iter(tags).map(|tag| async move {
        Verified {
            component: tag.name.clone(),
            result: read_image(client, tag, platforms).await,
        }
    });
    read.buffered(client.parallelism()).collect().await
}

async fn read_image(
    client: &RegistryClient,
    tag: &Tag,
    platforms: &[PlatformFilter],
) -> Result<ImageInfo, Error> {
    let spec = tag.pull_spec().unwrap_or_default();
    let image: ImageRef = spec.parse()?;
    if image.digest_text().is_none() {
        return Err(Error::NoDigest(spec.to_owned()));
    }
    let outer = client.manifest(&image).await?;
    let mut found = client.image_of(&image, &outer, &PlatformFilter::Any).await;
    for platform in platforms {
        if found.is_ok() {
            break;
        }
        found = client.image_of(&image, &outer, platform).await;
    }
    let manifest = found?;
    let config = client.config(&image, &manifest).await?;
    let config = ImageConfig::read(&config).map_err(|source| Error::Config {
        image: spec.to_owned(),
        source,
    })?;
    let list = outer.list().map(|_| &outer);
    Ok(ImageInfo::new(&image, &manifest, list, config))
}
