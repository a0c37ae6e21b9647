//! Reads files out of the layers of images in registries.

use std::io::{Read, Seek, SeekFrom, Write};

use bytes::Bytes;

use crate::oci::{
    client::{Error as RegistryError, RegistryClient, What},
    layer::{self, EntryHead, LayerEntry, Limits},
    manifest::Descriptor,
    reference::ImageRef,
};

/// The largest layer that is read for manifests. Base images of operating systems are larger; components put
/// their manifests into a layer of their own.
pub const MAX_LAYER: u64 = 4 << 30;
/// Layers up to this size stay in memory while they are read.
const IN_MEMORY: u64 = 16 << 20;

/// Why the files of a layer were not read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The registry.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The layer.
    #[error("{image}: layer {digest}")]
    Layer {
        /// The image.
        image: String,
        /// The digest of the layer.
        digest: String,
        /// Why.
        source: layer::Error,
    },
    /// The task that reads the layer ended.
    #[error("{image}: layer {digest} was not read to its end")]
    Ended {
        /// The image.
        image: String,
        /// The digest of the layer.
        digest: String,
    },
}

/// The files of a layer that `wanted` chooses. Nothing is unpacked before the digest of the whole layer was
/// checked.
pub async fn read(
    client: &RegistryClient,
    image: &ImageRef,
    descriptor: &Descriptor,
    limits: Limits,
    wanted: impl FnMut(&EntryHead) -> bool + Send + 'static,
) -> Result<Vec<LayerEntry>, Error> {
    let digest = descriptor.digest().to_string();
    let failed = |source| Error::Layer {
        image: image.to_string(),
        digest: digest.clone(),
        source,
    };
    if descriptor.size() <= IN_MEMORY {
        let content = client.blob_bytes(image, descriptor, IN_MEMORY).await?;
        return unpack(Content::Memory(content), limits, wanted).map_err(failed);
    }
    let content = to_disk(client, image, descriptor).await?;
    // Unpacking takes seconds, in which this thread has other work.
    let unpacked = tokio::task::spawn_blocking(move || unpack(content, limits, wanted)).await;
    match unpacked {
        Ok(result) => result.map_err(failed),
        Err(_) => Err(Error::Ended {
            image: image.to_string(),
            digest: digest.clone(),
        }),
    }
}

enum Content {
    Memory(Bytes),
    Disk(std::fs::File),
}

fn unpack(
    content: Content,
    limits: Limits,
    wanted: impl FnMut(&EntryHead) -> bool,
) -> Result<Vec<LayerEntry>, layer::Error> {
    let reader: Box<dyn Read> = match content {
        Content::Memory(bytes) => Box::new(std::io::Cursor::new(bytes)),
        Content::Disk(file) => Box::new(file),
    };
    layer::read(reader, limits, wanted)
}

/// The blob in a file without a name, which ends with the process.
async fn to_disk(
    client: &RegistryClient,
    image: &ImageRef,
    descriptor: &Descriptor,
) -> Result<Content, Error> {
    let what = What::Blob(descriptor.digest().clone());
    if descriptor.size() > MAX_LAYER {
        return Err(Error::Registry(RegistryError::TooLarge {
            image: image.to_string(),
            what,
            size: descriptor.size(),
            limit: MAX_LAYER,
        }));
    }
    let failed = |source| {
        Error::Registry(RegistryError::Disk {
            image: image.to_string(),
            what: what.clone(),
            source,
        })
    };
    let mut file = tempfile::tempfile().map_err(failed)?;
    let mut stream = client.blob(image, descriptor)?;
    while let Some(part) = stream.next().await? {
        file.write_all(&part).map_err(failed)?;
    }
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    Ok(Content::Disk(file))
}
