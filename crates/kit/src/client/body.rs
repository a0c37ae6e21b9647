//! Bodies of requests and responses, as streams.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::{Stream, TryStreamExt, future::BoxFuture};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::{BodyExt, Empty, Full, StreamBody, combinators::UnsyncBoxBody};
use tower::BoxError;

/// A body that is read once, frame by frame: that of a response, or of one attempt of a request.
pub struct Body {
    inner: UnsyncBoxBody<Bytes, BoxError>,
    /// The length that the sender announced, where the stream itself does not know it.
    announced: Option<u64>,
}

impl Body {
    /// A body without content.
    pub fn empty() -> Self {
        Self::new(Empty::new())
    }

    /// A body that is read from another.
    pub fn new<B>(body: B) -> Self
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self {
            inner: body.map_err(Into::into).boxed_unsync(),
            announced: None,
        }
    }

    /// A body whose parts come from a stream.
    pub fn from_stream<S, E>(stream: S) -> Self
    where
        S: Stream<Item = Result<Bytes, E>> + Send + 'static,
        E: Into<BoxError> + 'static,
    {
        Self::new(StreamBody::new(stream.map_ok(Frame::data)))
    }

    /// The same body with a length, which becomes its Content-Length.
    pub fn with_length(mut self, length: u64) -> Self {
        self.announced = Some(length);
        self
    }

    /// The next part of the content; none at the end. Trailers are skipped.
    pub async fn chunk(&mut self) -> Option<Result<Bytes, BoxError>> {
        loop {
            match self.inner.frame().await? {
                Ok(frame) => {
                    if let Ok(data) = frame.into_data() {
                        return Some(Ok(data));
                    }
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// The parts of the content as a stream.
    pub fn into_stream(self) -> impl Stream<Item = Result<Bytes, BoxError>> + Send {
        futures::stream::unfold(self, |mut body| async move {
            let chunk = body.chunk().await?;
            Some((chunk, body))
        })
    }

    /// The whole content, if it has at most `limit` bytes.
    pub async fn bytes(mut self, limit: usize) -> Result<Bytes, ReadError> {
        let announced = self.size_hint().lower();
        if announced > limit as u64 {
            return Err(ReadError::TooLong(limit));
        }
        let mut content = Vec::new();
        while let Some(chunk) = self.chunk().await {
            let chunk = chunk.map_err(ReadError::Interrupted)?;
            if content.len() + chunk.len() > limit {
                return Err(ReadError::TooLong(limit));
            }
            content.extend_from_slice(&chunk);
        }
        Ok(content.into())
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Pin::new(&mut self.inner).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match self.announced {
            Some(length) => SizeHint::with_exact(length),
            None => self.inner.size_hint(),
        }
    }
}

impl From<Bytes> for Body {
    fn from(content: Bytes) -> Self {
        Self::new(Full::new(content))
    }
}

impl From<Vec<u8>> for Body {
    fn from(content: Vec<u8>) -> Self {
        Bytes::from(content).into()
    }
}

impl From<String> for Body {
    fn from(content: String) -> Self {
        Bytes::from(content).into()
    }
}

impl From<&'static str> for Body {
    fn from(content: &'static str) -> Self {
        Bytes::from_static(content.as_bytes()).into()
    }
}

impl Default for Body {
    fn default() -> Self {
        Self::empty()
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body")
            .field("size", &self.size_hint())
            .finish_non_exhaustive()
    }
}

/// Why a body could not be read as a whole.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It has more bytes than the reader accepts.
    #[error("the body has more than {0} bytes")]
    TooLong(usize),
    /// It ended early, or the connection broke.
    #[error("the body was interrupted")]
    Interrupted(#[source] BoxError),
}

/// Opens the body of a request anew for each attempt.
type OpenBody = Arc<dyn Fn() -> BoxFuture<'static, Result<Body, BoxError>> + Send + Sync>;

/// The content of a request. Whether it can be sent again decides whether the request is retried.
#[derive(Clone)]
pub(super) enum RequestBody {
    /// Sent from memory, as often as needed.
    Bytes(Bytes),
    /// Opened anew for each attempt, such as a file.
    Reopened(OpenBody),
    /// A stream that is sent once, taken by the first attempt.
    Once(Arc<parking_lot::Mutex<Option<Body>>>),
}

impl RequestBody {
    pub(super) fn once(body: Body) -> Self {
        Self::Once(Arc::new(parking_lot::Mutex::new(Some(body))))
    }

    /// Whether another attempt can send it again.
    pub(super) fn is_replayable(&self) -> bool {
        !matches!(self, Self::Once(_))
    }

    /// Whether sending it may take long, since it does not come from memory.
    pub(super) fn is_stream(&self) -> bool {
        !matches!(self, Self::Bytes(_))
    }

    /// The body of the next attempt.
    pub(super) async fn open(&self) -> Result<Body, BoxError> {
        match self {
            Self::Bytes(content) if content.is_empty() => Ok(Body::empty()),
            Self::Bytes(content) => Ok(content.clone().into()),
            Self::Reopened(open) => open().await,
            Self::Once(body) => {
                let body = body.lock().take();
                body.ok_or_else(|| "the body was sent before and cannot be sent again".into())
            }
        }
    }
}

impl Default for RequestBody {
    fn default() -> Self {
        Self::Bytes(Bytes::new())
    }
}

impl fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bytes(_) => "Bytes",
            Self::Reopened(_) => "Reopened",
            Self::Once(_) => "Once",
        })
    }
}
