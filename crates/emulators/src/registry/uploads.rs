//! Uploads of blobs: in one request, in chunks, or from another repository.

use std::{
    collections::BTreeMap,
    hash::{BuildHasher, RandomState},
    sync::Arc,
};

use http::{HeaderName, HeaderValue, Request, Response, StatusCode, Uri, header};
use neap_kit::{client::Body, clock::Uptime};
use parking_lot::Mutex;
use tokio::sync::Mutex as AsyncMutex;

use super::{
    Answer, Registry,
    contents::Incoming,
    digest::Digest,
    error::{ErrorCode, RegistryError},
    index::Change,
    names::RepositoryName,
    route,
};

/// The uploads under way.
#[derive(Debug, Default)]
pub(super) struct Uploads {
    open: Mutex<BTreeMap<String, Arc<Upload>>>,
    random: RandomState,
    count: Mutex<u64>,
}

#[derive(Debug)]
struct Upload {
    repository: RepositoryName,
    touched: Mutex<Uptime>,
    /// None once it is finished or cancelled. Locked while a request writes.
    incoming: AsyncMutex<Option<Incoming>>,
}

impl Uploads {
    /// A name that no other content has while it is received.
    pub(super) fn next_id(&self) -> String {
        let mut count = self.count.lock();
        *count += 1;
        let half = |salt: u8| self.random.hash_one((*count, salt));
        format!("{:016x}{:016x}", half(1), half(2))
    }

    fn find(&self, name: &RepositoryName, id: &str) -> Result<Arc<Upload>, RegistryError> {
        let upload = self.open.lock().get(id).cloned();
        let upload = upload.filter(|upload| upload.repository == *name);
        upload.ok_or_else(|| unknown(id))
    }

    fn close(&self, id: &str) {
        self.open.lock().remove(id);
    }

    /// The uploads that got no data since `before`.
    fn stale(&self, before: Uptime) -> Vec<(String, Arc<Upload>)> {
        let open = self.open.lock();
        let stale = open.iter().filter(|(_, it)| *it.touched.lock() < before);
        stale
            .map(|(id, upload)| (id.clone(), upload.clone()))
            .collect()
    }
}

/// The repository that a request wants to mount a blob from.
fn mount_source(uri: &Uri) -> Option<RepositoryName> {
    query(uri, "mount")?;
    query(uri, "from")?.parse().ok()
}

fn query(uri: &Uri, name: &str) -> Option<String> {
    let query = uri.query().unwrap_or_default();
    form_urlencoded::parse(query.as_bytes())
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.into_owned())
}

fn unknown(id: &str) -> RegistryError {
    RegistryError::new(ErrorCode::BlobUploadUnknown, "there is no such upload").about("id", id)
}

impl Registry {
    pub(super) async fn start_upload(
        &self,
        name: &RepositoryName,
        request: Request<Body>,
    ) -> Answer {
        let uri = request.uri().clone();
        if let Some(digest) = query(&uri, "mount") {
            let digest = route::digest(&digest)?;
            let from = mount_source(&uri).filter(|from| self.may_read(from, &request));
            if let Some(from) = from
                && self.mount(name, &digest, &from).await?
            {
                return Ok(created(name, &digest));
            }
        }
        let id = self.uploads.next_id();
        let incoming = self.contents.begin(&id).await?;
        let upload = Arc::new(Upload {
            repository: name.clone(),
            touched: Mutex::new(self.clock.uptime()),
            incoming: AsyncMutex::new(Some(incoming)),
        });
        let open = upload.clone();
        self.uploads.open.lock().insert(id.clone(), open);
        if let Some(digest) = query(&uri, "digest") {
            let finished = self.receive_all(name, &id, &upload, &digest, request).await;
            if finished.is_err() {
                self.drop_upload(&id, &upload).await;
            }
            return finished;
        }
        Ok(accepted(StatusCode::ACCEPTED, name, &id, 0))
    }

    /// Puts a blob of another repository into this one, if it is there.
    async fn mount(
        &self,
        name: &RepositoryName,
        digest: &Digest,
        from: &RepositoryName,
    ) -> Result<bool, RegistryError> {
        let there = self.index.lock().has_blob(from, digest);
        let known = self.contents.length(digest, self.clock.uptime()).is_some();
        if !there || !known {
            return Ok(false);
        }
        self.change(name, Change::AddBlob(digest.clone())).await?;
        Ok(true)
    }

    pub(super) async fn append_to_upload(
        &self,
        name: &RepositoryName,
        id: &str,
        request: Request<Body>,
    ) -> Answer {
        let upload = self.uploads.find(name, id)?;
        let mut incoming = upload.incoming.try_lock().map_err(|_| busy())?;
        let incoming = incoming.as_mut().ok_or_else(|| unknown(id))?;
        check_range(name, id, incoming.received(), &request)?;
        self.receive(&upload, incoming, request.into_body()).await?;
        Ok(accepted(
            StatusCode::ACCEPTED,
            name,
            id,
            incoming.received(),
        ))
    }

    pub(super) async fn finish_upload(
        &self,
        name: &RepositoryName,
        id: &str,
        request: Request<Body>,
    ) -> Answer {
        let upload = self.uploads.find(name, id)?;
        let Some(digest) = query(request.uri(), "digest") else {
            let message = "the digest of the blob is missing: ?digest=sha256:…";
            return Err(RegistryError::new(ErrorCode::DigestInvalid, message));
        };
        self.receive_all(name, id, &upload, &digest, request).await
    }

    /// Receives the rest of an upload, and stores the blob.
    async fn receive_all(
        &self,
        name: &RepositoryName,
        id: &str,
        upload: &Upload,
        digest: &str,
        request: Request<Body>,
    ) -> Answer {
        let digest = route::digest(digest)?;
        let mut place = upload.incoming.try_lock().map_err(|_| busy())?;
        let incoming = place.as_mut().ok_or_else(|| unknown(id))?;
        check_range(name, id, incoming.received(), &request)?;
        self.receive(upload, incoming, request.into_body()).await?;
        let Some(incoming) = place.take() else {
            return Err(unknown(id));
        };
        // From here on the upload is over, whatever the digest says.
        self.uploads.close(id);
        let now = self.clock.uptime();
        self.contents.commit(incoming, &digest, now).await?;
        self.change(name, Change::AddBlob(digest.clone())).await?;
        Ok(created(name, &digest))
    }

    async fn receive(
        &self,
        upload: &Upload,
        incoming: &mut Incoming,
        mut body: Body,
    ) -> Result<(), RegistryError> {
        while let Some(part) = body.chunk().await {
            let part = part.map_err(|_| {
                // What has arrived stays, and the caller may continue after it.
                RegistryError::new(ErrorCode::BlobUploadInvalid, "the connection broke")
            })?;
            self.contents.append(incoming, &part).await?;
            *upload.touched.lock() = self.clock.uptime();
        }
        Ok(())
    }

    pub(super) fn upload_status(&self, name: &RepositoryName, id: &str) -> Answer {
        let upload = self.uploads.find(name, id)?;
        let incoming = upload.incoming.try_lock().map_err(|_| busy())?;
        let received = incoming.as_ref().ok_or_else(|| unknown(id))?.received();
        Ok(accepted(StatusCode::NO_CONTENT, name, id, received))
    }

    pub(super) async fn cancel_upload(&self, name: &RepositoryName, id: &str) -> Answer {
        let upload = self.uploads.find(name, id)?;
        self.drop_upload(id, &upload).await;
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        Ok(response)
    }

    async fn drop_upload(&self, id: &str, upload: &Upload) {
        self.uploads.close(id);
        drop(upload.incoming.lock().await.take());
    }

    /// Gives up the uploads that got no data for too long; returns their number.
    pub(super) async fn drop_stale_uploads(&self) -> usize {
        let now = self.clock.uptime();
        let Some(before) = now.checked_sub(self.settings.upload_expiry) else {
            return 0;
        };
        let stale = self.uploads.stale(before);
        for (id, upload) in &stale {
            self.drop_upload(id, upload).await;
        }
        stale.len()
    }
}

fn busy() -> RegistryError {
    let message = "another request writes to this upload";
    RegistryError::new(ErrorCode::BlobUploadInvalid, message)
}

/// A chunk begins where the last one has ended.
fn check_range(
    name: &RepositoryName,
    id: &str,
    received: u64,
    request: &Request<Body>,
) -> Result<(), RegistryError> {
    let headers = request.headers();
    let Some(range) = headers.get(header::CONTENT_RANGE) else {
        return Ok(());
    };
    let text = range.to_str().unwrap_or_default();
    let text = text.strip_prefix("bytes ").unwrap_or(text);
    let text = text.split('/').next().unwrap_or(text);
    let range = text.split_once('-');
    let range = range.and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
    let Some((from, to)): Option<(u64, u64)> = range else {
        let message = "Content-Range has the form START-END";
        return Err(RegistryError::new(ErrorCode::RangeInvalid, message));
    };
    let length = headers.get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    let length = length.or_else(|| http_body::Body::size_hint(request.body()).exact());
    let fits = length.is_none_or(|length| to.checked_sub(from) == length.checked_sub(1));
    if from == received && to >= from && fits {
        return Ok(());
    }
    let message = format!("the next chunk begins at byte {received} and is as long as its range");
    Err(RegistryError::new(ErrorCode::RangeInvalid, message)
        .with_header(header::RANGE, range_text(received))
        .with_header(header::LOCATION, location(name, id)))
}

fn location(name: &RepositoryName, id: &str) -> String {
    format!("/v2/{name}/blobs/uploads/{id}")
}

/// The bytes that have arrived. The specification has no text for none; registries say `0-0`.
fn range_text(received: u64) -> String {
    format!("0-{}", received.saturating_sub(1))
}

fn accepted(status: StatusCode, name: &RepositoryName, id: &str, received: u64) -> Response<Body> {
    let headers = [
        (header::LOCATION, location(name, id)),
        (header::RANGE, range_text(received)),
        (HeaderName::from_static("docker-upload-uuid"), id.to_owned()),
    ];
    answer(status, headers)
}

pub(super) fn created(name: &RepositoryName, digest: &Digest) -> Response<Body> {
    let headers = [
        (header::LOCATION, format!("/v2/{name}/blobs/{digest}")),
        (super::blobs::CONTENT_DIGEST, digest.to_string()),
        (header::CONTENT_LENGTH, "0".to_owned()),
    ];
    answer(StatusCode::CREATED, headers)
}

pub(super) fn answer(
    status: StatusCode,
    headers: impl IntoIterator<Item = (HeaderName, String)>,
) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    for (name, value) in headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}
