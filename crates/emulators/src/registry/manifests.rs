//! Manifests of a repository, and the tags that lead to them.

use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, header};
use neap_kit::client::{Body, ReadError};

use super::{
    Answer, Registry,
    blobs::CONTENT_DIGEST,
    digest::Digest,
    error::{ErrorCode, RegistryError},
    index::{Change, ManifestRecord},
    manifest,
    names::RepositoryName,
    route::Reference,
    uploads::answer,
};

const OCI_SUBJECT: HeaderName = HeaderName::from_static("oci-subject");

impl Registry {
    pub(super) async fn get_manifest(
        &self,
        name: &RepositoryName,
        reference: &Reference,
        request: Request<Body>,
    ) -> Answer {
        let (digest, record) = self.find_manifest(name, reference)?;
        if !accepts(request.headers(), &record.media_type) {
            let message = format!("the manifest has the type {}", record.media_type);
            return Err(RegistryError::new(ErrorCode::ManifestUnknown, message));
        }
        self.contents.length(&digest, self.clock.uptime());
        let limit = usize::try_from(record.size).unwrap_or(usize::MAX);
        let content = self.contents.bytes(&digest, limit).await?;
        let mut response = Response::new(Body::from(content));
        let headers = response.headers_mut();
        let mut text = |name, value: &str| {
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(name, value);
            }
        };
        text(header::CONTENT_TYPE, &record.media_type);
        text(CONTENT_DIGEST, &digest.to_string());
        text(header::ETAG, &format!("\"{digest}\""));
        Ok(response)
    }

    pub(super) fn find_manifest(
        &self,
        name: &RepositoryName,
        reference: &Reference,
    ) -> Result<(Digest, ManifestRecord), RegistryError> {
        let index = self.index.lock();
        let Some(repository) = index.repository(name) else {
            return Err(unknown(reference));
        };
        let digest = match reference {
            Reference::Digest(digest) => Some(digest),
            Reference::Tag(tag) => repository.tags.get(tag),
        };
        let digest = digest.ok_or_else(|| unknown(reference))?;
        let record = repository.manifests.get(digest);
        let record = record.ok_or_else(|| unknown(reference))?;
        Ok((digest.clone(), record.clone()))
    }

    pub(super) async fn put_manifest(
        &self,
        name: &RepositoryName,
        reference: &Reference,
        request: Request<Body>,
    ) -> Answer {
        let content_type = request.headers().get(header::CONTENT_TYPE).cloned();
        let content_type = content_type.as_ref().and_then(|it| it.to_str().ok());
        let limit = self.settings.max_manifest_bytes;
        let content = request.into_body().bytes(limit).await;
        let content = content.map_err(|error| match error {
            ReadError::TooLong(limit) => RegistryError::new(
                ErrorCode::ManifestTooLarge,
                format!("a manifest has at most {limit} bytes"),
            ),
            ReadError::Interrupted(_) => {
                RegistryError::new(ErrorCode::ManifestInvalid, "the connection broke")
            }
        })?;
        let digest = match reference {
            Reference::Tag(_) => Digest::of(&content),
            Reference::Digest(digest) if digest.matches(&content) => digest.clone(),
            Reference::Digest(digest) => {
                let message = "the manifest has another digest";
                let error = RegistryError::new(ErrorCode::DigestInvalid, message);
                return Err(error.about("digest", digest));
            }
        };
        let parsed = manifest::parse(&content, content_type)?;
        // Nothing that it names may go between the check and the change.
        let changing = self.changing.lock().await;
        parsed.check(self.index.lock().repository(name))?;
        self.store(&digest, &content).await?;
        let change = Change::PutManifest(digest.clone(), parsed.record);
        self.persist_and_apply(name, &change).await?;
        if let Reference::Tag(tag) = reference {
            let change = Change::SetTag(tag.clone(), digest.clone());
            self.persist_and_apply(name, &change).await?;
        }
        drop(changing);
        let mut headers = vec![
            (header::LOCATION, format!("/v2/{name}/manifests/{digest}")),
            (CONTENT_DIGEST, digest.to_string()),
        ];
        if let Some(subject) = parsed.subject {
            headers.push((OCI_SUBJECT, subject.to_string()));
        }
        Ok(answer(StatusCode::CREATED, headers))
    }

    async fn store(&self, digest: &Digest, content: &[u8]) -> Result<(), RegistryError> {
        let now = self.clock.uptime();
        if self.contents.length(digest, now).is_some() {
            return Ok(());
        }
        // A name of its own: of a request whose client has disconnected, the file may still be there.
        let mut incoming = self.contents.begin(&self.uploads.next_id()).await?;
        self.contents.append(&mut incoming, content).await?;
        self.contents.commit(incoming, digest, now).await
    }

    /// Removes a tag, or a manifest with all of its tags.
    pub(super) async fn delete_manifest(
        &self,
        name: &RepositoryName,
        reference: &Reference,
    ) -> Answer {
        self.check_deletion()?;
        self.find_manifest(name, reference)?;
        let change = match reference {
            Reference::Tag(tag) => Change::RemoveTag(tag.clone()),
            Reference::Digest(digest) => Change::RemoveManifest(digest.clone()),
        };
        self.change(name, change).await?;
        Ok(answer(StatusCode::ACCEPTED, []))
    }
}

fn unknown(reference: &Reference) -> RegistryError {
    let error = RegistryError::new(
        ErrorCode::ManifestUnknown,
        "the manifest is not in this repository",
    );
    match reference {
        Reference::Tag(tag) => error.about("tag", tag),
        Reference::Digest(digest) => error.about("digest", digest),
    }
}

/// Whether the caller accepts this type. A manifest has one form only, so there is nothing to choose.
fn accepts(headers: &HeaderMap, media_type: &str) -> bool {
    let mut accepted = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|value| value.split(';').next().unwrap_or(value).trim())
        .filter(|value| !value.is_empty())
        .peekable();
    if accepted.peek().is_none() {
        return true;
    }
    accepted.any(|accepted| matches!(accepted, "*/*" | "application/*") || accepted == media_type)
}
