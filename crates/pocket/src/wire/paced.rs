//! A stream on which much is sent: large writes wait for a turn, small ones do not.
//!
//! Sending costs more than making what is sent: it is encrypted, and handed to the system. Without
//! turns, a thousand clients who take large lists would keep every processor busy with that.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::{
    environment::BoxFuture,
    rest::{Bulk, OwnedTurn},
};

/// Writes of more bytes than this wait for a turn.
const LARGE: usize = 8 << 10;

/// The stream, and its place in line.
pub(super) struct Paced<S> {
    stream: S,
    bulk: Bulk,
    waiting: Option<BoxFuture<Option<OwnedTurn>>>,
    /// The client did not take what was written last. Looking whether it does now costs nothing,
    /// and whoever asked for a turn to look would be back in line at once, and go round for ever.
    full: bool,
}

impl<S> Paced<S> {
    pub(super) fn new(stream: S, bulk: Bulk) -> Self {
        Self {
            stream,
            bulk,
            waiting: None,
            full: false,
        }
    }

    /// A turn to write so many bytes. It is given back when the write returns, whether or not the
    /// client takes what was written.
    fn poll_turn(&mut self, bytes: usize, context: &mut Context<'_>) -> Poll<Option<OwnedTurn>> {
        if bytes < LARGE || self.full {
            return Poll::Ready(None);
        }
        if self.waiting.is_none()
            && let Some(turn) = self.bulk.turn_now()
        {
            return Poll::Ready(Some(turn));
        }
        let bulk = &self.bulk;
        let waiting = self.waiting.get_or_insert_with(|| bulk.owned_turn());
        let turn = ready!(waiting.as_mut().poll(context));
        self.waiting = None;
        Poll::Ready(turn)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let _turn = ready!(self.poll_turn(bytes.len(), context));
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.full = written.is_pending();
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let bytes = parts.iter().map(|part| part.len()).sum();
        let _turn = ready!(self.poll_turn(bytes, context));
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.full = written.is_pending();
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn large_writes_wait_for_a_turn_and_small_ones_do_not() {
        let bulk = Bulk::of(1);
        let (near, mut far) = tokio::io::duplex(1 << 20);
        let mut paced = Paced::new(near, bulk.clone());
        let turn = bulk.turn_now();
        paced.write_all(b"small").await.unwrap();
        let large = vec![0; LARGE];
        let mut write = Box::pin(paced.write_all(&large));
        assert!((&mut write).now_or_never().is_none());
        drop(turn);
        write.await.unwrap();
        assert!(bulk.turn_now().is_some(), "the turn was kept");
        let mut read = vec![0; 5 + LARGE];
        far.read_exact(&mut read).await.unwrap();
    }

    #[tokio::test]
    async fn a_client_that_takes_nothing_keeps_no_turn() {
        let bulk = Bulk::of(1);
        let (near, _far) = tokio::io::duplex(16);
        let mut paced = Paced::new(near, bulk.clone());
        let large = vec![0; LARGE];
        assert!(paced.write_all(&large).now_or_never().is_none());
        assert!(bulk.turn_now().is_some());
    }

    #[tokio::test]
    async fn a_client_that_takes_nothing_does_not_line_up_again() {
        let bulk = Bulk::of(1);
        let (near, _far) = tokio::io::duplex(16);
        let mut paced = Paced::new(near, bulk.clone());
        let large = vec![0; LARGE];
        let mut write = Box::pin(paced.write_all(&large));
        assert!((&mut write).now_or_never().is_none());
        // While another has the turn, it is looked at again and again.
        let turn = bulk.turn_now();
        assert!((&mut write).now_or_never().is_none());
        drop(turn);
        assert!(
            bulk.turn_now().is_some(),
            "a turn was given to somebody who cannot use it"
        );
    }
}
