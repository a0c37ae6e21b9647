//! The body of a request to a pod, which can be sent again if the pod has not processed it.
//!
//! A pod may close a connection or refuse a request before it has processed any of it. Such a request goes
//! to another pod. For that, its head is copied, and the frames that were sent are buffered until an
//! answer begins, up to a limit.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Uri, Version};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// Upper limit on the sent bytes of a body that are buffered.
const MAX_RETRY_BUFFER: usize = 16 << 10;

/// The body of a held request: the frames that were read, then the rest.
#[derive(Debug)]
pub(super) struct BufferedBody {
    pub(super) early: VecDeque<Frame<Bytes>>,
    pub(super) rest: Incoming,
}

/// The body of one attempt to send a request. An empty body has no state.
#[derive(Debug)]
pub(super) struct RequestBody {
    shared: Option<Arc<Mutex<BodyState>>>,
    attempt: u32,
}

#[derive(Debug)]
struct BodyState {
    held: BufferedBody,
    sent: SentFrames,
    /// The current attempt; the bodies of former attempts are empty.
    attempt: u32,
    /// Cancelled when the current attempt has sent the whole body.
    ended: CancellationToken,
}

/// The frames of a body that were sent.
#[derive(Debug)]
enum SentFrames {
    Buffered(Vec<Frame<Bytes>>, usize),
    /// More than [`MAX_RETRY_BUFFER`]: the request cannot be sent again.
    TooLarge,
}

/// A copy of a request, to send it again if a pod has not processed it.
#[derive(Debug)]
pub(super) struct RetryCopy {
    method: Method,
    uri: Uri,
    version: Version,
    headers: HeaderMap,
    body: Option<Arc<Mutex<BodyState>>>,
}

impl BufferedBody {
    fn is_end_stream(&self) -> bool {
        self.early.is_empty() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let mut size = self.rest.size_hint();
        if self.early.iter().any(Frame::is_trailers) {
            // A body whose length is known has no trailers.
            return SizeHint::default();
        }
        let data = self.early.iter().filter_map(Frame::data_ref);
        let early: u64 = data.map(|data| data.len() as u64).sum();
        if let Some(upper) = size.upper() {
            size.set_upper(upper + early);
        }
        size.set_lower(size.lower() + early);
        size
    }
}

impl SentFrames {
    fn none() -> Self {
        Self::Buffered(Vec::new(), 0)
    }

    fn record(&mut self, frame: &Frame<Bytes>) {
        let Self::Buffered(frames, bytes) = self else {
            return;
        };
        *bytes += size(frame);
        if *bytes > MAX_RETRY_BUFFER {
            *self = Self::TooLarge;
        } else {
            frames.push(copy(frame));
        }
    }
}

impl RequestBody {
    pub(super) fn new(held: BufferedBody) -> Self {
        let shared = (!held.is_end_stream()).then(|| BodyState {
            held,
            sent: SentFrames::none(),
            attempt: 0,
            ended: CancellationToken::new(),
        });
        Self {
            shared: shared.map(|shared| Arc::new(Mutex::new(shared))),
            attempt: 0,
        }
    }

    /// Cancelled when the whole body was sent; `None` if it is empty.
    pub(super) fn ended(&self) -> Option<CancellationToken> {
        let shared = self.shared.as_ref();
        shared.map(|shared| shared.lock().ended.clone())
    }
}

impl RetryCopy {
    pub(super) fn of(request: &Request<RequestBody>) -> Self {
        Self {
            method: request.method().clone(),
            uri: request.uri().clone(),
            version: request.version(),
            headers: request.headers().clone(),
            body: request.body().shared.clone(),
        }
    }

    /// The request for another attempt, unless its body was too large to buffer. The former attempt
    /// sends nothing more.
    pub(super) fn request(self) -> Option<Request<RequestBody>> {
        let mut attempt = 0;
        if let Some(shared) = &self.body {
            let mut shared = shared.lock();
            let SentFrames::Buffered(frames, _) =
                std::mem::replace(&mut shared.sent, SentFrames::none())
            else {
                return None;
            };
            for frame in frames.into_iter().rev() {
                shared.held.early.push_front(frame);
            }
            shared.attempt += 1;
            shared.ended = CancellationToken::new();
            attempt = shared.attempt;
        }
        let shared = self.body;
        let mut request = Request::new(RequestBody { shared, attempt });
        *request.method_mut() = self.method;
        *request.uri_mut() = self.uri;
        *request.version_mut() = self.version;
        *request.headers_mut() = self.headers;
        Some(request)
    }

    /// Drops the buffer, since the answer has begun.
    pub(super) fn discard(self) {
        if let Some(shared) = self.body {
            shared.lock().sent = SentFrames::TooLarge;
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(shared) = &self.shared else {
            return Poll::Ready(None);
        };
        let shared = &mut *shared.lock();
        if shared.attempt != self.attempt {
            return Poll::Ready(None);
        }
        let frame = match shared.held.early.pop_front() {
            Some(frame) => Poll::Ready(Some(Ok(frame))),
            None => Pin::new(&mut shared.held.rest).poll_frame(context),
        };
        if let Poll::Ready(Some(Ok(frame))) = &frame {
            shared.sent.record(frame);
        }
        // hyper does not poll again after the last frame of a body with a known length.
        if matches!(frame, Poll::Ready(None)) || shared.held.is_end_stream() {
            shared.ended.cancel();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        let shared = self.shared.as_ref();
        shared.is_none_or(|shared| shared.lock().held.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.shared {
            Some(shared) => shared.lock().held.size_hint(),
            None => SizeHint::with_exact(0),
        }
    }
}

/// The memory that a frame uses; a body may arrive one byte at a time.
pub(super) fn size(frame: &Frame<Bytes>) -> usize {
    size_of::<Frame<Bytes>>() + frame.data_ref().map_or(0, Bytes::len)
}

/// Clones a frame without copying its bytes.
fn copy(frame: &Frame<Bytes>) -> Frame<Bytes> {
    match (frame.data_ref(), frame.trailers_ref()) {
        (Some(data), _) => Frame::data(data.clone()),
        (None, Some(trailers)) => Frame::trailers(trailers.clone()),
        // There are no other kinds of frames.
        (None, None) => Frame::data(Bytes::new()),
    }
}
