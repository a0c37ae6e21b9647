//! A connection to a pod that counts the bytes sent.
//!
//! A pod closes idle connections, and the close may cross with the next request. The resolver cannot know
//! whether a pod has read the bytes of a request, but it can know that none were sent. So it checks the
//! socket for a close right before the first byte of a request, and counts the bytes after it.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::resolver::net::Stream;

/// A stream that counts the bytes written.
#[derive(Debug)]
pub(super) struct CountedStream {
    stream: Stream,
    tally: Arc<WriteCounter>,
}

/// The number of bytes sent over a connection.
#[derive(Debug, Default)]
pub(super) struct WriteCounter {
    bytes: AtomicU64,
    /// The next byte is the first of a request.
    begins: AtomicBool,
    /// The last write did not fit into the socket's buffer.
    blocked: AtomicBool,
}

impl CountedStream {
    pub(super) fn new(stream: Stream) -> (Self, Arc<WriteCounter>) {
        let tally = Arc::<WriteCounter>::default();
        let wire = Self {
            stream,
            tally: tally.clone(),
        };
        (wire, tally)
    }

    fn before_write(&self) -> io::Result<()> {
        let begins = self.tally.begins.load(Ordering::Relaxed)
            && self.tally.begins.swap(false, Ordering::SeqCst);
        // The pod sent bytes without a request, or has closed its side.
        if begins && !self.stream.is_quiet() {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        Ok(())
    }

    fn written(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        let blocked = &self.tally.blocked;
        blocked.store(written.is_pending(), Ordering::Relaxed);
        if let Poll::Ready(Ok(count)) = written {
            self.tally.bytes.fetch_add(count as u64, Ordering::SeqCst);
        }
        written
    }
}

impl WriteCounter {
    /// Marks the beginning of a request on an HTTP/1 connection; returns the bytes sent before it.
    pub(super) fn begin(&self) -> u64 {
        self.begins.store(true, Ordering::SeqCst);
        self.sent()
    }

    /// Whether some bytes still wait to be sent.
    pub(super) fn is_blocked(&self) -> bool {
        self.blocked.load(Ordering::Relaxed)
    }

    /// The bytes sent so far.
    pub(super) fn sent(&self) -> u64 {
        self.bytes.load(Ordering::SeqCst)
    }
}

impl AsyncRead for CountedStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for CountedStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.before_write()?;
        let written = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.written(written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.before_write()?;
        let written = Pin::new(&mut this.stream).poll_write_vectored(context, bytes);
        this.written(written)
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

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::{TcpListener, TcpStream},
    };

    use super::*;

    async fn connected() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (here, there) = tokio::join!(TcpStream::connect(address), listener.accept());
        (here.unwrap(), there.unwrap().0)
    }

    #[tokio::test]
    async fn nothing_is_sent_to_a_pod_that_has_closed_before_a_request_begins() {
        let (here, there) = connected().await;
        let (mut wire, tally) = CountedStream::new(here.into());
        assert_eq!(tally.begin(), 0);
        wire.write_all(b"first").await.unwrap();
        assert_eq!(tally.sent(), 5);
        drop(there);
        assert_eq!(tally.begin(), 5);
        assert!(wire.write_all(b"second").await.is_err());
        assert_eq!(tally.sent(), 5);
    }

    #[tokio::test]
    async fn a_write_that_does_not_fit_is_reported_as_blocked() {
        let (here, mut there) = connected().await;
        let (mut wire, tally) = CountedStream::new(here.into());
        let much = vec![0; 1 << 20];
        let mut sent = 0;
        while let Some(count) = wire.write(&much).now_or_never() {
            assert!(!tally.is_blocked());
            sent += count.unwrap();
        }
        assert!(tally.is_blocked());
        let mut read = vec![0; sent];
        there.read_exact(&mut read).await.unwrap();
        wire.write_all(b"the rest").await.unwrap();
        assert!(!tally.is_blocked());
    }

    #[tokio::test]
    async fn nothing_is_sent_to_a_pod_that_sent_bytes_before_a_request() {
        let (here, mut there) = connected().await;
        let (mut wire, tally) = CountedStream::new(here.into());
        there
            .write_all(b"HTTP/1.1 408 Request Timeout\r\n")
            .await
            .unwrap();
        assert_eq!(tally.begin(), 0);
        assert!(wire.write_all(b"asked").await.is_err());
        assert_eq!(tally.sent(), 0);
    }
}
