//! A stream that is written on the right lane: large writes on the patient lane, small ones on the
//! other.
//!
//! Sending costs more than rendering: it includes encryption and system calls.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::environment::lane;

/// Bytes from which a write belongs on the patient lane.
const LARGE_WRITE_BYTES: usize = 8 << 10;
/// Consecutive small writes that end a large response. A single one may be the rest of a buffer.
const SMALL_WRITES_AFTER_LARGE: u8 = 2;

/// The stream, and its recent writes.
pub(super) struct Paced<S> {
    stream: S,
    small: u8,
}

impl<S> Paced<S> {
    pub(super) fn new(stream: S) -> Self {
        Self {
            stream,
            small: SMALL_WRITES_AFTER_LARGE,
        }
    }

    /// Ready on a lane where this many bytes may be written.
    fn poll_lane(&mut self, bytes: usize, context: &mut Context<'_>) -> Poll<()> {
        if bytes >= LARGE_WRITE_BYTES {
            self.small = 0;
            return lane::poll_patient(context);
        }
        self.small = (self.small + 1).min(SMALL_WRITES_AFTER_LARGE);
        if self.small == SMALL_WRITES_AFTER_LARGE {
            lane::hurry();
        }
        Poll::Ready(())
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
        ready!(self.poll_lane(bytes.len(), context));
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let bytes = parts.iter().map(|part| part.len()).sum();
        ready!(self.poll_lane(bytes, context));
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
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
    use std::sync::Arc;

    use tokio::io::AsyncWriteExt;

    use super::*;
    use crate::environment::{BoxFuture, Spawn, lane::travel};

    /// Counts how often a task moves to the patient lane.
    #[derive(Default)]
    struct Moves(std::sync::atomic::AtomicUsize);

    impl Spawn for Moves {
        fn spawn(&self, _: &'static str, task: BoxFuture<()>) {
            tokio::runtime::Handle::current().spawn(task);
        }

        fn spawn_patient(&self, name: &'static str, task: BoxFuture<()>) {
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            self.spawn(name, task);
        }
    }

    /// How often a stream moves for writes of these sizes, with a pause after each.
    async fn moves(writes: &'static [usize]) -> usize {
        let moves = Arc::new(Moves::default());
        let task = async move {
            let mut paced = Paced::new(tokio::io::sink());
            for &bytes in writes {
                paced.write_all(&vec![0; bytes]).await.unwrap();
                tokio::task::yield_now().await;
            }
        };
        travel(moves.clone(), "writes", Box::pin(task)).await;
        moves.0.load(std::sync::atomic::Ordering::Relaxed)
    }

    #[tokio::test]
    async fn large_writes_move_and_small_ones_do_not() {
        assert_eq!(moves(&[5, LARGE_WRITE_BYTES - 1, 5]).await, 0);
        assert_eq!(moves(&[5, LARGE_WRITE_BYTES, LARGE_WRITE_BYTES]).await, 1);
    }

    #[tokio::test]
    async fn a_stream_comes_back_after_the_answer_and_not_within_it() {
        assert_eq!(
            moves(&[
                LARGE_WRITE_BYTES,
                5,
                LARGE_WRITE_BYTES,
                5,
                LARGE_WRITE_BYTES
            ])
            .await,
            1
        );
        assert_eq!(
            moves(&[LARGE_WRITE_BYTES, 5, 5, LARGE_WRITE_BYTES]).await,
            2
        );
    }
}
