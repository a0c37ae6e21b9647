//! Writes: blobs, manifests, deletions.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{Method, StatusCode};
use neap_kit::client::{Response, RetryPolicy, percent_encoded, resolve};

use super::{Access, BlobSource, Error, RegistryClient, What};
use crate::oci::{
    digest::{self, Digest},
    manifest::{Descriptor, Manifest},
    reference::ImageRef,
};

/// What is sent in one request. A blob that is not larger is sent at once.
const CHUNK: usize = 8 << 20;
/// Whole uploads that are tried.
const MAX_UPLOADS: u32 = 3;
/// The longest upload of a chunk, and the longest time in which a registry puts the chunks together.
const CHUNK_DEADLINE: Duration = Duration::from_mins(5);

impl RegistryClient {
    /// Stores a blob that is in memory, unless it is there.
    pub async fn push_bytes(
        &self,
        target: &ImageRef,
        digest: &Digest,
        content: &Bytes,
    ) -> Result<(), Error> {
        let what = What::Upload(digest.clone());
        let mut attempt = 1;
        loop {
            let failure = match self.upload_at_once(target, digest, content).await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            // The answer to an upload that succeeded may have been lost; its address is then gone.
            if self.has(target, digest).await.unwrap_or(false) {
                return Ok(());
            }
            let again = failure.is_transient() || matches!(failure, Error::NotFound { .. });
            if attempt >= MAX_UPLOADS || !again {
                return Err(failure);
            }
            tracing::debug!(%target, %what, attempt, error = %failure, "an upload is begun again");
            attempt += 1;
        }
    }

    async fn upload_at_once(
        &self,
        target: &ImageRef,
        digest: &Digest,
        content: &Bytes,
    ) -> Result<(), Error> {
        let location = self.begin_upload(target, digest).await?;
        self.finish_upload(target, digest, &location, content.clone())
            .await
    }

    /// Stores a blob that is read from another repository or from a file.
    pub async fn push_stream(
        &self,
        target: &ImageRef,
        digest: &Digest,
        mut source: impl BlobSource,
        mut sent: impl FnMut(u64),
    ) -> Result<(), Error> {
        let mut location = None;
        let mut offset = 0_u64;
        let mut buffer = BytesMut::new();
        while let Some(part) = source.next().await? {
            buffer.extend_from_slice(&part);
            while buffer.len() >= CHUNK {
                let chunk = buffer.split_to(CHUNK).freeze();
                let at = match location.take() {
                    Some(at) => at,
                    None => self.begin_upload(target, digest).await?,
                };
                let length = chunk.len() as u64;
                location = Some(self.append(target, digest, at, offset, chunk).await?);
                offset += length;
                sent(length);
            }
        }
        let rest = buffer.freeze();
        let length = rest.len() as u64;
        match location {
            None => self.push_bytes(target, digest, &rest).await?,
            Some(at) => {
                let at = if rest.is_empty() {
                    at
                } else {
                    self.append(target, digest, at, offset, rest).await?
                };
                let finished = self.finish_upload(target, digest, &at, Bytes::new()).await;
                if let Err(error) = finished
                    && !self.has(target, digest).await.unwrap_or(false)
                {
                    return Err(error);
                }
            }
        }
        sent(length);
        Ok(())
    }

    /// Makes a blob of another repository of the same registry one of this repository. False if the registry
    /// does not do that, and the blob has to be copied.
    pub async fn mount(
        &self,
        target: &ImageRef,
        digest: &Digest,
        from: &ImageRef,
    ) -> Result<bool, Error> {
        let (here, there) = (target.endpoint(), from.endpoint());
        if here.host != there.host {
            return Ok(false);
        }
        let what = What::Upload(digest.clone());
        let path = format!(
            "blobs/uploads/?mount={}&from={}",
            percent_encoded(digest.as_ref()),
            percent_encoded(&there.repository)
        );
        let make = |http: &neap_kit::client::Client, address: &str| {
            Self::request(http, &Method::POST, address)
                .header("content-length", "0")
                .idempotent(true)
        };
        let response = self
            .send(
                target,
                what.clone(),
                &Access::mount(&there.repository),
                make,
                &path,
            )
            .await?;
        match response.status() {
            StatusCode::CREATED => Ok(true),
            // An upload was begun instead, or the registry does not allow the other repository.
            StatusCode::ACCEPTED => {
                self.cancel_upload(target, digest, &response).await;
                Ok(false)
            }
            StatusCode::NOT_FOUND | StatusCode::FORBIDDEN | StatusCode::METHOD_NOT_ALLOWED => {
                Ok(false)
            }
            _ => self.checked(target, what, response).await.map(|_| false),
        }
    }

    /// Stores a manifest under a tag or its digest. Everything that it names must be there.
    pub async fn push_manifest(&self, target: &ImageRef, manifest: &Manifest) -> Result<(), Error> {
        let selector = target
            .tag()
            .map_or_else(|| manifest.digest.to_string(), str::to_owned);
        let path = format!("manifests/{selector}");
        let make = |http: &neap_kit::client::Client, address: &str| {
            Self::request(http, &Method::PUT, address)
                .header("content-type", &manifest.media_type)
                .body(manifest.bytes.clone())
        };
        let response = self
            .send(target, What::Manifest, &Access::push(), make, &path)
            .await?;
        let response = self.checked(target, What::Manifest, response).await?;
        let stored = response
            .header("docker-content-digest")
            .and_then(|text| digest::parse(text).ok());
        match stored {
            Some(stored)
                if stored != manifest.digest
                    && stored.algorithm() == manifest.digest.algorithm() =>
            {
                Err(Error::Content {
                    image: target.to_string(),
                    what: What::Manifest,
                    source: digest::Error::Mismatch {
                        wanted: Box::new(manifest.digest.clone()),
                        found: Box::new(stored),
                    },
                })
            }
            _ => Ok(()),
        }
    }

    /// Deletes a manifest by its digest, or a tag. False if there is none.
    pub async fn delete(&self, image: &ImageRef) -> Result<bool, Error> {
        let path = format!("manifests/{}", image.selector());
        let make = |http: &neap_kit::client::Client, address: &str| {
            Self::request(http, &Method::DELETE, address)
        };
        let response = self
            .send(image, What::Manifest, &Access::delete(), make, &path)
            .await?;
        if response.status() == StatusCode::NOT_FOUND {
            return Ok(false);
        }
        self.checked(image, What::Manifest, response)
            .await
            .map(|_| true)
    }

    async fn has(&self, target: &ImageRef, digest: &Digest) -> Result<bool, Error> {
        let descriptor = Descriptor::new(
            oci_spec::image::MediaType::ImageLayerGzip,
            0,
            digest.clone(),
        );
        self.has_blob(target, &descriptor).await
    }

    /// The address of a new upload.
    async fn begin_upload(&self, target: &ImageRef, digest: &Digest) -> Result<String, Error> {
        let what = What::Upload(digest.clone());
        // Beginning twice leaves an upload behind that the registry forgets.
        let make = |http: &neap_kit::client::Client, address: &str| {
            Self::request(http, &Method::POST, address)
                .header("content-length", "0")
                .idempotent(true)
        };
        let response = self
            .send(
                target,
                what.clone(),
                &Access::push(),
                make,
                "blobs/uploads/",
            )
            .await?;
        let response = self.checked(target, what, response).await?;
        location(target, digest, &response)
    }

    /// Sends the next chunk; after a failure, as much of it as the registry does not have.
    async fn append(
        &self,
        target: &ImageRef,
        digest: &Digest,
        at: String,
        offset: u64,
        chunk: Bytes,
    ) -> Result<String, Error> {
        let what = What::Upload(digest.clone());
        let (mut at, mut start) = (at, 0_usize);
        for attempt in 1..=MAX_UPLOADS {
            let rest = chunk.slice(start..);
            let from = offset + start as u64;
            let range = format!("{from}-{}", from + rest.len() as u64 - 1);
            let make = |http: &neap_kit::client::Client| {
                Self::request(http, &Method::PATCH, &at)
                    .header("content-type", "application/octet-stream")
                    .header("content-range", &range)
                    .body(rest.clone())
                    .deadline(CHUNK_DEADLINE)
                    .retry(upload_policy())
            };
            let sent = match self
                .send_to(target, what.clone(), &Access::push(), &at, make)
                .await
            {
                Ok(response) => self.checked(target, what.clone(), response).await,
                Err(error) => Err(error),
            };
            let failure = match sent {
                Ok(response) => return location(target, digest, &response),
                Err(error) => error,
            };
            if attempt == MAX_UPLOADS || !failure.is_transient() {
                return Err(failure);
            }
            let (next, received) = self.upload_state(target, digest, &at).await?;
            at = next;
            match received.checked_sub(offset) {
                Some(done) if done == chunk.len() as u64 => return Ok(at),
                Some(done) if done < chunk.len() as u64 => start = done as usize,
                _ => return Err(failure),
            }
        }
        Err(Error::protocol(
            target,
            what,
            "the upload does not progress",
        ))
    }

    /// Where an upload goes on, and how many bytes of it arrived.
    async fn upload_state(
        &self,
        target: &ImageRef,
        digest: &Digest,
        at: &str,
    ) -> Result<(String, u64), Error> {
        let what = What::Upload(digest.clone());
        let make = |http: &neap_kit::client::Client| Self::request(http, &Method::GET, at);
        let response = self
            .send_to(target, what.clone(), &Access::push(), at, make)
            .await?;
        let response = self.checked(target, what, response).await?;
        // `0-0` is what registries say of nothing and of one byte alike; chunks are larger than that.
        let end = response
            .header("range")
            .and_then(|text| text.rsplit(['-', '=']).next()?.parse::<u64>().ok());
        let received = end.filter(|end| *end > 0).map_or(0, |end| end + 1);
        let next = location(target, digest, &response).unwrap_or_else(|_| at.to_owned());
        Ok((next, received))
    }

    async fn finish_upload(
        &self,
        target: &ImageRef,
        digest: &Digest,
        at: &str,
        content: Bytes,
    ) -> Result<(), Error> {
        let what = What::Upload(digest.clone());
        let separator = if at.contains('?') { '&' } else { '?' };
        let address = format!("{at}{separator}digest={}", percent_encoded(digest.as_ref()));
        let make = |http: &neap_kit::client::Client| {
            Self::request(http, &Method::PUT, &address)
                .header("content-type", "application/octet-stream")
                .body(content.clone())
                .deadline(CHUNK_DEADLINE)
                .retry(upload_policy())
        };
        let response = self
            .send_to(target, what.clone(), &Access::push(), &address, make)
            .await?;
        self.checked(target, what, response).await.map(drop)
    }

    /// Tells the registry that an upload is not needed. It forgets uploads also without being told.
    async fn cancel_upload(&self, target: &ImageRef, digest: &Digest, begun: &Response) {
        let Ok(at) = location(target, digest, begun) else {
            return;
        };
        let make = |http: &neap_kit::client::Client| Self::request(http, &Method::DELETE, &at);
        let what = What::Upload(digest.clone());
        if let Err(error) = self.send_to(target, what, &Access::push(), &at, make).await {
            tracing::debug!(%target, %error, "an upload that is not needed was not cancelled");
        }
    }
}

/// One attempt may take as long as the whole call: a chunk is larger than what other requests send.
fn upload_policy() -> RetryPolicy {
    RetryPolicy {
        attempt_timeout: CHUNK_DEADLINE,
        ..RetryPolicy::default()
    }
}

/// The address in the header `Location`, which may be relative.
fn location(target: &ImageRef, digest: &Digest, response: &Response) -> Result<String, Error> {
    let location = response
        .header("location")
        .and_then(|text| resolve(response.uri(), text));
    let missing = || {
        Error::protocol(
            target,
            What::Upload(digest.clone()),
            "the registry gave no address for the upload",
        )
    };
    location.map(|uri| uri.to_string()).ok_or_else(missing)
}
