//! A connection, whichever network carries it.

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

/// A connection over another network than that of the machine.
pub trait Carries: AsyncRead + AsyncWrite + fmt::Debug + Send + Sync + Unpin {
    /// What comes next, which stays there. Nothing once nothing more will come.
    fn poll_peek(&self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>>;

    /// What is there, or [`io::ErrorKind::WouldBlock`].
    fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize>;

    /// As much as there is room for, or [`io::ErrorKind::WouldBlock`].
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize>;

    /// Whether nothing is to be read now: no byte, no end and no error.
    fn is_quiet(&self) -> bool;

    /// Where it comes from on this side.
    fn local_addr(&self) -> io::Result<SocketAddr>;

    /// From now on its end is one that the other side takes for a failure.
    fn reset_at_end(&self);
}

/// A connection.
#[derive(Debug)]
pub enum Stream {
    /// Of the machine.
    Tcp(TcpStream),
    /// Of another network.
    Other(Box<dyn Carries>),
}

impl Stream {
    /// What comes next, which stays there. Nothing once nothing more will come.
    pub async fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.peek(buffer).await,
            Self::Other(stream) => poll_fn(|context| stream.poll_peek(context, buffer)).await,
        }
    }

    /// Resolves once there may be something to read.
    pub async fn readable(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.readable().await,
            Self::Other(stream) => {
                let mut byte = [0];
                // An error is for whoever reads.
                let _ = poll_fn(|context| stream.poll_peek(context, &mut byte)).await;
                Ok(())
            }
        }
    }

    /// What is there, or [`io::ErrorKind::WouldBlock`].
    pub fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_read(buffer),
            Self::Other(stream) => stream.try_read(buffer),
        }
    }

    /// As much as there is room for, or [`io::ErrorKind::WouldBlock`].
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_write(bytes),
            Self::Other(stream) => stream.try_write(bytes),
        }
    }

    /// Whether nothing is to be read now: no byte, no end and no error. The system is asked, rather
    /// than what it has told until now.
    pub fn is_quiet(&self) -> bool {
        match self {
            Self::Tcp(stream) => {
                let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
                recv(stream, &mut [0; 1], flags) == Err(rustix::io::Errno::AGAIN)
            }
            Self::Other(stream) => stream.is_quiet(),
        }
    }

    /// Where it comes from on this side.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Tcp(stream) => stream.local_addr(),
            Self::Other(stream) => stream.local_addr(),
        }
    }

    /// From now on its end is one that the other side takes for a failure.
    pub fn reset_at_end(&self) {
        match self {
            Self::Tcp(stream) => drop(stream.set_zero_linger()),
            Self::Other(stream) => stream.reset_at_end(),
        }
    }
}

/// A connection on its way to the thread that is to look after it.
#[derive(Debug)]
pub(in crate::resolver) enum Handed {
    Tcp(net::TcpStream),
    Other(Box<dyn Carries>),
}

impl Handed {
    /// This thread looks after it from now on.
    pub(in crate::resolver) fn take(self) -> io::Result<Stream> {
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
