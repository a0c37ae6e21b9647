//! Manifests: the parts of an image, or the images of several platforms.

#[cfg(test)]
mod tests;

use bytes::Bytes;
pub use oci_spec::image::Descriptor;
use oci_spec::image::{ImageIndex, ImageManifest};
use serde::Deserialize;

use super::{
    digest::{self, Digest},
    media_type::{self, DOCKER_LIST, DOCKER_MANIFEST, Family, OCI_INDEX, OCI_MANIFEST},
};

/// The size that registries themselves accept; what is larger is not a manifest.
pub const MAX_MANIFEST: usize = 4 << 20;
/// More layers than any image has; more children than there are platforms.
const MAX_DESCRIPTORS: usize = 1000;

/// Why bytes are no manifest that can be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is larger than registries accept.
    #[error("the manifest has {0} bytes; registries accept at most {MAX_MANIFEST}")]
    TooLarge(u64),
    /// It is not JSON of the expected form.
    #[error("the manifest cannot be read")]
    Unreadable(#[source] serde_json::Error),
    /// An old or foreign kind of manifest.
    #[error("manifests of type {0:?} are not supported")]
    Unsupported(String),
    /// It says to be of one type in its header, and of another in its content.
    #[error(
        "the registry calls the manifest {header:?}, and the manifest calls itself {content:?}"
    )]
    Contradiction {
        /// The content type of the answer.
        header: String,
        /// The field `mediaType`.
        content: String,
    },
    /// More entries than any image has.
    #[error("the manifest has {0} entries; at most {MAX_DESCRIPTORS} are read")]
    TooManyEntries(usize),
    /// The content has another digest.
    #[error(transparent)]
    Digest(#[from] digest::Error),
}

/// A manifest as it was received.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// The bytes that the digest is about.
    pub bytes: Bytes,
    /// The media type.
    pub media_type: String,
    /// The digest.
    pub digest: Digest,
    /// The content.
    pub content: Content,
}

/// What a manifest says.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// One image.
    Image(Box<ImageManifest>),
    /// The images of several platforms.
    List(Box<ImageIndex>),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    #[serde(default)]
    schema_version: u32,
    #[serde(default)]
    media_type: Option<String>,
    #[serde(default)]
    manifests: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    config: Option<serde::de::IgnoredAny>,
}

impl Manifest {
    /// Reads a manifest. `content_type` is what the registry called it; `wanted` the digest by which it was
    /// asked for.
    pub fn read(
        bytes: Bytes,
        content_type: Option<&str>,
        wanted: Option<&Digest>,
    ) -> Result<Self, Error> {
        if bytes.len() > MAX_MANIFEST {
            return Err(Error::TooLarge(bytes.len() as u64));
        }
        let digest = match wanted {
            Some(wanted) => {
                digest::verify(&bytes, wanted)?;
                wanted.clone()
            }
            None => digest::sha256(&bytes),
        };
        let media_type = media_type(&bytes, content_type)?;
        let content = if media_type::is_list(&media_type) {
            let list: ImageIndex = serde_json::from_slice(&bytes).map_err(Error::Unreadable)?;
            Content::List(Box::new(list))
        } else {
            let image: ImageManifest = serde_json::from_slice(&bytes).map_err(Error::Unreadable)?;
            Content::Image(Box::new(image))
        };
        let manifest = Self {
            bytes,
            media_type,
            digest,
            content,
        };
        match manifest.descriptors().count() {
            count if count > MAX_DESCRIPTORS => Err(Error::TooManyEntries(count)),
            _ => Ok(manifest),
        }
    }

    /// The family of media types.
    pub fn family(&self) -> Family {
        Family::of(&self.media_type)
    }

    /// The single image.
    pub fn image(&self) -> Option<&ImageManifest> {
        match &self.content {
            Content::Image(image) => Some(image),
            Content::List(_) => None,
        }
    }

    /// The list.
    pub fn list(&self) -> Option<&ImageIndex> {
        match &self.content {
            Content::List(list) => Some(list),
            Content::Image(_) => None,
        }
    }

    /// Everything it refers to: configuration and layers, or other manifests.
    pub fn descriptors(&self) -> impl Iterator<Item = &Descriptor> {
        let (config, rest) = match &self.content {
            Content::Image(image) => (Some(image.config()), image.layers()),
            Content::List(list) => (None, list.manifests()),
        };
        config.into_iter().chain(rest)
    }
}

/// The media type. The content decides where it has the field; the registry's header otherwise; and the form
/// where both are absent.
fn media_type(bytes: &[u8], content_type: Option<&str>) -> Result<String, Error> {
    let head: Head = serde_json::from_slice(bytes).map_err(Error::Unreadable)?;
    let header = content_type.map(|text| text.split(';').next().unwrap_or_default().trim());
    let known =
        |text: &str| [OCI_MANIFEST, OCI_INDEX, DOCKER_MANIFEST, DOCKER_LIST].contains(&text);
    let header = header.filter(|text| {
        !matches!(
            *text,
            "" | "application/json" | "text/plain" | "application/octet-stream"
        )
    });
    if head.schema_version == 1 {
        return Err(Error::Unsupported("schema 1".to_owned()));
    }
    let found = match (head.media_type.as_deref(), header) {
        (Some(content), Some(header)) if content != header => {
            return Err(Error::Contradiction {
                header: header.to_owned(),
                content: content.to_owned(),
            });
        }
        (Some(content), _) => content,
        (None, Some(header)) => header,
        (None, None) if head.manifests.is_some() => OCI_INDEX,
        (None, None) if head.config.is_some() => OCI_MANIFEST,
        (None, None) => "",
    };
    // A manifest with both lists could be read as either, and pass a check as the one and be run as the other.
    let ambiguous = head.manifests.is_some() && head.config.is_some();
    if !known(found) || ambiguous {
        return Err(Error::Unsupported(found.to_owned()));
    }
    Ok(found.to_owned())
}
