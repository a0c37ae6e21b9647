//! Blobs as streams: resumed where they break off, and checked at the end.

use bytes::Bytes;
use http::{Method, StatusCode};
use neap_kit::client::Response;
use tokio::sync::OwnedSemaphorePermit;

use super::{Access, Error, RegistryClient, What};
use crate::oci::{
    digest::{Digest, DigestHasher},
    manifest::Descriptor,
    reference::ImageRef,
};

/// How often a transfer is resumed without having got further by [`LEAST_PROGRESS`].
const MAX_RESUMES: u32 = 4;
/// The bytes after which a transfer counts as getting on. A registry that breaks off after each byte would otherwise
/// get a request for each byte.
const LEAST_PROGRESS: u64 = 1 << 20;

/// The content of a blob. Its last part was read only when [`Self::next`] has returned `None`: until then
/// the digest was not checked.
#[derive(Debug)]
pub struct BlobStream {
    client: RegistryClient,
    image: ImageRef,
    digest: Digest,
    size: u64,
    received: u64,
    hasher: Option<DigestHasher>,
    response: Option<Response>,
    failures: u32,
    /// What had been received when `failures` was last set to zero.
    progress_from: u64,
    /// Held from the first request on until the content is no longer used: what reads a blob also sends it on.
    place: Option<OwnedSemaphorePermit>,
    /// Bytes to drop of a response that starts again from the beginning.
    skip: u64,
}

impl RegistryClient {
    /// The blob of a descriptor, from the repository of `image`.
    pub fn blob(&self, image: &ImageRef, descriptor: &Descriptor) -> Result<BlobStream, Error> {
        let digest = descriptor.digest().clone();
        let hasher = DigestHasher::like(&digest).map_err(|source| Error::Content {
            image: image.to_string(),
            what: What::Blob(digest.clone()),
            source,
        })?;
        Ok(BlobStream {
            client: self.clone(),
            image: image.clone(),
            digest,
            size: descriptor.size(),
            received: 0,
            hasher: Some(hasher),
            response: None,
            failures: 0,
            progress_from: 0,
            place: None,
            skip: 0,
        })
    }

    /// The whole content of a small blob.
    pub async fn blob_bytes(
        &self,
        image: &ImageRef,
        descriptor: &Descriptor,
        limit: u64,
    ) -> Result<Bytes, Error> {
        let size = descriptor.size();
        if size > limit {
            return Err(Error::TooLarge {
                image: image.to_string(),
                what: What::Blob(descriptor.digest().clone()),
                size,
                limit,
            });
        }
        let cached = self.cached(descriptor.digest(), limit);
        if let Some(content) = cached.filter(|content| content.len() as u64 == size) {
            return Ok(content);
        }
        let mut stream = self.blob(image, descriptor)?;
        // What is announced is not reserved: it need not be true.
        let mut content = Vec::with_capacity(size.min(1 << 20) as usize);
        while let Some(part) = stream.next().await? {
            content.extend_from_slice(&part);
        }
        self.keep(descriptor.digest(), &content);
        Ok(content.into())
    }
}

/// What a blob is read from, part by part. The digest is checked before the end is reported.
pub trait BlobSource: Send {
    /// The next part; none after the last.
    fn next(&mut self) -> impl Future<Output = Result<Option<Bytes>, Error>> + Send;
}

impl BlobSource for BlobStream {
    async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        Self::next(self).await
    }
}

impl BlobStream {
    /// The announced size.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The next part; none after the last, whose digest was then checked.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            if self.received == self.size && self.response.is_none() {
                return self.finish();
            }
            match self.part().await {
                Ok(Some(part)) => {
                    let part = self.without_skipped(part);
                    if part.is_empty() {
                        continue;
                    }
                    return self.accept(part).map(Some);
                }
                Ok(None) if self.received == self.size => return self.finish(),
                Ok(None) => self.resume(self.size_error())?,
                Err(error) if error.is_transient() => self.resume(error)?,
                Err(error) => return Err(error),
            }
        }
    }

    async fn part(&mut self) -> Result<Option<Bytes>, Error> {
        let mut response = match self.response.take() {
            Some(response) => response,
            None => self.open().await?,
        };
        let part = response.chunk().await;
        let part = part.map_err(|error| Error::call(&self.image, self.what(), error))?;
        if part.is_some() {
            self.response = Some(response);
        }
        Ok(part)
    }

    async fn open(&mut self) -> Result<Response, Error> {
        if self.place.is_none() {
            self.place = self.client.transfer().await;
        }
        let path = format!("blobs/{}", self.digest);
        let start = self.received;
        let what = self.what();
        let access = Access::pull();
        let response = self.client.send(
            &self.image,
            what.clone(),
            &access,
            |http, address| {
                let request = RegistryClient::request(http, &Method::GET, address);
                if start > 0 {
                    request.header("range", format!("bytes={start}-"))
                } else {
                    request
                }
            },
            &path,
        );
        let response = response.await?;
        let response = self.client.checked(&self.image, what, response).await?;
        // A registry that ignores the range starts again.
        let partial = response.status() == StatusCode::PARTIAL_CONTENT;
        self.skip = if partial { 0 } else { start };
        Ok(response)
    }

    fn without_skipped(&mut self, mut part: Bytes) -> Bytes {
        let skipped = self.skip.min(part.len() as u64);
        self.skip -= skipped;
        part.split_off(skipped as usize)
    }

    fn accept(&mut self, part: Bytes) -> Result<Bytes, Error> {
        self.received += part.len() as u64;
        if self.received > self.size {
            self.response = None;
            return Err(self.size_error());
        }
        if self.received >= self.progress_from + LEAST_PROGRESS {
            self.progress_from = self.received;
            self.failures = 0;
        }
        if let Some(hasher) = &mut self.hasher {
            hasher.update(&part);
        }
        Ok(part)
    }

    /// Forgets the response; the next part is asked for anew, from where this one ended.
    fn resume(&mut self, error: Error) -> Result<(), Error> {
        self.response = None;
        self.failures += 1;
        if self.failures > MAX_RESUMES {
            return Err(error);
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<Option<Bytes>, Error> {
        if let Some(hasher) = self.hasher.take() {
            hasher
                .finish_as(&self.digest)
                .map_err(|source| Error::Content {
                    image: self.image.to_string(),
                    what: self.what(),
                    source,
                })?;
        }
        Ok(None)
    }

    fn size_error(&self) -> Error {
        Error::Size {
            image: self.image.to_string(),
            what: self.what(),
            wanted: self.size,
            found: self.received,
        }
    }

    fn what(&self) -> What {
        What::Blob(self.digest.clone())
    }
}
