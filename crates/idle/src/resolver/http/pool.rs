//! The pool of HTTP connections to pods.

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
    counted_stream::CountedStream,
    pod_connection::{PodConnection, RequestSender},
    pooled::{Http1Connection, PooledConnection},
    request_body::RequestBody,
};
use crate::resolver::{connect::connect, net::Net};

/// A connection that was idle for this time is not used again: a server closes idle connections after a
/// while, and a request that crosses with the close is lost. The shortest keep-alive in common use is two
/// seconds.
const IDLE_TIMEOUT: Duration = Duration::from_millis(1500);
/// A pooled connection that is not ready within this time is not used.
const READY_TIMEOUT: Duration = Duration::from_secs(1);
/// Upper limit on idle connections per pod and thread.
const MAX_IDLE_PER_POD: usize = 256;

/// HTTP connections to pods, one set per thread. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ConnectionPool {
    pub(crate) net: Net,
    own: Arc<ThreadConnections>,
    all: Arc<Mutex<Vec<Arc<ThreadConnections>>>>,
}

/// The connections of one thread.
#[derive(Debug)]
pub(super) struct ThreadConnections {
    clock: Clock,
    pub(super) tasks: TaskTracker,
    idle: Mutex<HashMap<SocketAddr, Vec<IdleConnection>>>,
    /// Whether a task closes expired idle connections.
    reaper_running: AtomicBool,
    /// One HTTP/2 connection per pod, shared by all requests of the thread.
    http2: Mutex<HashMap<SocketAddr, SharedHttp2Slot>>,
    /// Cancelled when no connection is pooled any longer.
    closed: CancellationToken,
}

type SharedHttp2Slot = Arc<tokio::sync::Mutex<Http2Slot>>;

#[derive(Debug, Default)]
struct Http2Slot {
    sender: Option<http2::SendRequest<RequestBody>>,
    /// When the last attempt to connect failed.
    failed: Option<Uptime>,
}

#[derive(Debug)]
struct IdleConnection {
    connection: Http1Connection,
    since: Uptime,
}

impl ConnectionPool {
    pub(crate) fn new(clock: Clock, tasks: TaskTracker) -> Self {
        let own = ThreadConnections::new(clock, tasks, CancellationToken::new());
        let all = Arc::new(Mutex::new(vec![own.clone()]));
        let net = Net::default();
        Self { net, own, all }
    }

    /// The pool of another thread, with connections of its own. [`Self::retain`] and [`Self::close`] apply
    /// to the pools of all threads.
    pub(crate) fn for_another_thread(&self) -> Self {
        let ThreadConnections {
            clock,
            tasks,
            closed,
            ..
        } = &*self.own;
        let own = ThreadConnections::new(*clock, tasks.clone(), closed.clone());
        self.all.lock().push(own.clone());
        Self {
            own,
            net: self.net.clone(),
            all: self.all.clone(),
        }
    }

    /// Drops connections to pods that are not `known`.
    pub fn retain(&self, known: impl Fn(&SocketAddr) -> bool) {
        for one in &*self.all.lock() {
            one.idle.lock().retain(|pod, _| known(pod));
            one.http2.lock().retain(|pod, _| known(pod));
        }
    }

    /// Drops all idle connections, and pools none from now on.
    pub fn close(&self) {
        self.own.closed.cancel();
        self.retain(|_| false);
    }

    /// An established connection for a request of this version.
    pub(super) async fn connection(
        &self,
        pod: SocketAddr,
        version: Version,
    ) -> io::Result<PodConnection> {
        // The slow paths are boxed: most requests find a connection, and their futures stay small.
        if version == Version::HTTP_2 {
            return Box::pin(self.http2_connection(pod)).await;
        }
        while let Some(mut connection) = self.own.idle(pod) {
            // Fails if the pod has closed the connection.
            let ready = match connection.ready().now_or_never() {
                Some(ready) => Some(ready),
                None => Box::pin(self.own.clock.within(READY_TIMEOUT, connection.ready())).await,
            };
            if matches!(ready, Some(Ok(()))) {
                return Ok(self.checked_out(connection, pod, false));
            }
        }
        let connection = Box::pin(self.connect_http1(pod)).await?;
        Ok(self.checked_out(connection, pod, true))
    }

    fn checked_out(
        &self,
        connection: Http1Connection,
        pod: SocketAddr,
        fresh: bool,
    ) -> PodConnection {
        let lent = PooledConnection::new(connection, pod, &self.own);
        let sender = RequestSender::Http1(lent);
        PodConnection { sender, fresh }
    }

    async fn connect_http1(&self, pod: SocketAddr) -> io::Result<Http1Connection> {
        let (wire, tally) = CountedStream::new(connect(&self.net, pod, self.own.clock).await?);
        let connection = Http1Connection::handshake(wire, tally).await;
        connection.map_err(io::Error::other)
    }

    async fn http2_connection(&self, pod: SocketAddr) -> io::Result<PodConnection> {
        let began = self.own.clock.uptime();
        let slot = (self.own.http2.lock().entry(pod)).or_default().clone();
        // Locked while connecting, so that concurrent requests share one connection.
        let mut slot = slot.lock().await;
        if let Some(sender) = slot.sender.as_ref().filter(|sender| !sender.is_closed()) {
            return Ok(PodConnection {
                sender: RequestSender::Http2(sender.clone()),
                fresh: false,
            });
        }
        // They share a failure as well; otherwise each would wait for an attempt of its own.
        if slot.failed.is_some_and(|failed| failed >= began) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        match self.connect_http2(pod).await {
            Ok(sender) => {
                slot.sender = Some(sender.clone());
                Ok(PodConnection {
                    sender: RequestSender::Http2(sender),
                    fresh: true,
                })
            }
            Err(error) => {
                slot.failed = Some(self.own.clock.uptime());
                Err(error)
            }
        }
    }

    async fn connect_http2(&self, pod: SocketAddr) -> io::Result<http2::SendRequest<RequestBody>> {
        let stream = TokioIo::new(connect(&self.net, pod, self.own.clock).await?);
        let mut builder = http2::Builder::new(TrackedExecutor(self.own.tasks.clone()));
        builder
            .timer(TokioTimer::new())
            .adaptive_window(true)
            .keep_alive_interval(Duration::from_secs(30));
        let (sender, connection) = builder.handshake(stream).await.map_err(io::Error::other)?;
        self.own.tasks.spawn(async move {
            let _ = connection.await;
        });
        Ok(sender)
    }
}

impl ThreadConnections {
    fn new(clock: Clock, tasks: TaskTracker, closed: CancellationToken) -> Arc<Self> {
        Arc::new(Self {
            clock,
            tasks,
            idle: Mutex::default(),
            reaper_running: AtomicBool::new(false),
            http2: Mutex::default(),
            closed,
        })
    }

    fn idle(&self, pod: SocketAddr) -> Option<Http1Connection> {
        let now = self.clock.uptime();
        let mut idle = self.idle.lock();
        let pooled = idle.get_mut(&pod)?;
        let last = pooled.pop()?;
        if last.is_old(now) {
            // The others are older.
            pooled.clear();
            return None;
        }
        Some(last.connection)
    }

    /// Returns a connection to the pool.
    pub(super) fn put_back(self: &Arc<Self>, pod: SocketAddr, connection: Http1Connection) {
        let since = self.clock.uptime();
        let mut idle = self.idle.lock();
        // Checked under the lock: `close` clears the pool after it has cancelled the token.
        if self.closed.is_cancelled() {
            return;
        }
        let pooled = idle.entry(pod).or_default();
        if pooled.len() < MAX_IDLE_PER_POD {
            pooled.push(IdleConnection { connection, since });
        }
        drop(idle);
        if !self.reaper_running.swap(true, Ordering::SeqCst) {
            self.tasks.spawn(self.clone().reap_idle());
        }
    }

    /// Closes expired connections until the pool is empty. Pooled connections are not polled, so the close
    /// of a pod would go unnoticed.
    async fn reap_idle(self: Arc<Self>) {
        loop {
            tokio::select! {
                () = self.closed.cancelled() => return,
                () = self.clock.sleep(IDLE_TIMEOUT) => {}
            }
            let now = self.clock.uptime();
            let mut idle = self.idle.lock();
            idle.retain(|_, pooled| {
                pooled.retain(|idle| !idle.is_old(now));
                !pooled.is_empty()
            });
            if idle.is_empty() {
                self.reaper_running.store(false, Ordering::SeqCst);
                return;
            }
        }
    }
}

impl IdleConnection {
    fn is_old(&self, now: Uptime) -> bool {
        now.saturating_sub(self.since) > IDLE_TIMEOUT
    }
}

/// Runs hyper's tasks in the task tracker.
#[derive(Debug, Clone)]
pub(super) struct TrackedExecutor(pub(super) TaskTracker);

impl<F> Executor<F> for TrackedExecutor
where
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, task: F) {
        self.0.spawn(task);
    }
}
