//! Reads: manifests, configurations, tags.

use bytes::Bytes;
use http::{Method, StatusCode};
use neap_kit::client::resolve;
use serde::Deserialize;

use super::{Access, Error, RegistryClient, What};
use crate::oci::{
    digest::{self, Digest},
    manifest::{Descriptor, MAX_MANIFEST, Manifest},
    media_type::ACCEPTED,
    platform::PlatformFilter,
    reference::ImageRef,
};

/// Configurations are small; those of images with a long history have some hundred kilobytes.
const MAX_CONFIG: u64 = 8 << 20;
/// A page of tags.
const MAX_PAGE: usize = 8 << 20;
/// Pages, so that a registry that leads in circles ends.
const MAX_PAGES: usize = 1000;
const PAGE_SIZE: usize = 1000;

/// What a registry says about a manifest without sending it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its digest.
    pub digest: Digest,
    /// Its media type.
    pub media_type: String,
}

#[derive(Deserialize)]
struct TagPage {
    #[serde(default)]
    tags: Option<Vec<String>>,
}

impl RegistryClient {
    /// The manifest of an image. Its digest was checked, where the image is named by one or the registry
    /// names one.
    pub async fn manifest(&self, image: &ImageRef) -> Result<Manifest, Error> {
        let Some(digest) = image.digest() else {
            return self.read_manifest(image).await;
        };
        let cached = self.cached(&digest, MAX_MANIFEST as u64);
        let cached = cached.and_then(|bytes| Manifest::read(bytes, None, Some(&digest)).ok());
        if let Some(manifest) = cached {
            return Ok(manifest);
        }
        let manifest = self.read_manifest(image).await?;
        if self.cache.is_some() {
            // One whose type only the registry's header tells is not kept: the header is not in the content.
            let alone = Manifest::read(manifest.bytes.clone(), None, Some(&digest));
            if alone.is_ok_and(|alone| alone.media_type == manifest.media_type) {
                self.keep(&digest, &manifest.bytes);
            }
        }
        Ok(manifest)
    }

    async fn read_manifest(&self, image: &ImageRef) -> Result<Manifest, Error> {
        let path = format!("manifests/{}", image.selector());
        let accept = ACCEPTED.join(", ");
        let make = |http: &neap_kit::client::Client, address: &str| {
            Self::request(http, &Method::GET, address).header("accept", &accept)
        };
        let response = self
            .send(image, What::Manifest, &Access::pull(), make, &path)
            .await?;
        let response = self.checked(image, What::Manifest, response).await?;
        let content_type = response.header("content-type").map(str::to_owned);
        let stated = response
            .header("docker-content-digest")
            .and_then(|text| digest::parse(text).ok());
        let announced = response
            .header("content-length")
            .and_then(|text| text.parse::<u64>().ok());
        if let Some(size) = announced.filter(|size| *size > MAX_MANIFEST as u64) {
            let source = crate::oci::manifest::Error::TooLarge(size);
            return Err(manifest_error(image, source));
        }
        let bytes = response
            .bytes(MAX_MANIFEST)
            .await
            .map_err(|error| match error {
                neap_kit::client::Error::TooLong { .. } => manifest_error(
                    image,
                    crate::oci::manifest::Error::TooLarge(MAX_MANIFEST as u64 + 1),
                ),
                error => Error::call(image, What::Manifest, error),
            })?;
        let wanted = image.digest().or(stated);
        Manifest::read(bytes, content_type.as_deref(), wanted.as_ref()).map_err(|source| {
            match source {
                crate::oci::manifest::Error::Digest(source) => Error::Content {
                    image: image.to_string(),
                    what: What::Manifest,
                    source,
                },
                source => manifest_error(image, source),
            }
        })
    }

    /// What the registry has under a name, without reading it; none if there is nothing. Registries count
    /// this less than a read, or not at all.
    pub async fn find(&self, image: &ImageRef) -> Result<Option<Found>, Error> {
        let path = format!("manifests/{}", image.selector());
        let accept = ACCEPTED.join(", ");
        let make = |http: &neap_kit::client::Client, address: &str| {
            Self::request(http, &Method::HEAD, address).header("accept", &accept)
        };
        let response = self
            .send(image, What::Manifest, &Access::pull(), make, &path)
            .await?;
        if response.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        let response = self.checked(image, What::Manifest, response).await?;
        let digest = response
            .header("docker-content-digest")
            .and_then(|text| digest::parse(text).ok());
        let media_type = response.header("content-type").unwrap_or_default();
        let media_type = media_type.split(';').next().unwrap_or_default().trim();
        if let Some(digest) = digest {
            return Ok(Some(Found {
                digest,
                media_type: media_type.to_owned(),
            }));
        }
        // Not every registry names the digest in the answer to HEAD.
        let manifest = self.manifest(image).await?;
        Ok(Some(Found {
            digest: manifest.digest,
            media_type: manifest.media_type,
        }))
    }

    /// The image of a manifest: itself, or the one of a list that `filter` chooses.
    pub async fn image_of(
        &self,
        image: &ImageRef,
        manifest: &Manifest,
        filter: &PlatformFilter,
    ) -> Result<Manifest, Error> {
        if manifest.image().is_some() {
            return Ok(manifest.clone());
        }
        let child = filter.only(manifest).map_err(|source| Error::Platform {
            image: image.to_string(),
            source,
        })?;
        self.manifest(&image.at_digest(child.digest())).await
    }

    /// The bytes of an image's configuration.
    pub async fn config(&self, image: &ImageRef, manifest: &Manifest) -> Result<Bytes, Error> {
        let Some(content) = manifest.image() else {
            return Err(Error::protocol(
                image,
                What::Manifest,
                "a list of manifests has no configuration",
            ));
        };
        self.blob_bytes(image, content.config(), MAX_CONFIG).await
    }

    /// Whether the repository has a blob.
    pub async fn has_blob(&self, image: &ImageRef, descriptor: &Descriptor) -> Result<bool, Error> {
        let what = What::Blob(descriptor.digest().clone());
        let path = format!("blobs/{}", descriptor.digest());
        let make = |http: &neap_kit::client::Client, address: &str| {
            Self::request(http, &Method::HEAD, address)
        };
        let response = self
            .send(image, what.clone(), &Access::pull(), make, &path)
            .await?;
        if response.status() == StatusCode::NOT_FOUND {
            return Ok(false);
        }
        self.checked(image, what, response).await.map(|_| true)
    }

    /// All tags of a repository, in the registry's order.
    pub async fn tags(&self, image: &ImageRef) -> Result<Vec<String>, Error> {
        let mut path = format!("tags/list?n={PAGE_SIZE}");
        let mut tags = Vec::new();
        for _ in 0..MAX_PAGES {
            let make = |http: &neap_kit::client::Client, address: &str| {
                Self::request(http, &Method::GET, address)
            };
            let response = self
                .send(image, What::Tags, &Access::pull(), make, &path)
                .await?;
            let response = self.checked(image, What::Tags, response).await?;
            let next = response.header("link").and_then(next_page);
            let next = next.map(|link| resolve(response.uri(), link));
            let base = response.uri().clone();
            let page: TagPage = response
                .json(MAX_PAGE)
                .await
                .map_err(|error| Error::call(image, What::Tags, error))?;
            tags.extend(page.tags.unwrap_or_default());
            let Some(next) = next else {
                return Ok(tags);
            };
            let query = next.filter(|next| next.authority() == base.authority());
            let query = query.as_ref().and_then(|next| next.query());
            let Some(query) = query else {
                return Err(Error::protocol(
                    image,
                    What::Tags,
                    "the next page is at another host, or has no position",
                ));
            };
            path = format!("tags/list?{query}");
        }
        Err(Error::protocol(
            image,
            What::Tags,
            format!("it has more than {MAX_PAGES} pages"),
        ))
    }
}

fn manifest_error(image: &ImageRef, source: crate::oci::manifest::Error) -> Error {
    Error::Manifest {
        image: image.to_string(),
        source,
    }
}

/// The address in `<…>; rel="next"`.
fn next_page(link: &str) -> Option<&str> {
    let mut links = link.split(',');
    let next = links.find(|link| link.contains("rel=\"next\"") || link.contains("rel=next"))?;
    next.split_once('<')?
        .1
        .split_once('>')
        .map(|(address, _)| address)
}
