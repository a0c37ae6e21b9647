//! Connections to pods over which requests are sent.

use std::{
    collections::HashMap,
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::FutureExt;
use http::Version;
use hyper::{client::conn::http2, rt::Executor};
use hyper_util::rt::{TokioIo, TokioTimer};
use neap_kit::clock::{Clock, Uptime};
use parking_lot::Mutex;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    connection::{Connection, Sender},
    lent::{Lent, Standing},
    sent::Sent,
    wire::Wire,
};
use crate::resolver::{connect::connect, net::Net};

/// A connection that nobody used for this time is not used again: pods close theirs after a while,
/// and a request that crosses with that is lost. The shortest time in common use is two seconds.
const IDLE: Duration = Duration::from_millis(1500);
/// One that is still busy after this time is not used again.
const READY: Duration = Duration::from_secs(1);
/// So many are kept for each pod and thread.
const KEPT: usize = 256;

/// Sends requests to pods. Cheap to copy.
#[derive(Debug, Clone)]
pub struct Client {
    pub(crate) net: Net,
    here: Arc<Shared>,
    all: Arc<Mutex<Vec<Arc<Shared>>>>,
}

/// What one thread has.
#[derive(Debug)]
pub(super) struct Shared {
    clock: Clock,
    pub(super) tasks: TaskTracker,
    idle: Mutex<HashMap<SocketAddr, Vec<Idle>>>,
    /// Somebody closes those that were not used for too long.
    tidied: AtomicBool,
    /// One for each pod, over which all requests of the thread go at once.
    multiplexed: Mutex<HashMap<SocketAddr, Multiplexed>>,
    /// Nothing is kept any longer.
    closed: CancellationToken,
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
    standing: Standing,
    since: Uptime,
}

impl Client {
    pub(crate) fn new(clock: Clock, tasks: TaskTracker) -> Self {
        let here = Shared::new(clock, tasks, CancellationToken::new());
        let all = Arc::new(Mutex::new(vec![here.clone()]));
        let net = Net::default();
        Self { net, here, all }
    }

    /// One for another thread, which has connections of its own. What is said below to one of them
    /// is said to all.
    pub(crate) fn sibling(&self) -> Self {
        let Shared {
            clock,
            tasks,
            closed,
            ..
        } = &*self.here;
        let here = Shared::new(*clock, tasks.clone(), closed.clone());
        self.all.lock().push(here.clone());
        Self {
            here,
            net: self.net.clone(),
            all: self.all.clone(),
        }
    }

    /// Lets go of connections to pods that are not `known`.
    pub fn retain(&self, known: impl Fn(&SocketAddr) -> bool) {
        for one in &*self.all.lock() {
            one.idle.lock().retain(|pod, _| known(pod));
            one.multiplexed.lock().retain(|pod, _| known(pod));
        }
    }

    /// Keeps no connection from now on that nobody uses.
    pub fn close(&self) {
        self.here.closed.cancel();
        self.retain(|_| false);
    }

    /// A connection that stands, for a request of this version.
    pub(super) async fn connection(
        &self,
        pod: SocketAddr,
        version: Version,
    ) -> io::Result<Connection> {
        // What takes long is apart: most requests find a connection, and all would carry it along.
        if version == Version::HTTP_2 {
            return Box::pin(self.multiplexed(pod)).await;
        }
        while let Some(mut standing) = self.here.idle(pod) {
            // Fails if the connection has ended.
            let ready = match standing.ready().now_or_never() {
                Some(ready) => Some(ready),
                None => Box::pin(self.here.clock.within(READY, standing.ready())).await,
            };
            if matches!(ready, Some(Ok(()))) {
                return Ok(self.lend(standing, pod, false));
            }
        }
        let standing = Box::pin(self.stand(pod)).await?;
        Ok(self.lend(standing, pod, true))
    }

    fn lend(&self, standing: Standing, pod: SocketAddr, fresh: bool) -> Connection {
        let lent = Lent::new(standing, pod, &self.here);
        let sender = Sender::One(lent);
        Connection { sender, fresh }
    }

    async fn stand(&self, pod: SocketAddr) -> io::Result<Standing> {
        let (wire, tally) = Wire::new(connect(&self.net, pod, self.here.clock).await?);
        let standing = Standing::over(wire, tally).await;
        standing.map_err(io::Error::other)
    }

    async fn multiplexed(&self, pod: SocketAddr) -> io::Result<Connection> {
        let began = self.here.clock.uptime();
        let place = (self.here.multiplexed.lock().entry(pod))
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
                place.failed = Some(self.here.clock.uptime());
                Err(error)
            }
        }
    }

    async fn multiplex(&self, pod: SocketAddr) -> io::Result<http2::SendRequest<Sent>> {
        let stream = TokioIo::new(connect(&self.net, pod, self.here.clock).await?);
        let mut builder = http2::Builder::new(Tasks(self.here.tasks.clone()));
        builder
            .timer(TokioTimer::new())
            .adaptive_window(true)
            .keep_alive_interval(Duration::from_secs(30));
        let (sender, connection) = builder.handshake(stream).await.map_err(io::Error::other)?;
        self.here.tasks.spawn(async move {
            let _ = connection.await;
        });
        Ok(sender)
    }
}

impl Shared {
    fn new(clock: Clock, tasks: TaskTracker, closed: CancellationToken) -> Arc<Self> {
        Arc::new(Self {
            clock,
            tasks,
            idle: Mutex::default(),
            tidied: AtomicBool::new(false),
            multiplexed: Mutex::default(),
            closed,
        })
    }

    fn idle(&self, pod: SocketAddr) -> Option<Standing> {
        let now = self.clock.uptime();
        let mut idle = self.idle.lock();
        let kept = idle.get_mut(&pod)?;
        let last = kept.pop()?;
        if last.is_old(now) {
            // The others are older.
            kept.clear();
            return None;
        }
        Some(last.standing)
    }

    /// Keeps a connection for the next request.
    pub(super) fn keep(self: &Arc<Self>, pod: SocketAddr, standing: Standing) {
        let since = self.clock.uptime();
        let mut idle = self.idle.lock();
        // Asked under the lock: whoever closes clears after that.
        if self.closed.is_cancelled() {
            return;
        }
        let kept = idle.entry(pod).or_default();
        if kept.len() < KEPT {
            kept.push(Idle { standing, since });
        }
        drop(idle);
        if !self.tidied.swap(true, Ordering::SeqCst) {
            self.tasks.spawn(self.clone().tidy());
        }
    }

    /// Closes what was not used for too long, until nothing is kept: nobody looks at those that are
    /// kept, so nobody notices either that a pod has closed one.
    async fn tidy(self: Arc<Self>) {
        loop {
            tokio::select! {
                () = self.closed.cancelled() => return,
                () = self.clock.sleep(IDLE) => {}
            }
            let now = self.clock.uptime();
            let mut idle = self.idle.lock();
            idle.retain(|_, kept| {
                kept.retain(|idle| !idle.is_old(now));
                !kept.is_empty()
            });
            if idle.is_empty() {
                self.tidied.store(false, Ordering::SeqCst);
                return;
            }
        }
    }
}

impl Idle {
    fn is_old(&self, now: Uptime) -> bool {
        now.saturating_sub(self.since) > IDLE
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
