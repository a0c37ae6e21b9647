//! The body of a request on its way to a pod, and back if the pod surely did not take it.
//!
//! A pod may close a connection, or refuse a request, before it has read any of it. Such a request was
//! not sent and goes to another pod; for that its head is copied, and what was given out of its body
//! is kept until there is an answer, as long as it is not much.

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

/// So much of a body is kept after it was given out.
const KEPT: usize = 16 << 10;

/// A body as its request is held: what was read of it, then the rest.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) early: VecDeque<Frame<Bytes>>,
    pub(super) rest: Incoming,
}

/// A body as it is sent, for one try. One that has nothing in it is nothing at all.
#[derive(Debug)]
pub(super) struct Sent {
    shared: Option<Arc<Mutex<Shared>>>,
    attempt: u32,
}

#[derive(Debug)]
struct Shared {
    held: Held,
    given: Given,
    /// Only the last try is given anything.
    attempt: u32,
    /// Told when the last try was given all of it.
    ended: CancellationToken,
}

/// What was given out of a body.
#[derive(Debug)]
enum Given {
    Kept(Vec<Frame<Bytes>>, usize),
    /// Too much of it to be kept.
    Lost,
}

/// What it takes to send a request again that was not sent.
#[derive(Debug)]
pub(super) struct Kept {
    method: Method,
    uri: Uri,
    version: Version,
    headers: HeaderMap,
    body: Option<Arc<Mutex<Shared>>>,
}

impl Held {
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

impl Given {
    fn none() -> Self {
        Self::Kept(Vec::new(), 0)
    }

    fn note(&mut self, frame: &Frame<Bytes>) {
        let Self::Kept(frames, bytes) = self else {
            return;
        };
        *bytes += size(frame);
        if *bytes > KEPT {
            *self = Self::Lost;
        } else {
            frames.push(copy(frame));
        }
    }
}

impl Sent {
    pub(super) fn new(held: Held) -> Self {
        let shared = (!held.is_end_stream()).then(|| Shared {
            held,
            given: Given::none(),
            attempt: 0,
            ended: CancellationToken::new(),
        });
        Self {
            shared: shared.map(|shared| Arc::new(Mutex::new(shared))),
            attempt: 0,
        }
    }

    /// Told when all of it was given out; nobody if there is nothing in it.
    pub(super) fn ended(&self) -> Option<CancellationToken> {
        let shared = self.shared.as_ref();
        shared.map(|shared| shared.lock().ended.clone())
    }
}

impl Kept {
    pub(super) fn of(request: &Request<Sent>) -> Self {
        Self {
            method: request.method().clone(),
            uri: request.uri().clone(),
            version: request.version(),
            headers: request.headers().clone(),
            body: request.body().shared.clone(),
        }
    }

    /// The request as it was, unless some of its body is lost. The try before is given nothing more.
    pub(super) fn request(self) -> Option<Request<Sent>> {
        let mut attempt = 0;
        if let Some(shared) = &self.body {
            let mut shared = shared.lock();
            let Given::Kept(frames, _) = std::mem::replace(&mut shared.given, Given::none()) else {
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
        let mut request = Request::new(Sent { shared, attempt });
        *request.method_mut() = self.method;
        *request.uri_mut() = self.uri;
        *request.version_mut() = self.version;
        *request.headers_mut() = self.headers;
        Some(request)
    }

    /// There is an answer, so nothing is kept any longer.
    pub(super) fn forget(self) {
        if let Some(shared) = self.body {
            shared.lock().given = Given::Lost;
        }
    }
}

impl Body for Sent {
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
            shared.given.note(frame);
        }
        // Who knows the length does not ask for what comes after the last of it.
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

/// So much it takes in memory: a body may come a byte at a time.
pub(super) fn size(frame: &Frame<Bytes>) -> usize {
    size_of::<Frame<Bytes>>() + frame.data_ref().map_or(0, Bytes::len)
}

/// Copies no bytes.
fn copy(frame: &Frame<Bytes>) -> Frame<Bytes> {
    match (frame.data_ref(), frame.trailers_ref()) {
        (Some(data), _) => Frame::data(data.clone()),
        (None, Some(trailers)) => Frame::trailers(trailers.clone()),
        // There are no others.
        (None, None) => Frame::data(Bytes::new()),
    }
}
