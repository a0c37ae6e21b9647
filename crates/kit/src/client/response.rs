//! Responses.

use std::{fmt, time::Duration};

use bytes::Bytes;
use futures::Stream;
use http::{HeaderMap, StatusCode, Uri};
use serde::de::DeserializeOwned;

use super::{
    body::{Body, ReadError},
    error::Error,
    retry::retry_after,
};
use crate::clock::{Clock, Uptime};

/// The longest part of an error's body that messages show.
const MAX_ERROR_TEXT: usize = 400;
/// The longest body of an error that is read.
const MAX_ERROR_BYTES: usize = 64 << 10;

/// A response whose body has not been read yet.
pub struct Response {
    pub(super) url: String,
    pub(super) uri: Uri,
    pub(super) head: http::response::Parts,
    pub(super) body: Body,
    pub(super) clock: Clock,
    /// The longest time between two parts of the body.
    pub(super) idle: Duration,
    /// The deadline of the call.
    pub(super) deadline: Uptime,
}

impl Response {
    /// The status.
    pub fn status(&self) -> StatusCode {
        self.head.status
    }

    /// The headers.
    pub fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// The value of a header, if it is there and is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.headers.get(name)?.to_str().ok()
    }

    /// The address that answered, after redirects.
    pub fn uri(&self) -> &Uri {
        &self.uri
    }

    /// The time after which the server wants to see the next request.
    pub fn retry_after(&self) -> Option<Duration> {
        retry_after(&self.head.headers, self.clock.now())
    }

    /// The same response, or an error with the beginning of the body if the status is not a success.
    pub async fn success(self) -> Result<Self, Error> {
        if self.head.status.is_success() {
            return Ok(self);
        }
        let (url, status) = (self.url.clone(), self.head.status);
        let retry_after = self.retry_after();
        // The status is the error; a body that cannot be read adds nothing to it.
        let body = self.bytes(MAX_ERROR_BYTES).await.unwrap_or_default();
        Err(Error::Status {
            url,
            status,
            body: excerpt(&body),
            retry_after,
        })
    }

    /// The next part of the body; none at the end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        let next = self.clock.within(self.idle, self.body.chunk()).await;
        match next {
            None => Err(Error::TimedOut {
                url: self.url.clone(),
                after: self.idle,
            }),
            Some(None) => Ok(None),
            Some(Some(Ok(chunk))) => Ok(Some(chunk)),
            Some(Some(Err(source))) => Err(Error::Interrupted {
                url: self.url.clone(),
                source,
            }),
        }
    }

    /// The whole body, if it has at most `limit` bytes and arrives before the deadline of the call.
    pub async fn bytes(self, limit: usize) -> Result<Bytes, Error> {
        let left = self.deadline.saturating_sub(self.clock.uptime());
        let time = left.max(self.idle);
        let Self {
            url, body, clock, ..
        } = self;
        match clock.within(time, body.bytes(limit)).await {
            None => Err(Error::TimedOut { url, after: time }),
            Some(read) => read.map_err(|error| unreadable(url, error)),
        }
    }

    /// The whole body as text; what is not UTF-8 is replaced.
    pub async fn text(self, limit: usize) -> Result<String, Error> {
        let bytes = self.bytes(limit).await?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The whole body, parsed as JSON.
    pub async fn json<T: DeserializeOwned>(self, limit: usize) -> Result<T, Error> {
        let url = self.url.clone();
        let bytes = self.bytes(limit).await?;
        serde_json::from_slice(&bytes).map_err(|source| Error::Json { url, source })
    }

    /// The body as a stream that fails if no part of it arrives for some time.
    pub fn into_stream(self) -> impl Stream<Item = Result<Bytes, Error>> + Send {
        futures::stream::unfold(Some(self), |response| async move {
            let mut response = response?;
            match response.chunk().await {
                Ok(None) => None,
                Ok(Some(chunk)) => Some((Ok(chunk), Some(response))),
                Err(error) => Some((Err(error), None)),
            }
        })
    }

    /// The same stream as the body of another request or response.
    pub fn into_body(self) -> Body {
        Body::from_stream(self.into_stream())
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("url", &self.url)
            .field("status", &self.head.status)
            .finish_non_exhaustive()
    }
}

/// A response that was read as a whole.
#[derive(Debug, Clone)]
pub struct Fetched {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// The address that answered, after redirects.
    pub uri: Uri,
    pub(super) url: String,
    pub(super) retry_after: Option<Duration>,
}

impl Fetched {
    /// The same response, or an error with the beginning of the body if the status is not a success.
    pub fn success(self) -> Result<Self, Error> {
        if self.status.is_success() {
            return Ok(self);
        }
        Err(Error::Status {
            body: excerpt(&self.body),
            url: self.url,
            status: self.status,
            retry_after: self.retry_after,
        })
    }

    /// The value of a header, if it is there and is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The time after which the server wants to see the next request.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// The body, parsed as JSON.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|source| Error::Json {
            url: self.url.clone(),
            source,
        })
    }
}

pub(super) fn unreadable(url: String, error: ReadError) -> Error {
    match error {
        ReadError::TooLong(limit) => Error::TooLong { url, limit },
        ReadError::Interrupted(source) => Error::Interrupted { url, source },
    }
}

/// The beginning of a body, on one line.
fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(MAX_ERROR_TEXT)]);
    let words: Vec<_> = text
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect();
    words.join(" ")
}
