//! A connection whose client is listened to only as long as it is plain.

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
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::strict::{Bad, Inspector};
use crate::resolver::net::Stream;

/// A connection over HTTP/1.
pub(super) struct Guarded {
    stream: Stream,
    /// What was read already to see which protocol it is.
    first: Bytes,
    inspector: Inspector,
    talk: Arc<Talk>,
}

/// What is known of a connection beside its bytes.
#[derive(Debug, Default)]
pub(super) struct Talk {
    /// It is no longer HTTP.
    pub(super) upgraded: AtomicBool,
    /// Requests that are not answered to their end.
    pub(super) under_way: AtomicUsize,
    /// Why the client is not listened to any longer.
    pub(super) bad: OnceLock<&'static str>,
}

impl Guarded {
    pub(super) fn new(stream: Stream, first: Bytes, talk: Arc<Talk>) -> Self {
        Self {
            stream,
            first,
            inspector: Inspector::default(),
            talk,
        }
    }

    fn refuse(&self, bad: Bad) -> io::Error {
        // The first reason counts.
        let _ = self.talk.bad.set(bad.why);
        // Between other answers this one would be taken for theirs.
        if self.talk.under_way.load(Ordering::SeqCst) == 0 {
            let Bad { status, why } = bad;
            let length = why.len() + 1;
            let answer = format!(
                "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{why}\n"
            );
            let _ = self.stream.try_write(answer.as_bytes());
        }
        io::Error::new(io::ErrorKind::InvalidData, bad.why)
    }
}

impl AsyncRead for Guarded {
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
            ready!(Pin::new(&mut this.stream).poll_read(context, buffer))?;
        }
        if this.talk.upgraded.load(Ordering::SeqCst) {
            return Poll::Ready(Ok(()));
        }
        let inspected = this.inspector.inspect(&buffer.filled()[before..]);
        Poll::Ready(inspected.map_err(|bad| {
            buffer.set_filled(before);
            this.refuse(bad)
        }))
    }
}

impl AsyncWrite for Guarded {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
