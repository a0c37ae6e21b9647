//! One address: takes connections and passes them on, or refuses them while nobody is there.

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
    sync::watch,
    task::JoinSet,
};

use super::decide::Route;

/// A pod that does not take a connection within this time is passed over.
const PATIENCE: Duration = Duration::from_secs(2);
/// So many connections may wait to be taken.
const WAITING: u32 = 1024;
/// A machine that is out of files is not asked for more at once.
const PAUSE: Duration = Duration::from_millis(50);
/// A door that cannot be turned after so many tries is given up: somebody else has the address.
const TRIES: u32 = 40;

/// Where an address leads at present; changes while its listener runs.
#[derive(Debug)]
pub(super) struct Lead {
    route: watch::Sender<Route>,
    turn: AtomicUsize,
}

impl Lead {
    pub(super) fn new(route: Route) -> Self {
        Self {
            route: watch::Sender::new(route),
            turn: AtomicUsize::new(0),
        }
    }

    pub(super) fn route(&self) -> Route {
        self.route.borrow().clone()
    }

    pub(super) fn to(&self, route: Route) {
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

/// The socket of an address. While it is closed the address is not ours alone: whoever listens on all
/// addresses of the machine may take the port, and then this one cannot be opened.
#[derive(Debug)]
pub(super) enum Door {
    /// Connections are refused, as they are at an address without endpoints.
    Closed(TcpSocket),
    Open(TcpListener),
}

impl Door {
    /// Takes an address; nobody is let in yet.
    pub(super) fn at(address: SocketAddr) -> io::Result<Self> {
        let socket = if address.is_ipv4() {
            TcpSocket::new_v4()?
        } else {
            TcpSocket::new_v6()?
        };
        // Connections that were made here may outlast the door.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        Ok(Self::Closed(socket))
    }

    /// Opens or closes it.
    fn turned(self, is_open: bool, address: SocketAddr) -> io::Result<Self> {
        match self {
            Self::Closed(socket) if is_open => socket.listen(WAITING).map(Self::Open),
            Self::Open(listener) if !is_open => {
                // Whoever waits to be taken is turned away with it.
                drop(listener);
                Self::at(address)
            }
            as_it_should_be => Ok(as_it_should_be),
        }
    }

    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        match self {
            Self::Open(listener) => listener.accept().await,
            Self::Closed(_) => std::future::pending().await,
        }
    }
}

/// An address that somebody else has taken.
#[derive(Debug)]
pub(super) struct Lost {
    pub(super) error: io::Error,
    /// Connections that were made here before, and go on.
    pub(super) passed: JoinSet<()>,
}

/// Opens or closes the door of an address, which somebody else may have for a moment.
async fn turned(door: Door, is_open: bool, address: SocketAddr, clock: Clock) -> io::Result<Door> {
    let mut turned = door.turned(is_open, address);
    for _ in 0..TRIES {
        if turned.is_ok() {
            break;
        }
        clock.sleep(PAUSE).await;
        turned = Door::at(address).and_then(|door| door.turned(is_open, address));
    }
    turned
}

/// Passes connections on until it is dropped, and with it all of them, those that were `passed`
/// before as well. The door is open while there is somebody to whom it leads. Ends only if the
/// address is lost.
pub(super) async fn attend(
    mut door: Door,
    address: SocketAddr,
    lead: Arc<Lead>,
    mut passed: JoinSet<()>,
    clock: Clock,
) -> Lost {
    let mut route = lead.route.subscribe();
    loop {
        let is_open = !route.borrow_and_update().backends.is_empty();
        door = match turned(door, is_open, address, clock).await {
            Ok(door) => door,
            Err(error) => return Lost { error, passed },
        };
        tokio::select! {
            accepted = door.accept() => match accepted {
                Ok((stream, client)) => {
                    let candidates = lead.candidates(client);
                    passed.spawn(async move {
                        // A connection that breaks is no news: both ends know.
                        let _ = pass(stream, client, &candidates, clock).await;
                    });
                }
                Err(_) => clock.sleep(PAUSE).await,
            },
            Some(_) = passed.join_next() => {}
            // The lead is ours as well, so this does not end.
            _ = route.changed() => {}
        }
    }
}

async fn pass(
    mut client: TcpStream,
    source: SocketAddr,
    candidates: &[SocketAddr],
    clock: Clock,
) -> io::Result<()> {
    for &address in candidates {
        let connected = clock.within(PATIENCE, reach(address, source)).await;
        if let Some(Ok(mut pod)) = connected {
            client.set_nodelay(true)?;
            pod.set_nodelay(true)?;
            copy_bidirectional(&mut client, &mut pod).await?;
            return Ok(());
        }
    }
    // They are ready and do not answer: closed at once.
    Ok(())
}

/// A connection to a pod that comes from where the client is, as it does through a data plane of the
/// kernel. Only a client that lets its port be shared leaves it to us; the others are served from a
/// port of ours.
async fn reach(pod: SocketAddr, client: SocketAddr) -> io::Result<TcpStream> {
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
        // Nobody was asked yet, so that somebody refuses is said by nobody but the pod.
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

    fn leading_to(backends: Vec<SocketAddr>) -> Route {
        Route {
            service: Key::new("shop", "web"),
            backends,
            sticky: false,
            node_port: None,
        }
    }

    async fn free() -> SocketAddr {
        let anywhere = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        anywhere.local_addr().unwrap()
    }

    /// A process that another test starts has our sockets, too, until it is another program.
    async fn at_last<T>(mut take: impl FnMut() -> io::Result<T>) -> T {
        loop {
            match take() {
                Ok(taken) => return taken,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    }

    /// Resolves once the address refuses. Whoever waits while it closes is turned away otherwise.
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
    async fn an_address_refuses_while_nobody_is_there_and_keeps_what_it_has() {
        let pod = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let there = vec![pod.local_addr().unwrap()];
        let address = free().await;
        let lead = Arc::new(Lead::new(leading_to(Vec::new())));
        let door = at_last(|| Door::at(address)).await;
        let mut tasks = JoinSet::new();
        tasks.spawn(attend(
            door,
            address,
            lead.clone(),
            JoinSet::new(),
            Clock::system(),
        ));
        refused(address).await;
        for _ in 0..3 {
            lead.to(leading_to(there.clone()));
            let mut client = reached(address).await;
            let (mut served, _) = pod.accept().await.unwrap();
            lead.to(leading_to(Vec::new()));
            refused(address).await;
            served.write_all(b"still here").await.unwrap();
            let mut heard = [0; 10];
            client.read_exact(&mut heard).await.unwrap();
            assert_eq!(&heard, b"still here");
        }
    }

    #[tokio::test]
    async fn a_pod_sees_where_a_client_comes_from_that_shares_its_port() {
        let pod = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = free().await;
        let lead = Arc::new(Lead::new(leading_to(vec![pod.local_addr().unwrap()])));
        let door = at_last(|| Door::at(address)).await;
        let mut tasks = JoinSet::new();
        let attended = attend(door, address, lead, JoinSet::new(), Clock::system());
        tasks.spawn(attended);
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
    async fn an_address_that_somebody_else_took_is_given_up_and_connections_are_kept() {
        let pod = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let there = leading_to(vec![pod.local_addr().unwrap()]);
        let address = free().await;
        let lead = Arc::new(Lead::new(there.clone()));
        let attended = |passed| {
            let lead = lead.clone();
            async move {
                let door = at_last(|| Door::at(address)).await;
                attend(door, address, lead, passed, Clock::system()).await
            }
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(attended(JoinSet::new()));
        let mut client = reached(address).await;
        let (mut served, _) = pod.accept().await.unwrap();
        lead.to(leading_to(Vec::new()));
        refused(address).await;
        let other = at_last(|| everywhere(address.port())).await;
        tokio::time::pause();
        lead.to(there);
        let lost = tasks.join_next().await.unwrap().unwrap();
        tokio::time::resume();
        assert_eq!(lost.error.kind(), io::ErrorKind::AddrInUse);
        drop(other);
        tasks.spawn(attended(lost.passed));
        reached(address).await;
        served.write_all(b"still here").await.unwrap();
        let mut heard = [0; 10];
        client.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"still here");
    }

    #[tokio::test]
    async fn an_address_of_somebody_else_cannot_be_taken() {
        let other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let taken = Door::at(other.local_addr().unwrap()).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
    }
}
