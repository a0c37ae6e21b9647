//! A client connection whose HTTP/1 bytes are validated, and whose end waits for answers under way.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use neap_kit::clock::Clock;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{
    client_end::{ClientEnd, ClientEndCheck},
    http1_validator::{Http1Validator, Violation},
};
use crate::resolver::net::Stream;

/// A client connection that fails at the first malformed byte.
pub(super) struct ValidatedStream {
    stream: Stream,
    /// Bytes that were read to detect the protocol.
    first: Bytes,
    validator: Http1Validator,
    state: Arc<ClientConnectionState>,
    clock: Clock,
    /// Bytes were written that may not have left the buffers.
    unflushed: bool,
    /// Set once the client has shut its side while a request was being answered.
    end: Option<ClientEnd>,
}

/// The state of a client connection.
#[derive(Debug, Default)]
pub(super) struct ClientConnectionState {
    /// It is not HTTP/1, or no longer, so that its bytes are not validated.
    pub(super) upgraded: AtomicBool,
    /// Requests that are not completely answered.
    pub(super) in_flight: AtomicUsize,
    /// A request of HTTP/1.1 whose answer has not begun, so that an interim response may be sent.
    pub(super) awaits_answer: AtomicBool,
    /// Why the client's bytes were rejected.
    pub(super) violation: OnceLock<&'static str>,
}

impl ValidatedStream {
    pub(super) fn new(
        stream: Stream,
        first: Bytes,
        state: Arc<ClientConnectionState>,
        clock: Clock,
    ) -> Self {
        Self {
            stream,
            first,
            validator: Http1Validator::default(),
            state,
            clock,
            unflushed: false,
            end: None,
        }
    }

    /// The end of the client's side as hyper sees it: withheld while a complete request is being
    /// answered, and an error once the client is known to have left.
    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let answering = self.unflushed || self.state.in_flight.load(Ordering::SeqCst) > 0;
        if !answering || !self.validator.is_between() {
            return Poll::Ready(Ok(()));
        }
        let check = ClientEndCheck {
            stream: &self.stream,
            clock: self.clock,
            may_probe: !self.unflushed && self.state.awaits_answer.load(Ordering::SeqCst),
        };
        let end = self.end.get_or_insert_with(|| ClientEnd::new(self.clock));
        end.poll(&check, context)
    }

    fn written(&mut self, written: &Poll<io::Result<usize>>) {
        if matches!(written, Poll::Ready(Ok(1..)))
            && let Some(end) = &mut self.end
        {
            end.record_progress(self.clock);
        }
    }

    fn refuse(&self, bad: Violation) -> io::Error {
        // The first reason counts.
        let _ = self.state.violation.set(bad.why);
        // While another answer is being sent, this one would be taken for a part of it.
        if self.state.in_flight.load(Ordering::SeqCst) == 0 {
            let Violation { status, why } = bad;
            let length = why.len() + 1;
            let answer = format!(
                "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{why}\n"
            );
            let _ = self.stream.try_write(answer.as_bytes());
        }
        io::Error::new(io::ErrorKind::InvalidData, bad.why)
    }
}

impl AsyncRead for ValidatedStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        if this.first.has_remaining() {
            let length = this.first.remaining().min(buffer.remaining());
            buffer.put_slice(&this.first.split_to(length));
        } else {
            let room = buffer.remaining();
            ready!(Pin::new(&mut this.stream).poll_read(context, buffer))?;
            let is_end = room > 0 && buffer.filled().len() == before;
            if is_end && !this.state.upgraded.load(Ordering::SeqCst) {
                return this.poll_end(context);
            }
        }
        if this.state.upgraded.load(Ordering::SeqCst) {
            return Poll::Ready(Ok(()));
        }
        let validated = this.validator.validate(&buffer.filled()[before..]);
        Poll::Ready(validated.map_err(|bad| {
            buffer.set_filled(before);
            this.refuse(bad)
        }))
    }
}

impl AsyncWrite for ValidatedStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.unflushed = true;
        let written = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.written(&written);
        written
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.unflushed = true;
        let written = Pin::new(&mut this.stream).poll_write_vectored(context, bytes);
        this.written(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(Pin::new(&mut this.stream).poll_flush(context))?;
        this.unflushed = false;
        if this.end.is_some() {
            // hyper reads again, and learns that the client has shut its side.
            context.waker().wake_by_ref();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
