//! Blobs of a repository.

use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header, request::Parts};

use super::{
    Answer, Registry,
    digest::Digest,
    error::{ErrorCode, RegistryError},
    index::Change,
    names::RepositoryName,
    uploads::answer,
};

pub(super) const CONTENT_DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");

impl Registry {
    pub(super) async fn get_blob(
        &self,
        name: &RepositoryName,
        digest: &Digest,
        request: &Parts,
    ) -> Answer {
        if !self.index.lock().has_blob(name, digest) {
            return Err(unknown(digest));
        }
        let length = self.contents.length(digest, self.clock.uptime());
        let length = length.ok_or_else(|| unknown(digest))?;
        let is_get = request.method == http::Method::GET;
        let range = range(&request.headers, length).filter(|_| is_get);
        let (status, first, count) = match range {
            None => (StatusCode::OK, 0, length),
            Some(Ok((first, last))) => (StatusCode::PARTIAL_CONTENT, first, last - first + 1),
            Some(Err(())) => {
                let message = format!("the blob has {length} bytes");
                return Err(RegistryError::new(ErrorCode::RangeInvalid, message)
                    .with_header(header::CONTENT_RANGE, format!("bytes */{length}")));
            }
        };
        let body = self.contents.read(digest, first, count).await?;
        let mut response = Response::new(body);
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/octet-stream"),
        );
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(count));
        headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        let mut text = |name, value: String| {
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.insert(name, value);
            }
        };
        text(CONTENT_DIGEST, digest.to_string());
        text(header::ETAG, format!("\"{digest}\""));
        if status == StatusCode::PARTIAL_CONTENT {
            let last = first + count - 1;
            text(
                header::CONTENT_RANGE,
                format!("bytes {first}-{last}/{length}"),
            );
        }
        Ok(response)
    }

    /// Takes a blob out of the repository. Its content is collected later, if no other has it.
    pub(super) async fn delete_blob(&self, name: &RepositoryName, digest: &Digest) -> Answer {
        self.check_deletion()?;
        if !self.index.lock().has_blob(name, digest) {
            return Err(unknown(digest));
        }
        self.change(name, Change::RemoveBlob(digest.clone()))
            .await?;
        Ok(answer(StatusCode::ACCEPTED, []))
    }

    pub(super) fn check_deletion(&self) -> Result<(), RegistryError> {
        if self.settings.deletion {
            return Ok(());
        }
        let message = "deletion is switched off in this registry";
        Err(RegistryError::new(ErrorCode::Unsupported, message))
    }

    /// Changes a repository, in the folder and in memory.
    pub(super) async fn change(
        &self,
        name: &RepositoryName,
        change: Change,
    ) -> Result<(), RegistryError> {
        let changing = self.changing.lock().await;
        self.persist_and_apply(name, &change).await?;
        drop(changing);
        Ok(())
    }

    /// The same, for a caller that holds the lock.
    pub(super) async fn persist_and_apply(
        &self,
        name: &RepositoryName,
        change: &Change,
    ) -> Result<(), RegistryError> {
        if let Some(folder) = &self.folder {
            folder.persist(name, change).await?;
        }
        self.index.lock().apply(name, change);
        Ok(())
    }
}

fn unknown(digest: &Digest) -> RegistryError {
    let message = "the blob is not in this repository";
    RegistryError::new(ErrorCode::BlobUnknown, message).about("digest", digest)
}

/// The first and last byte that are asked for, of a blob of this length. Several ranges, and what is no
/// range of bytes, count as none.
fn range(headers: &HeaderMap, length: u64) -> Option<Result<(u64, u64), ()>> {
    let text = headers.get(header::RANGE)?.to_str().ok()?;
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    let (first, last) = match (first.trim(), last.trim()) {
        ("", last) => {
            let count: u64 = last.parse().ok()?;
            (length.saturating_sub(count), length.saturating_sub(1))
        }
        (first, "") => (first.parse().ok()?, length.saturating_sub(1)),
        (first, last) => {
            let last: u64 = last.parse().ok()?;
            (first.parse().ok()?, last.min(length.saturating_sub(1)))
        }
    };
    if length == 0 || first >= length || last < first {
        return Some(Err(()));
    }
    Some(Ok((first, last)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_names_the_bytes_that_exist() {
        for (text, expected) in [
            ("bytes=0-3", Some(Ok((0, 3)))),
            ("bytes=2-", Some(Ok((2, 9)))),
            ("bytes=-4", Some(Ok((6, 9)))),
            ("bytes=-99", Some(Ok((0, 9)))),
            ("bytes=5-99", Some(Ok((5, 9)))),
            ("bytes=10-", Some(Err(()))),
            ("bytes=4-3", Some(Err(()))),
            ("bytes=0-1,3-4", None),
            ("items=0-1", None),
            ("bytes=x-1", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::RANGE, text.parse().unwrap());
            assert_eq!(range(&headers, 10), expected, "{text}");
        }
        assert_eq!(range(&HeaderMap::new(), 10), None);
    }
}
