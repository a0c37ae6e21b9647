//! Clients that shut their side of a connection after the request: they still get the answer.
//!
//! hyper ends a connection when its client does. Here the end is withheld while answers are under way,
//! and streams, which would otherwise never end, are ended with it.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::watch,
};

/// The answers of a connection that were not sent completely.
#[derive(Debug, Clone, Default)]
pub(super) struct OpenAnswers(Arc<State>);

#[derive(Debug, Default)]
struct State {
    count: AtomicUsize,
    /// An answer has ended, and parts of it may be in a buffer.
    unflushed: AtomicBool,
    /// The client has ended while answers were under way.
    left: watch::Sender<bool>,
}

/// An answer under way, from the head of its request to the end of its body.
#[derive(Debug)]
pub(super) struct Answering(OpenAnswers);

impl OpenAnswers {
    pub(super) fn begin(&self) -> Answering {
        self.0.count.fetch_add(1, Ordering::AcqRel);
        Answering(self.clone())
    }

    /// Resolves once the client has ended while answers were under way.
    pub(super) async fn client_left(&self) {
        // The sender lives as long as this.
        let _ = self.0.left.subscribe().wait_for(|left| *left).await;
    }

    fn is_empty(&self) -> bool {
        self.0.count.load(Ordering::Acquire) == 0 && !self.0.unflushed.load(Ordering::Acquire)
    }

    fn flushed(&self) {
        if self.0.count.load(Ordering::Acquire) == 0 {
            self.0.unflushed.store(false, Ordering::Release);
        }
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        let state = &self.0.0;
        state.unflushed.store(true, Ordering::Release);
        state.count.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A stream whose end is withheld while answers are under way.
pub(super) struct HalfClosing<S> {
    stream: S,
    answers: OpenAnswers,
    /// Set when the client has ended.
    ended: watch::Sender<bool>,
}

impl<S> HalfClosing<S> {
    pub(super) fn new(stream: S, answers: OpenAnswers, ended: watch::Sender<bool>) -> Self {
        Self {
            stream,
            answers,
            ended,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for HalfClosing<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let (before, room) = (buffer.filled().len(), buffer.remaining());
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let is_end = room > 0 && buffer.filled().len() == before;
        if is_end && !self.answers.is_empty() {
            self.ended.send_replace(true);
            self.answers.0.left.send_replace(true);
            // hyper reads again when it has sent the answer.
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for HalfClosing<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        self.answers.flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
