//! Bodies that are observed while they pass.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::StatusCode;
use http_body::{Body, Frame, SizeHint};
use parking_lot::Mutex;

use super::response::Pending;
use crate::watch;

/// The part of a request's body that has been read so far.
pub(super) type BodyCopy = Arc<Mutex<Vec<u8>>>;

/// A request's body, copied while the server reads it.
pub struct CopiedBody<B> {
    inner: Pin<Box<B>>,
    copy: BodyCopy,
}

impl<B> CopiedBody<B> {
    pub(super) fn new(inner: B) -> (Self, BodyCopy) {
        let copy = BodyCopy::default();
        let inner = Box::pin(inner);
        (
            Self {
                inner,
                copy: copy.clone(),
            },
            copy,
        )
    }
}

impl<B: Body<Data = Bytes>> Body for CopiedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = ready!(self.inner.as_mut().poll_frame(context));
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
        {
            self.copy.lock().extend_from_slice(data);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// Where the bytes of an answer go.
pub(super) enum Sink {
    Nowhere,
    /// A watch, with its incomplete last line.
    Stream(Arc<Mutex<watch::WatchOracle>>, Vec<u8>),
    /// An answer that is judged when it is complete.
    Answer(Box<Pending>, StatusCode, Vec<u8>),
}

impl Sink {
    pub(super) fn stream(oracle: Arc<Mutex<watch::WatchOracle>>) -> Self {
        Self::Stream(oracle, Vec::new())
    }

    pub(super) fn answer(pending: Pending, status: StatusCode) -> Self {
        Self::Answer(Box::new(pending), status, Vec::new())
    }

    fn take_in(&mut self, data: &[u8]) {
        match self {
            Self::Nowhere => {}
            Self::Answer(_, _, whole) => whole.extend_from_slice(data),
            Self::Stream(oracle, rest) => {
                let mut oracle = oracle.lock();
                for part in data.split_inclusive(|&byte| byte == b'\n') {
                    rest.extend_from_slice(part);
                    if let Some(line) = rest.strip_suffix(b"\n") {
                        oracle.line(line);
                        rest.clear();
                    }
                }
            }
        }
    }

    /// The body has ended, or the client no longer reads it.
    fn close(&mut self) {
        match std::mem::replace(self, Self::Nowhere) {
            Self::Nowhere => {}
            Self::Stream(oracle, _) => oracle.lock().end(),
            Self::Answer(pending, status, whole) => pending.answered(status, &whole),
        }
    }
}

/// A response's body, passed to an oracle while the client reads it.
pub struct ObservedBody<R> {
    inner: Pin<Box<R>>,
    sink: Sink,
}

impl<R> ObservedBody<R> {
    pub(super) fn new(inner: R, sink: Sink) -> Self {
        Self {
            inner: Box::pin(inner),
            sink,
        }
    }
}

impl<R: Body<Data = Bytes>> Body for ObservedBody<R> {
    type Data = Bytes;
    type Error = R::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, R::Error>>> {
        let frame = ready!(self.inner.as_mut().poll_frame(context));
        match &frame {
            Some(Ok(frame)) => {
                if let Some(data) = frame.data_ref() {
                    self.sink.take_in(data);
                }
            }
            Some(Err(_)) | None => self.sink.close(),
        }
        if matches!(self.sink, Sink::Answer(..)) && self.inner.is_end_stream() {
            self.sink.close();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl<R> Drop for ObservedBody<R> {
    fn drop(&mut self) {
        self.sink.close();
    }
}

impl<B> fmt::Debug for CopiedBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Copied").finish_non_exhaustive()
    }
}

impl<R> fmt::Debug for ObservedBody<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tapped").finish_non_exhaustive()
    }
}
