//! A connection of either network.

use std::{
    fmt,
    future::poll_fn,
    io,
    net::{self, SocketAddr},
    pin::Pin,
    task::{Context, Poll},
};

use rustix::net::{RecvFlags, recv};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

/// A connection of a network other than that of the host.
pub trait NetworkStream: AsyncRead + AsyncWrite + fmt::Debug + Send + Sync + Unpin {
    /// Reads without consuming; 0 at the end of the stream.
    fn poll_peek(&self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>>;

    /// Reads what has arrived, or fails with [`io::ErrorKind::WouldBlock`].
    fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes what fits into the buffer, or fails with [`io::ErrorKind::WouldBlock`].
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize>;

    /// Whether a read would block: no byte, no end and no error has arrived.
    fn is_quiet(&self) -> bool;

    /// The local address.
    fn local_addr(&self) -> io::Result<SocketAddr>;

    /// Makes closing send a reset, so that the peer sees a failure.
    fn reset_at_end(&self);
}

/// A connection of either network.
#[derive(Debug)]
pub enum Stream {
    /// Of the host.
    Tcp(TcpStream),
    /// Of another network.
    Other(Box<dyn NetworkStream>),
}

impl Stream {
    /// Reads without consuming; 0 at the end of the stream.
    pub async fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.peek(buffer).await,
            Self::Other(stream) => poll_fn(|context| stream.poll_peek(context, buffer)).await,
        }
    }

    /// Resolves once a read may succeed.
    pub async fn readable(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.readable().await,
            Self::Other(stream) => {
                let mut byte = [0];
                // The next read returns the error.
                let _ = poll_fn(|context| stream.poll_peek(context, &mut byte)).await;
                Ok(())
            }
        }
    }

    /// Reads what has arrived, or fails with [`io::ErrorKind::WouldBlock`].
    pub fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_read(buffer),
            Self::Other(stream) => stream.try_read(buffer),
        }
    }

    /// Writes what fits into the buffer, or fails with [`io::ErrorKind::WouldBlock`].
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_write(bytes),
            Self::Other(stream) => stream.try_write(bytes),
        }
    }

    /// Whether a read would block: no byte, no end and no error has arrived. Asks the kernel, because
    /// the runtime may not have processed its events yet.
    pub fn is_quiet(&self) -> bool {
        match self {
            Self::Tcp(stream) => {
                let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
                recv(stream, &mut [0; 1], flags) == Err(rustix::io::Errno::AGAIN)
            }
            Self::Other(stream) => stream.is_quiet(),
        }
    }

    /// The local address.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Tcp(stream) => stream.local_addr(),
            Self::Other(stream) => stream.local_addr(),
        }
    }

    /// Makes closing send a reset, so that the peer sees a failure.
    pub fn reset_at_end(&self) {
        match self {
            Self::Tcp(stream) => drop(stream.set_zero_linger()),
            Self::Other(stream) => stream.reset_at_end(),
        }
    }
}

/// An accepted connection that is not registered with a runtime yet.
#[derive(Debug)]
pub(in crate::resolver) enum AcceptedStream {
    Tcp(net::TcpStream),
    Other(Box<dyn NetworkStream>),
}

impl AcceptedStream {
    /// Registers it with the runtime of this thread.
    pub(in crate::resolver) fn into_stream(self) -> io::Result<Stream> {
        match self {
            Self::Tcp(stream) => TcpStream::from_std(stream).map(Stream::Tcp),
            Self::Other(stream) => Ok(Stream::Other(stream)),
        }
    }
}

impl From<TcpStream> for Stream {
    fn from(stream: TcpStream) -> Self {
        Self::Tcp(stream)
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Other(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Other(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(context, bytes),
            Self::Other(stream) => Pin::new(stream).poll_write_vectored(context, bytes),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Tcp(stream) => stream.is_write_vectored(),
            Self::Other(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(context),
            Self::Other(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Other(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
