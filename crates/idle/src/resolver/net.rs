//! The network of a resolver: how it listens and connects.
//!
//! It is the network of the host, unless a test that simulates a cluster in one process supplies another;
//! the resolver behaves the same on both. The host's network is a variant of an enum, so that the
//! abstraction costs no dynamic dispatch.

mod stream;

use std::{
    fmt,
    future::poll_fn,
    io,
    net::{self, IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    task::{Context, Poll},
};

use futures::future::BoxFuture;
use tokio::{
    io::{Interest, unix::AsyncFd},
    net::{TcpListener, TcpSocket, TcpStream},
};

pub(super) use self::stream::AcceptedStream;
pub use self::stream::{NetworkStream, Stream};

/// Connections that the kernel queues until they are accepted.
const BACKLOG: u32 = 4096;

/// A network other than that of the host.
pub trait Network: fmt::Debug + Send + Sync {
    /// Listens on a port of `host`, or of every address of the caller.
    fn listen(&self, host: Option<IpAddr>, port: u16) -> io::Result<Box<dyn NetworkListener>>;

    /// Connects from the address `host` if given.
    fn connect(
        &self,
        host: Option<IpAddr>,
        to: SocketAddr,
    ) -> BoxFuture<'_, io::Result<Box<dyn NetworkStream>>>;
}

/// A listener of another network.
pub trait NetworkListener: fmt::Debug + Send + Sync {
    /// The next connection, and its source.
    fn poll_accept(
        &self,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<(Box<dyn NetworkStream>, SocketAddr)>>;

    /// The address that it listens on.
    fn local_addr(&self) -> io::Result<SocketAddr>;
}

/// The network that a resolver uses. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub enum Net {
    /// The network of the host.
    #[default]
    Machine,
    /// Another network.
    Other(Arc<dyn Network>),
}

/// A listener of either network.
#[derive(Debug)]
pub enum Listener {
    /// Of the host. An accepted socket is registered only with the runtime that serves it.
    Tcp(AsyncFd<net::TcpListener>),
    /// Of another network.
    Other(Box<dyn NetworkListener>),
}

impl Net {
    /// Listens on a port of `host`, or of all addresses.
    pub fn listen(&self, host: Option<IpAddr>, port: u16) -> io::Result<Listener> {
        match self {
            Self::Machine => Listener::over(bind(host, port)?),
            Self::Other(network) => network.listen(host, port).map(Listener::Other),
        }
    }

    /// Connects from an address that the kernel chooses.
    pub async fn connect(&self, to: SocketAddr) -> io::Result<Stream> {
        match self {
            Self::Machine => with_nodelay(TcpStream::connect(to).await?).map(Stream::Tcp),
            Self::Other(network) => network.connect(None, to).await.map(Stream::Other),
        }
    }

    /// Connects from `host` with an address that may be reused: several connections may share a source
    /// port if their destinations differ. A data plane that proxies connections in user space can
    /// preserve the source only of such a socket.
    pub async fn connect_from(&self, host: Option<IpAddr>, to: SocketAddr) -> io::Result<Stream> {
        let host = host.filter(|host| host.is_ipv4() == to.is_ipv4());
        match self {
            Self::Machine => connect_with_reuse(host, to).await.map(Stream::Tcp),
            Self::Other(network) => network.connect(host, to).await.map(Stream::Other),
        }
    }
}

impl Listener {
    /// Wraps a listener of the host.
    pub fn over(listener: TcpListener) -> io::Result<Self> {
        #[expect(
            deprecated,
            reason = "its replacement is unsafe, for descriptors that change; the descriptor of a \
                      standard library listener does not change while it lives"
        )]
        AsyncFd::new(listener.into_std()?).map(Self::Tcp)
    }

    /// The next connection, and its source.
    pub async fn accept(&self) -> io::Result<(Stream, SocketAddr)> {
        let (accepted, source) = self.accept_unregistered().await?;
        Ok((accepted.into_stream()?, source))
    }

    /// The next connection, not yet registered with any runtime, so that another thread can serve it.
    pub(super) async fn accept_unregistered(&self) -> io::Result<(AcceptedStream, SocketAddr)> {
        match self {
            Self::Tcp(listener) => {
                let accept = |listener: &net::TcpListener| listener.accept();
                let (stream, source) = listener.async_io(Interest::READABLE, accept).await?;
                stream.set_nonblocking(true)?;
                // Without TCP_NODELAY the connection is only slower.
                let _ = stream.set_nodelay(true);
                Ok((AcceptedStream::Tcp(stream), source))
            }
            Self::Other(listener) => {
                let (stream, source) = poll_fn(|context| listener.poll_accept(context)).await?;
                Ok((AcceptedStream::Other(stream), source))
            }
        }
    }

    /// The address that it listens on.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Tcp(listener) => listener.get_ref().local_addr(),
            Self::Other(listener) => listener.local_addr(),
        }
    }
}

/// Listens on a port of `host`, or else of both address families, or of IPv4 alone where IPv6 is missing.
pub fn bind(host: Option<IpAddr>, port: u16) -> io::Result<TcpListener> {
    match host {
        Some(host @ IpAddr::V4(_)) => return open(TcpSocket::new_v4()?, host, port),
        Some(host @ IpAddr::V6(_)) => return open(TcpSocket::new_v6()?, host, port),
        None => {}
    }
    let both =
        TcpSocket::new_v6().and_then(|socket| open(socket, Ipv6Addr::UNSPECIFIED.into(), port));
    match both {
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
            open(TcpSocket::new_v4()?, Ipv4Addr::UNSPECIFIED.into(), port)
        }
        both => both,
    }
}

fn open(socket: TcpSocket, address: IpAddr, port: u16) -> io::Result<TcpListener> {
    socket.set_reuseaddr(true)?;
    socket.bind(SocketAddr::new(address, port))?;
    socket.listen(BACKLOG)
}

async fn connect_with_reuse(host: Option<IpAddr>, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = if to.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    socket.set_reuseaddr(true)?;
    if let Some(host) = host {
        socket.bind(SocketAddr::new(host, 0))?;
    }
    socket.connect(to).await
}

fn with_nodelay(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    Ok(stream)
}
