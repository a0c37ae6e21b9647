//! One address: takes connections and passes them on.

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
use parking_lot::RwLock;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use super::decide::Route;

/// A pod that does not take a connection within this time is passed over.
const PATIENCE: Duration = Duration::from_secs(2);
/// A machine that is out of files is not asked for more at once.
const PAUSE: Duration = Duration::from_millis(50);

/// Where an address leads at present; changes while its listener runs.
#[derive(Debug)]
pub(super) struct Lead {
    route: RwLock<Route>,
    turn: AtomicUsize,
}

impl Lead {
    pub(super) fn new(route: Route) -> Self {
        Self {
            route: RwLock::new(route),
            turn: AtomicUsize::new(0),
        }
    }

    pub(super) fn to(&self, route: Route) {
        *self.route.write() = route;
    }

    /// The pods in the order in which they are tried for `client`.
    fn candidates(&self, client: SocketAddr) -> Vec<SocketAddr> {
        let route = self.route.read();
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

/// Passes connections on until it is dropped, and with it all of them.
pub(super) async fn listen(listener: TcpListener, lead: Arc<Lead>, clock: Clock) {
    let mut passed = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, client)) => {
                    let candidates = lead.candidates(client);
                    passed.spawn(async move {
                        // A connection that breaks is no news: both ends know.
                        let _ = pass(stream, &candidates, clock).await;
                    });
                }
                Err(_) => clock.sleep(PAUSE).await,
            },
            Some(_) = passed.join_next() => {}
        }
    }
}

async fn pass(mut client: TcpStream, candidates: &[SocketAddr], clock: Clock) -> io::Result<()> {
    for &address in candidates {
        let connected = clock.within(PATIENCE, TcpStream::connect(address)).await;
        if let Some(Ok(mut pod)) = connected {
            client.set_nodelay(true)?;
            pod.set_nodelay(true)?;
            copy_bidirectional(&mut client, &mut pod).await?;
            return Ok(());
        }
    }
    // Nobody is there: closed at once, as an address without endpoints refuses.
    Ok(())
}
