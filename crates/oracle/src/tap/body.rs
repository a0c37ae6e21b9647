//! Bodies that are looked at while they pass.

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

use super::answer::Pending;
use crate::watch;

/// What a request's body has said so far.
pub(super) type Copy = Arc<Mutex<Vec<u8>>>;

/// A request's body, copied while the server reads it.
pub struct Copied<B> {
    inner: Pin<Box<B>>,
    copy: Copy,
}

impl<B> Copied<B> {
    pub(super) fn new(inner: B) -> (Self, Copy) {
        let copy = Copy::default();
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

impl<B: Body<Data = Bytes>> Body for Copied<B> {
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

/// Where the bytes of an answer are shown.
pub(super) enum Sink {
    Nowhere,
    /// A watch, with the line that is not whole yet.
    Stream(Arc<Mutex<watch::Oracle>>, Vec<u8>),
    /// An answer that is judged when it is whole.
    Answer(Box<Pending>, StatusCode, Vec<u8>),
}

impl Sink {
    pub(super) fn stream(oracle: Arc<Mutex<watch::Oracle>>) -> Self {
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

    /// The body is over, or nobody reads it any more.
    fn close(&mut self) {
        match std::mem::replace(self, Self::Nowhere) {
            Self::Nowhere => {}
            Self::Stream(oracle, _) => oracle.lock().end(),
            Self::Answer(pending, status, whole) => pending.answered(status, &whole),
        }
    }
}

/// A response's body, shown to an oracle while the client reads it.
pub struct Tapped<R> {
    inner: Pin<Box<R>>,
    sink: Sink,
}

impl<R> Tapped<R> {
    pub(super) fn new(inner: R, sink: Sink) -> Self {
        Self {
            inner: Box::pin(inner),
            sink,
        }
    }
}

impl<R: Body<Data = Bytes>> Body for Tapped<R> {
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

impl<R> Drop for Tapped<R> {
    fn drop(&mut self) {
        self.sink.close();
    }
}

impl<B> fmt::Debug for Copied<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Copied").finish_non_exhaustive()
    }
}

impl<R> fmt::Debug for Tapped<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tapped").finish_non_exhaustive()
    }
}
