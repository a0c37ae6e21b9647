//! The listener of one address: forwards connections, or refuses them while there are no backends.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use neap_kit::clock::Clock;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpSocket, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    task::JoinSet,
};

use super::decide::Route;

/// The timeout for a connection to a pod, after which the next one is tried.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// The backlog of connections that are not accepted yet.
const LISTEN_BACKLOG: u32 = 1024;
/// The delay after a failed accept or bind, which may be due to exhausted file descriptors.
const RETRY_DELAY: Duration = Duration::from_millis(50);
/// The number of bind attempts before the address counts as taken by another program.
const MAX_BIND_ATTEMPTS: u32 = 40;

/// The current route of an address; changes while its listener runs.
#[derive(Debug)]
pub(super) struct CurrentRoute {
    route: watch::Sender<Route>,
    turn: AtomicUsize,
}

impl CurrentRoute {
    pub(super) fn new(route: Route) -> Self {
        Self {
            route: watch::Sender::new(route),
            turn: AtomicUsize::new(0),
        }
    }

    pub(super) fn route(&self) -> Route {
        self.route.borrow().clone()
    }

    pub(super) fn set(&self, route: Route) {
        self.route.send_if_modified(|former| {
            let is_new = *former != route;
            *former = route;
            is_new
        });
    }

    /// The pods in the order in which they are tried for `client`.
    fn candidates(&self, client: SocketAddr) -> Vec<SocketAddr> {
        let route = self.route.borrow();
        let mut all = route.backends.clone();
        let first = if route.sticky {
            let mut hasher = DefaultHasher::new();
            client.ip().hash(&mut hasher);
            hasher.finish() as usize
        } else {
            self.turn.fetch_add(1, Ordering::Relaxed)
        };
        let count = all.len().max(1);
        all.rotate_left(first % count);
        all
    }
}

/// The socket of an address. While it is not listening, a program that listens on all addresses of
/// the machine may take the port, and then this socket cannot listen again.
#[derive(Debug)]
pub(super) enum ServiceSocket {
    /// Bound without listening: connections are refused, as for a Service without endpoints.
    Closed(TcpSocket),
    Listening(TcpListener),
}

impl ServiceSocket {
    /// Binds an address without listening.
    pub(super) fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = if address.is_ipv4() {
            TcpSocket::new_v4()?
        } else {
            TcpSocket::new_v6()?
        };
        // Accepted connections may outlive the socket.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        Ok(Self::Closed(socket))
    }

    /// Starts or stops listening.
    fn switched(self, is_open: bool, address: SocketAddr) -> io::Result<Self> {
        match self {
            Self::Closed(socket) if is_open => socket.listen(LISTEN_BACKLOG).map(Self::Listening),
            Self::Listening(listener) if !is_open => {
                // Connections in the backlog are reset with it.
                drop(listener);
                Self::bind(address)
            }
            unchanged => Ok(unchanged),
        }
    }

    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        match self {
            Self::Listening(listener) => listener.accept().await,
            Self::Closed(_) => std::future::pending().await,
        }
    }
}

/// The result of a listener whose address was taken by another program.
#[derive(Debug)]
pub(super) struct AddressLost {
    pub(super) error: io::Error,
    /// Connections that were accepted before, and continue.
    pub(super) connections: JoinSet<()>,
}

/// Starts or stops listening, with retries while another program has the address for a moment.
async fn switched(
    socket: ServiceSocket,
    is_open: bool,
    address: SocketAddr,
    clock: Clock,
) -> io::Result<ServiceSocket> {
    let mut switched = socket.switched(is_open, address);
    for _ in 0..MAX_BIND_ATTEMPTS {
        if switched.is_ok() {
            break;
        }
        clock.sleep(RETRY_DELAY).await;
        switched =
            ServiceSocket::bind(address).and_then(|socket| socket.switched(is_open, address));
    }
    switched
}

/// What a listener starts with.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) socket: ServiceSocket,
    pub(super) address: SocketAddr,
    /// Connections that were accepted before.
    pub(super) connections: JoinSet<()>,
    /// Room for connections, shared by all listeners.
    pub(super) room: Arc<Semaphore>,
}

/// Forwards connections until it is dropped, which also ends those accepted before. It listens while
/// there are backends. It returns only if the address is lost.
pub(super) async fn serve(opened: Opened, current: Arc<CurrentRoute>, clock: Clock) -> AddressLost {
    let Opened {
        mut socket,
        address,
        mut connections,
        room,
    } = opened;
    let mut route = current.route.subscribe();
    loop {
        let is_open = !route.borrow_and_update().backends.is_empty();
        socket = match switched(socket, is_open, address, clock).await {
            Ok(socket) => socket,
            Err(error) => return AddressLost { error, connections },
        };
        tokio::select! {
            accepted = accept(&socket, &room) => match accepted {
                Ok(((stream, client), seat)) => {
                    let candidates = current.candidates(client);
                    connections.spawn(async move {
                        // A broken connection needs no log: both ends know.
                        let _ = forward(stream, client, &candidates, clock).await;
                        drop(seat);
                    });
                }
                Err(_) => clock.sleep(RETRY_DELAY).await,
            },
            Some(_) = connections.join_next() => {}
            // The sender is held here as well, so this never fails.
            _ = route.changed() => {}
        }
    }
}

/// Accepts a connection once there is room for it.
async fn accept(
    socket: &ServiceSocket,
    room: &Arc<Semaphore>,
) -> io::Result<((TcpStream, SocketAddr), OwnedSemaphorePermit)> {
    let seat = room.clone().acquire_owned().await;
    let seat = seat.map_err(io::Error::other)?;
    Ok((socket.accept().await?, seat))
}

async fn forward(
    mut client: TcpStream,
    source: SocketAddr,
    candidates: &[SocketAddr],
    clock: Clock,
) -> io::Result<()> {
    for &address in candidates {
        let connected = clock
            .within(CONNECT_TIMEOUT, connect_as_client(address, source))
            .await;
        if let Some(Ok(mut pod)) = connected {
            client.set_nodelay(true)?;
            pod.set_nodelay(true)?;
            copy_bidirectional(&mut client, &mut pod).await?;
            return Ok(());
        }
    }
    // The pods are ready and do not answer: the connection is closed at once.
    Ok(())
}

/// A connection to a pod from the client's own source address, as with a data plane in the kernel.
/// This works only if the client allows its port to be shared; otherwise the kernel assigns another
/// port.
async fn connect_as_client(pod: SocketAddr, client: SocketAddr) -> io::Result<TcpStream> {
    let as_client = async {
        let socket = if pod.is_ipv4() {
            TcpSocket::new_v4()?
        } else {
            TcpSocket::new_v6()?
        };
        socket.set_reuseaddr(true)?;
        socket.bind(client)?;
        socket.connect(pod).await
    };
    match as_client.await {
        // Binding sends nothing to the pod, so only the pod itself can have refused.
        Err(error) if error.kind() != io::ErrorKind::ConnectionRefused => {
            TcpStream::connect(pod).await
        }
        reached => reached,
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use neap_kit::key::Key;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    fn route_to(backends: Vec<SocketAddr>) -> Route {
        Route {
            service: Key::new("shop", "web"),
            backends,
            sticky: false,
            node_port: None,
        }
    }

    fn opened(socket: ServiceSocket, address: SocketAddr, room: usize) -> Opened {
        Opened {
            socket,
            address,
            connections: JoinSet::new(),
            room: Arc::new(Semaphore::new(room)),
        }
    }

    async fn free() -> SocketAddr {
        let anywhere = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        anywhere.local_addr().unwrap()
    }

    /// Retries: a process that another test starts shares our sockets until its exec.
    async fn retry<T>(mut take: impl FnMut() -> io::Result<T>) -> T {
        loop {
            match take() {
                Ok(taken) => return taken,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    }

    /// Resolves once the address refuses. A connection that waits while it closes gets another
    /// error.
    async fn refused(address: SocketAddr) {
        let is_refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
        while !TcpStream::connect(address).await.is_err_and(is_refused) {
            tokio::task::yield_now().await;
        }
    }

    async fn reached(address: SocketAddr) -> TcpStream {
        loop {
            match TcpStream::connect(address).await {
                Ok(stream) => return stream,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    }

    #[tokio::test]
    async fn an_address_without_backends_refuses_and_keeps_its_connections() {
        let pod = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let there = vec![pod.local_addr().unwrap()];
        let address = free().await;
        let current = Arc::new(CurrentRoute::new(route_to(Vec::new())));
        let socket = retry(|| ServiceSocket::bind(address)).await;
        let mut tasks = JoinSet::new();
        let opened = opened(socket, address, 100);
        tasks.spawn(serve(opened, current.clone(), Clock::system()));
        refused(address).await;
        for _ in 0..3 {
            current.set(route_to(there.clone()));
            let mut client = reached(address).await;
            let (mut served, _) = pod.accept().await.unwrap();
            current.set(route_to(Vec::new()));
            refused(address).await;
            served.write_all(b"still here").await.unwrap();
            let mut received = [0; 10];
            client.read_exact(&mut received).await.unwrap();
            assert_eq!(&received, b"still here");
        }
    }

    #[tokio::test]
    async fn connections_beyond_the_limit_wait_until_one_ends() {
        let pod = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = free().await;
        let current = Arc::new(CurrentRoute::new(route_to(vec![pod.local_addr().unwrap()])));
        let socket = retry(|| ServiceSocket::bind(address)).await;
        let mut tasks = JoinSet::new();
        let opened = opened(socket, address, 1);
        let room = opened.room.clone();
        tasks.spawn(serve(opened, current, Clock::system()));
        let first = reached(address).await;
        let (served, _) = pod.accept().await.unwrap();
        let mut second = reached(address).await;
        second.write_all(b"later").await.unwrap();
        assert_eq!(room.available_permits(), 0);
        // The first connection ends, and only then is the second one forwarded.
        drop((first, served));
        let (mut served, _) = pod.accept().await.unwrap();
        let mut received = [0; 5];
        served.read_exact(&mut received).await.unwrap();
        assert_eq!(&received, b"later");
    }

    #[tokio::test]
    async fn a_pod_sees_the_source_of_a_client_that_shares_its_port() {
        let pod = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = free().await;
        let current = Arc::new(CurrentRoute::new(route_to(vec![pod.local_addr().unwrap()])));
        let socket = retry(|| ServiceSocket::bind(address)).await;
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(
            opened(socket, address, 100),
            current,
            Clock::system(),
        ));
        reached(address).await;
        pod.accept().await.unwrap();
        for shares in [true, false] {
            let socket = TcpSocket::new_v4().unwrap();
            socket.set_reuseaddr(shares).unwrap();
            let client = socket.connect(address).await.unwrap();
            let (_, source) = pod.accept().await.unwrap();
            assert_eq!(source == client.local_addr().unwrap(), shares);
        }
    }

    /// Listens on all addresses, as many programs do.
    fn everywhere(port: u16) -> io::Result<TcpListener> {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.bind((Ipv4Addr::UNSPECIFIED, port).into())?;
        socket.listen(1)
    }

    #[tokio::test]
    async fn an_address_taken_by_another_program_is_given_up_and_connections_continue() {
        let pod = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let there = route_to(vec![pod.local_addr().unwrap()]);
        let address = free().await;
        let current = Arc::new(CurrentRoute::new(there.clone()));
        let serving = |connections| {
            let current = current.clone();
            async move {
                let socket = retry(|| ServiceSocket::bind(address)).await;
                let opened = Opened {
                    connections,
                    ..opened(socket, address, 100)
                };
                serve(opened, current, Clock::system()).await
            }
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(serving(JoinSet::new()));
        let mut client = reached(address).await;
        let (mut served, _) = pod.accept().await.unwrap();
        current.set(route_to(Vec::new()));
        refused(address).await;
        let other = retry(|| everywhere(address.port())).await;
        tokio::time::pause();
        current.set(there);
        let lost = tasks.join_next().await.unwrap().unwrap();
        tokio::time::resume();
        assert_eq!(lost.error.kind(), io::ErrorKind::AddrInUse);
        drop(other);
        tasks.spawn(serving(lost.connections));
        reached(address).await;
        served.write_all(b"still here").await.unwrap();
        let mut received = [0; 10];
        client.read_exact(&mut received).await.unwrap();
        assert_eq!(&received, b"still here");
    }

    #[tokio::test]
    async fn an_address_in_use_cannot_be_bound() {
        let other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let taken = ServiceSocket::bind(other.local_addr().unwrap()).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
    }
}
