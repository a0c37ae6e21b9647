//! Sends requests at a rate, whatever happens to earlier ones.

use std::{fmt, io, net::SocketAddr, sync::Arc, time::Duration};

use neap_idle::resolver::net::Net;
use neap_kit::clock::{Clock, Uptime};
use parking_lot::Mutex;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    cell::Cell,
    client::{Connection, RequestError},
    data_plane::NODES,
    ledger::Ledger,
};

/// Time after which a client gives up.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(3);
/// Time for which an idle connection is reused.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);
/// Requests per connection at most.
const MAX_REQUESTS_PER_CONNECTION: u8 = 12;

/// Clients on all nodes.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) cell: Cell,
    pub(crate) clock: Clock,
    pub(crate) router: Arc<dyn Router>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) tasks: TaskTracker,
    /// Whether a resolver terminates, and may refuse the requests that it holds then.
    pub(crate) may_refuse: bool,
    pub(crate) rng: Mutex<fastrand::Rng>,
    /// Idle connections, by node.
    pub(crate) idle: Mutex<[Vec<IdleConnection>; NODES]>,
}

/// An idle connection.
#[derive(Debug)]
pub(crate) struct IdleConnection {
    connection: Connection,
    since: Uptime,
    left: u8,
}

/// Decides where a new connection goes.
pub(crate) trait Router: fmt::Debug + Send + Sync {
    /// Where a connection from this node goes now.
    fn route(&self, node: usize) -> Destination;

    /// A client address on this node.
    fn client_address(&self, node: usize, rng: &mut fastrand::Rng) -> SocketAddr;

    /// The network of the clients.
    fn net(&self) -> Net {
        Net::Machine
    }
}

/// The destination of a connection.
#[derive(Debug)]
pub(crate) enum Destination {
    /// An address that has to answer.
    To(SocketAddr),
    /// A pod that accepts connections, which is not tested.
    Pod,
    /// Nowhere, with the reason.
    Unreachable(String),
}

/// The result of a new connection.
enum ConnectResult {
    /// It went to a pod that accepts it.
    Direct,
    /// It went to a resolver.
    Through(IdleConnection),
    /// It failed.
    Unreachable(String),
}

impl Load {
    /// Sends requests until `stop`.
    pub(crate) async fn run(self: Arc<Self>, stop: CancellationToken) {
        let pause = 1.0 / f64::from(self.cell.rate);
        let mut due = self.clock.uptime();
        loop {
            let share = 0.5 + self.rng.lock().f64();
            due += Duration::from_secs_f64(pause * share);
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.clock.sleep_until(due) => self.send_next(),
            }
        }
    }

    fn send_next(self: &Arc<Self>) {
        let id = self.ledger.sent();
        let node = self.rng.lock().usize(..NODES);
        if let Some(idle) = self.take_idle(node) {
            self.tasks.spawn(self.clone().request(id, node, idle));
            return;
        }
        match self.router.route(node) {
            Destination::Pod => self.ledger.direct(id),
            Destination::Unreachable(why) => self.record_lost(id, &why),
            Destination::To(there) => {
                let load = self.clone();
                self.tasks.spawn(async move {
                    match load.open(node, there).await {
                        ConnectResult::Through(idle) => load.request(id, node, idle).await,
                        ConnectResult::Direct => load.ledger.direct(id),
                        ConnectResult::Unreachable(why) => load.record_lost(id, &why),
                    }
                });
            }
        }
    }

    async fn open(&self, node: usize, resolver: SocketAddr) -> ConnectResult {
        let (from, left) = {
            let mut rng = self.rng.lock();
            (
                self.router.client_address(node, &mut rng),
                rng.u8(1..=MAX_REQUESTS_PER_CONNECTION),
            )
        };
        match self.connect(from, resolver).await {
            Ok(connection) => ConnectResult::Through(IdleConnection {
                connection,
                since: self.clock.uptime(),
                left,
            }),
            Err(error) => {
                ConnectResult::Unreachable(format!("{resolver} takes no connection: {error}"))
            }
        }
    }

    async fn connect(&self, from: SocketAddr, to: SocketAddr) -> io::Result<Connection> {
        let net = self.router.net();
        // Without a source address the system chooses the port: otherwise it would have to differ
        // from all others of the machine, including those of recent connections, and there are not
        // enough.
        let stream = if from.ip().is_unspecified() {
            net.connect(to).await?
        } else {
            net.connect_from(Some(from.ip()), to).await?
        };
        Connection::open(self.cell.protocol, stream, &self.tasks).await
    }

    async fn reconnect(&self, node: usize) -> ConnectResult {
        match self.router.route(node) {
            Destination::Pod => ConnectResult::Direct,
            Destination::Unreachable(why) => ConnectResult::Unreachable(why),
            Destination::To(there) => self.open(node, there).await,
        }
    }

    async fn request(self: Arc<Self>, id: u64, node: usize, mut idle: IdleConnection) {
        let began = self.clock.uptime();
        // A request that was not sent because the connection had ended is sent over another one, as
        // clients do.
        for _ in 0..3 {
            let answer = idle.connection.request(id);
            match self.clock.within(RESPONSE_TIMEOUT, answer).await {
                Some(Ok(())) => {
                    let waited = self.clock.uptime().saturating_sub(began);
                    self.ledger.answered(id, waited);
                    self.store_idle(node, idle);
                    return;
                }
                Some(Err(RequestError::Unsent)) => {}
                Some(Err(RequestError::Refused(_))) if self.may_refuse => {
                    return self.ledger.refused(id);
                }
                Some(Err(RequestError::Refused(why) | RequestError::Lost(why))) => {
                    return self.record_lost(id, &why);
                }
                None => return self.record_lost(id, "no answer came"),
            }
            match self.reconnect(node).await {
                ConnectResult::Through(fresh) => idle = fresh,
                ConnectResult::Direct => return self.ledger.direct(id),
                ConnectResult::Unreachable(why) => return self.record_lost(id, &why),
            }
        }
        self.record_lost(id, "three connections ended before it was sent");
    }

    fn record_lost(&self, id: u64, why: &str) {
        let after = self.clock.uptime().as_secs_f64();
        self.ledger.lost(id, &format!("at {after:.3} s: {why}"));
    }

    /// An idle connection of a node, if there is one.
    fn take_idle(&self, node: usize) -> Option<IdleConnection> {
        let now = self.clock.uptime();
        let mut all = self.idle.lock();
        let idle = &mut all[node];
        idle.retain(|idle| now.saturating_sub(idle.since) < IDLE_TIMEOUT);
        let mut last = idle.pop()?;
        last.left -= 1;
        if let (true, Some(connection)) = (last.left > 0, last.connection.shared()) {
            idle.push(IdleConnection { connection, ..last });
        }
        Some(last)
    }

    fn store_idle(&self, node: usize, idle: IdleConnection) {
        // A shared connection is in the pool already.
        let shared = idle.connection.shared().is_some();
        let mut all = self.idle.lock();
        if idle.left > 0 && (!shared || all[node].is_empty()) {
            all[node].push(idle);
        }
    }
}
