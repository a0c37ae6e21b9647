//! The network that a resolver works on: where it listens, and how it reaches others.
//!
//! It is that of the machine, unless whoever plays a whole cluster in one process hands it another:
//! what a resolver does is the same on both. The machine's own goes by the variant of an enum, so
//! that it costs nothing that there may be others.

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

pub(super) use self::stream::Handed;
pub use self::stream::{Carries, Stream};

/// So many connections wait in the system until they are accepted.
const BACKLOG: u32 = 4096;

/// A network other than that of the machine.
pub trait Network: fmt::Debug + Send + Sync {
    /// Listens on a port at `host`, or at every address of whoever asks.
    fn listen(&self, host: Option<IpAddr>, port: u16) -> io::Result<Box<dyn Hears>>;

    /// Connects, from the address `host` if it is given.
    fn connect(
        &self,
        host: Option<IpAddr>,
        to: SocketAddr,
    ) -> BoxFuture<'_, io::Result<Box<dyn Carries>>>;
}

/// Takes connections on another network.
pub trait Hears: fmt::Debug + Send + Sync {
    /// The next connection, and where it comes from.
    fn poll_accept(
        &self,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<(Box<dyn Carries>, SocketAddr)>>;

    /// Where it listens.
    fn local_addr(&self) -> io::Result<SocketAddr>;
}

/// Which network it is. Cheap to copy.
#[derive(Debug, Clone, Default)]
pub enum Net {
    /// That of the machine.
    #[default]
    Machine,
    /// Another one.
    Other(Arc<dyn Network>),
}

/// Takes connections.
#[derive(Debug)]
pub enum Listener {
    /// Of the machine. What it takes is looked after by whoever carries it, and by nobody before.
    Tcp(AsyncFd<net::TcpListener>),
    /// Of another network.
    Other(Box<dyn Hears>),
}

impl Net {
    /// Listens on a port at `host`, or else at all addresses.
    pub fn listen(&self, host: Option<IpAddr>, port: u16) -> io::Result<Listener> {
        match self {
            Self::Machine => Listener::over(bind(host, port)?),
            Self::Other(network) => network.listen(host, port).map(Listener::Other),
        }
    }

    /// Connects from wherever the system likes.
    pub async fn connect(&self, to: SocketAddr) -> io::Result<Stream> {
        match self {
            Self::Machine => quick(TcpStream::connect(to).await?).map(Stream::Tcp),
            Self::Other(network) => network.connect(None, to).await.map(Stream::Other),
        }
    }

    /// Connects from `host`, which may have several connections with one source port as long as they
    /// lead to different places. A data plane that passes connections on itself can keep the source
    /// only of such a socket.
    pub async fn connect_from(&self, host: Option<IpAddr>, to: SocketAddr) -> io::Result<Stream> {
        let host = host.filter(|host| host.is_ipv4() == to.is_ipv4());
        match self {
            Self::Machine => shareable(host, to).await.map(Stream::Tcp),
            Self::Other(network) => network.connect(host, to).await.map(Stream::Other),
        }
    }
}

impl Listener {
    /// What listens on the network of the machine already.
    pub fn over(listener: TcpListener) -> io::Result<Self> {
        #[expect(
            deprecated,
            reason = "what took its place is unsafe, for descriptors that change; that of a \
                      listener of the standard library does not as long as it lives"
        )]
        AsyncFd::new(listener.into_std()?).map(Self::Tcp)
    }

    /// The next connection, and where it comes from.
    pub async fn accept(&self) -> io::Result<(Stream, SocketAddr)> {
        let (handed, source) = self.arrival().await?;
        Ok((handed.take()?, source))
    }

    /// The same, for another thread to take.
    pub(super) async fn arrival(&self) -> io::Result<(Handed, SocketAddr)> {
        match self {
            Self::Tcp(listener) => {
                let accept = |listener: &net::TcpListener| listener.accept();
                let (stream, source) = listener.async_io(Interest::READABLE, accept).await?;
                stream.set_nonblocking(true)?;
                // Who cannot be told to be quick is slower, and that is all.
                let _ = stream.set_nodelay(true);
                Ok((Handed::Tcp(stream), source))
            }
            Self::Other(listener) => {
                let (stream, source) = poll_fn(|context| listener.poll_accept(context)).await?;
                Ok((Handed::Other(stream), source))
            }
        }
    }

    /// Where it listens.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Tcp(listener) => listener.get_ref().local_addr(),
            Self::Other(listener) => listener.local_addr(),
        }
    }
}

/// Listens on a port at `host`, or else for both families, or for IPv4 where there is no other.
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

async fn shareable(host: Option<IpAddr>, to: SocketAddr) -> io::Result<TcpStream> {
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

fn quick(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    Ok(stream)
}
