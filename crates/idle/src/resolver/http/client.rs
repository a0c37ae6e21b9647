//! Connections to pods over which requests are sent.

use std::{
    collections::HashMap,
    io,
    net::SocketAddr,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http::Version;
use hyper::{
    client::conn::{http1, http2},
    rt::Executor,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use neap_kit::clock::{Clock, Uptime};
use parking_lot::Mutex;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    connection::{Connection, Sender},
    sent::Sent,
    wire::{Tally, Wire},
};
use crate::resolver::{connect::connect, net::Net};

/// A connection that nobody used for this time is not used again: pods close theirs after a while,
/// and a request that crosses with that is lost. The shortest time in common use is two seconds.
const IDLE: Duration = Duration::from_millis(1500);
/// One that is still busy after this time is not used again.
const READY: Duration = Duration::from_secs(1);
/// So many are kept for each pod.
const KEPT: usize = 256;

/// Sends requests to pods. Cheap to copy.
#[derive(Debug, Clone)]
pub struct Client {
    pub(crate) net: Net,
    clock: Clock,
    tasks: TaskTracker,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    idle: Mutex<HashMap<SocketAddr, Vec<Idle>>>,
    /// One for each pod, over which all requests go at once.
    multiplexed: Mutex<HashMap<SocketAddr, Multiplexed>>,
    /// Nothing is kept any longer.
    closed: AtomicBool,
}

type Multiplexed = Arc<tokio::sync::Mutex<Shareable>>;

#[derive(Debug, Default)]
struct Shareable {
    sender: Option<http2::SendRequest<Sent>>,
    /// When a try to connect last failed.
    failed: Option<Uptime>,
}

#[derive(Debug)]
struct Idle {
    sender: http1::SendRequest<Sent>,
    tally: Arc<Tally>,
    since: Uptime,
}

/// A connection for one request at a time, which goes back when this is dropped.
#[derive(Debug)]
pub(super) struct Lent {
    pub(super) sender: Option<http1::SendRequest<Sent>>,
    pub(super) tally: Arc<Tally>,
    /// Told when the body of its request was sent, if there is one.
    pub(super) upload: Option<CancellationToken>,
    pod: SocketAddr,
    clock: Clock,
    home: Weak<Shared>,
}

impl Client {
    pub(crate) fn new(clock: Clock, tasks: TaskTracker) -> Self {
        Self {
            net: Net::default(),
            clock,
            tasks,
            shared: Arc::default(),
        }
    }

    /// Lets go of connections to pods that are not `known`, and of those that have ended.
    pub fn retain(&self, known: impl Fn(&SocketAddr) -> bool) {
        let mut idle = self.shared.idle.lock();
        idle.retain(|pod, kept| {
            kept.retain(|idle| !idle.sender.is_closed());
            known(pod) && !kept.is_empty()
        });
        drop(idle);
        let mut multiplexed = self.shared.multiplexed.lock();
        multiplexed.retain(|pod, _| known(pod));
    }

    /// Keeps no connection from now on that nobody uses.
    pub fn close(&self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        self.retain(|_| false);
    }

    /// A connection that stands, for a request of this version.
    pub(super) async fn connection(
        &self,
        pod: SocketAddr,
        version: Version,
    ) -> io::Result<Connection> {
        if version == Version::HTTP_2 {
            return self.multiplexed(pod).await;
        }
        while let Some((mut sender, tally)) = self.idle(pod) {
            // Waits for the end of the answer before, and fails if the connection has ended.
            let ready = self.clock.within(READY, sender.ready()).await;
            if matches!(ready, Some(Ok(()))) {
                return Ok(self.lend(sender, tally, pod, false));
            }
        }
        let (wire, tally) = Wire::new(connect(&self.net, pod, self.clock).await?);
        let handshake = http1::handshake(TokioIo::new(wire)).await;
        let (sender, connection) = handshake.map_err(io::Error::other)?;
        let connection = connection.with_upgrades();
        self.tasks.spawn(async move {
            // What breaks it is told to whoever uses it.
            let _ = connection.await;
        });
        Ok(self.lend(sender, tally, pod, true))
    }

    fn idle(&self, pod: SocketAddr) -> Option<(http1::SendRequest<Sent>, Arc<Tally>)> {
        let now = self.clock.uptime();
        let mut idle = self.shared.idle.lock();
        let kept = idle.get_mut(&pod)?;
        let last = kept.pop()?;
        if now.saturating_sub(last.since) > IDLE {
            // The others are older.
            kept.clear();
            return None;
        }
        Some((last.sender, last.tally))
    }

    fn lend(
        &self,
        sender: http1::SendRequest<Sent>,
        tally: Arc<Tally>,
        pod: SocketAddr,
        fresh: bool,
    ) -> Connection {
        let lent = Lent {
            sender: Some(sender),
            tally,
            upload: None,
            pod,
            clock: self.clock,
            home: Arc::downgrade(&self.shared),
        };
        Connection {
            sender: Sender::One(lent),
            fresh,
        }
    }

    async fn multiplexed(&self, pod: SocketAddr) -> io::Result<Connection> {
        let began = self.clock.uptime();
        let place = (self.shared.multiplexed.lock().entry(pod))
            .or_default()
            .clone();
        // Held while connecting, so that those who come together share one connection.
        let mut place = place.lock().await;
        if let Some(sender) = place.sender.as_ref().filter(|sender| !sender.is_closed()) {
            return Ok(Connection {
                sender: Sender::Many(sender.clone()),
                fresh: false,
            });
        }
        // They share a failure as well, or each of them would wait for its own.
        if place.failed.is_some_and(|failed| failed >= began) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        match self.multiplex(pod).await {
            Ok(sender) => {
                place.sender = Some(sender.clone());
                Ok(Connection {
                    sender: Sender::Many(sender),
                    fresh: true,
                })
            }
            Err(error) => {
                place.failed = Some(self.clock.uptime());
                Err(error)
            }
        }
    }

    async fn multiplex(&self, pod: SocketAddr) -> io::Result<http2::SendRequest<Sent>> {
        let stream = TokioIo::new(connect(&self.net, pod, self.clock).await?);
        let mut builder = http2::Builder::new(Tasks(self.tasks.clone()));
        builder
            .timer(TokioTimer::new())
            .adaptive_window(true)
            .keep_alive_interval(Duration::from_secs(30));
        let (sender, connection) = builder.handshake(stream).await.map_err(io::Error::other)?;
        self.tasks.spawn(async move {
            let _ = connection.await;
        });
        Ok(sender)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let home = self.home.upgrade();
        let home = home.filter(|home| !home.closed.load(Ordering::SeqCst));
        // A pod may answer before it was sent everything; the rest is still on its way then.
        let sent = (self.upload.as_ref()).is_none_or(CancellationToken::is_cancelled);
        let sender = (self.sender.take()).filter(|sender| sent && !sender.is_closed());
        if let (Some(home), Some(sender)) = (home, sender) {
            let since = self.clock.uptime();
            let mut idle = home.idle.lock();
            let kept = idle.entry(self.pod).or_default();
            if kept.len() < KEPT {
                let tally = self.tally.clone();
                kept.push(Idle {
                    sender,
                    tally,
                    since,
                });
            }
        }
    }
}

/// Runs what hyper wants to run as tasks that are counted.
#[derive(Debug, Clone)]
pub(super) struct Tasks(pub(super) TaskTracker);

impl<F> Executor<F> for Tasks
where
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, task: F) {
        self.0.spawn(task);
    }
}
