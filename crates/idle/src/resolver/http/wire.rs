//! A connection to a pod that knows whether anything was sent over it.
//!
//! A pod closes a connection that nobody used for a while, and that may cross with the next request.
//! Whether a pod has read of a request what it was sent cannot be known; that nothing was sent can. So
//! the socket is asked right before the first byte of a request whether the pod has closed, rather
//! than waiting to be told, and bytes are counted.

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

/// A connection whose bytes are counted.
#[derive(Debug)]
pub(super) struct Wire {
    stream: Stream,
    tally: Arc<Tally>,
}

/// What was sent over a connection.
#[derive(Debug, Default)]
pub(super) struct Tally {
    bytes: AtomicU64,
    /// A request begins, so the next byte is its first.
    begins: AtomicBool,
    /// The last bytes did not fit, so some still wait to be sent.
    blocked: AtomicBool,
}

impl Wire {
    pub(super) fn new(stream: Stream) -> (Self, Arc<Tally>) {
        let tally = Arc::<Tally>::default();
        let wire = Self {
            stream,
            tally: tally.clone(),
        };
        (wire, tally)
    }

    fn before_write(&self) -> io::Result<()> {
        let begins = self.tally.begins.load(Ordering::Relaxed)
            && self.tally.begins.swap(false, Ordering::SeqCst);
        // The other side has said something, although it was not asked, or will say nothing more.
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

impl Tally {
    /// A request begins on a connection for one at a time; gives what was sent before.
    pub(super) fn begin(&self) -> u64 {
        self.begins.store(true, Ordering::SeqCst);
        self.sent()
    }

    /// Whether some of what was to be sent still waits.
    pub(super) fn is_blocked(&self) -> bool {
        self.blocked.load(Ordering::Relaxed)
    }

    /// So many bytes were sent until now.
    pub(super) fn sent(&self) -> u64 {
        self.bytes.load(Ordering::SeqCst)
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Wire {
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

    async fn both() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (here, there) = tokio::join!(TcpStream::connect(address), listener.accept());
        (here.unwrap(), there.unwrap().0)
    }

    #[tokio::test]
    async fn nothing_is_sent_to_a_pod_that_has_closed_before_a_request_begins() {
        let (here, there) = both().await;
        let (mut wire, tally) = Wire::new(here.into());
        assert_eq!(tally.begin(), 0);
        wire.write_all(b"first").await.unwrap();
        assert_eq!(tally.sent(), 5);
        drop(there);
        assert_eq!(tally.begin(), 5);
        assert!(wire.write_all(b"second").await.is_err());
        assert_eq!(tally.sent(), 5);
    }

    #[tokio::test]
    async fn what_does_not_fit_is_known_to_wait() {
        let (here, mut there) = both().await;
        let (mut wire, tally) = Wire::new(here.into());
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
    async fn nothing_is_sent_to_a_pod_that_spoke_before_it_was_asked() {
        let (here, mut there) = both().await;
        let (mut wire, tally) = Wire::new(here.into());
        there
            .write_all(b"HTTP/1.1 408 Request Timeout\r\n")
            .await
            .unwrap();
        assert_eq!(tally.begin(), 0);
        assert!(wire.write_all(b"asked").await.is_err());
        assert_eq!(tally.sent(), 0);
    }
}
