//! Requests that come as they come, whatever becomes of those before.

use std::{fmt, io, net::SocketAddr, sync::Arc, time::Duration};

use neap_idle::resolver::net::Net;
use neap_kit::clock::{Clock, Uptime};
use parking_lot::Mutex;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    cell::Cell,
    client::{Connection, Trouble},
    ledger::Ledger,
    plane::NODES,
};

/// Whoever has no answer by then gives up.
const PATIENCE: Duration = Duration::from_mins(3);
/// So long a connection is used again.
const KEPT: Duration = Duration::from_secs(5);
/// So many requests go over one connection at most.
const REQUESTS: u8 = 12;

/// Clients on all nodes.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) cell: Cell,
    pub(crate) clock: Clock,
    pub(crate) way: Arc<dyn Way>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) tasks: TaskTracker,
    /// Whether a resolver ends, and may refuse what it holds then.
    pub(crate) may_refuse: bool,
    pub(crate) dice: Mutex<fastrand::Rng>,
    /// Connections that nobody uses, by node.
    pub(crate) kept: Mutex<[Vec<Kept>; NODES]>,
}

/// A connection that may be used again.
#[derive(Debug)]
pub(crate) struct Kept {
    connection: Connection,
    since: Uptime,
    left: u8,
}

/// Who knows where a new connection goes.
pub(crate) trait Way: fmt::Debug + Send + Sync {
    /// Where one from this node goes now.
    fn leads(&self, node: usize) -> Leads;

    /// Somewhere on this node.
    fn place(&self, node: usize, dice: &mut fastrand::Rng) -> SocketAddr;

    /// The network over which it goes.
    fn net(&self) -> Net {
        Net::Machine
    }
}

/// Where it goes.
#[derive(Debug)]
pub(crate) enum Leads {
    /// There, where somebody has to answer.
    To(SocketAddr),
    /// To a pod that takes it: of that nothing is to be tried.
    Straight,
    /// To nobody.
    Astray(String),
}

/// What became of a new connection.
enum Led {
    /// To a pod, which takes it.
    Direct,
    /// To a resolver.
    Through(Kept),
    /// Nowhere.
    Astray(String),
}

impl Load {
    /// Asks until told to stop.
    pub(crate) async fn run(self: Arc<Self>, stop: CancellationToken) {
        let pause = 1.0 / f64::from(self.cell.rate);
        let mut due = self.clock.uptime();
        loop {
            let share = 0.5 + self.dice.lock().f64();
            due += Duration::from_secs_f64(pause * share);
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.clock.sleep_until(due) => self.one(),
            }
        }
    }

    fn one(self: &Arc<Self>) {
        let id = self.ledger.sent();
        let node = self.dice.lock().usize(..NODES);
        if let Some(kept) = self.take(node) {
            self.tasks.spawn(self.clone().ask(id, node, kept));
            return;
        }
        match self.way.leads(node) {
            Leads::Straight => self.ledger.direct(id),
            Leads::Astray(why) => self.lose(id, &why),
            Leads::To(there) => {
                let load = self.clone();
                self.tasks.spawn(async move {
                    match load.open(node, there).await {
                        Led::Through(kept) => load.ask(id, node, kept).await,
                        Led::Direct => load.ledger.direct(id),
                        Led::Astray(why) => load.lose(id, &why),
                    }
                });
            }
        }
    }

    async fn open(&self, node: usize, resolver: SocketAddr) -> Led {
        let (from, left) = {
            let mut dice = self.dice.lock();
            (self.way.place(node, &mut dice), dice.u8(1..=REQUESTS))
        };
        match self.connect(from, resolver).await {
            Ok(connection) => Led::Through(Kept {
                connection,
                since: self.clock.uptime(),
                left,
            }),
            Err(error) => Led::Astray(format!("{resolver} takes no connection: {error}")),
        }
    }

    async fn connect(&self, from: SocketAddr, to: SocketAddr) -> io::Result<Connection> {
        let net = self.way.net();
        // Whoever may be anywhere is not tied to a place: its port would have to be unlike all others of
        // the machine, also those of connections that have just ended, and there are not enough.
        let stream = if from.ip().is_unspecified() {
            net.connect(to).await?
        } else {
            net.connect_from(Some(from.ip()), to).await?
        };
        Connection::open(self.cell.protocol, stream, &self.tasks).await
    }

    async fn anew(&self, node: usize) -> Led {
        match self.way.leads(node) {
            Leads::Straight => Led::Direct,
            Leads::Astray(why) => Led::Astray(why),
            Leads::To(there) => self.open(node, there).await,
        }
    }

    async fn ask(self: Arc<Self>, id: u64, node: usize, mut kept: Kept) {
        let began = self.clock.uptime();
        // Whoever is not sent over a connection that has ended opens another, as clients do.
        for _ in 0..3 {
            let answer = kept.connection.ask(id);
            match self.clock.within(PATIENCE, answer).await {
                Some(Ok(())) => {
                    let waited = self.clock.uptime().saturating_sub(began);
                    self.ledger.answered(id, waited);
                    self.keep(node, kept);
                    return;
                }
                Some(Err(Trouble::Unsent)) => {}
                Some(Err(Trouble::Refused(_))) if self.may_refuse => {
                    return self.ledger.refused(id);
                }
                Some(Err(Trouble::Refused(why) | Trouble::Lost(why))) => {
                    return self.lose(id, &why);
                }
                None => return self.lose(id, "no answer came"),
            }
            match self.anew(node).await {
                Led::Through(fresh) => kept = fresh,
                Led::Direct => return self.ledger.direct(id),
                Led::Astray(why) => return self.lose(id, &why),
            }
        }
        self.lose(id, "three connections ended before it was sent");
    }

    fn lose(&self, id: u64, why: &str) {
        let after = self.clock.uptime().as_secs_f64();
        self.ledger.lost(id, &format!("at {after:.3} s: {why}"));
    }

    /// A connection of a node that stands, if there is one.
    fn take(&self, node: usize) -> Option<Kept> {
        let now = self.clock.uptime();
        let mut all = self.kept.lock();
        let kept = &mut all[node];
        kept.retain(|kept| now.saturating_sub(kept.since) < KEPT);
        let mut last = kept.pop()?;
        last.left -= 1;
        if let (true, Some(connection)) = (last.left > 0, last.connection.shared()) {
            kept.push(Kept { connection, ..last });
        }
        Some(last)
    }

    fn keep(&self, node: usize, kept: Kept) {
        // One that is shared is there already.
        let shared = kept.connection.shared().is_some();
        let mut all = self.kept.lock();
        if kept.left > 0 && (!shared || all[node].is_empty()) {
            all[node].push(kept);
        }
    }
}
