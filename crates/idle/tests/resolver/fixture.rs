//! A resolver for one service, whose pods the tests supply.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use neap_idle::{
    api::names,
    resolver::{
        Resolver,
        hold::{WakeFailed, WakeRequester},
        http::{HostRouting, ListenPort},
        listeners,
        net::Listener,
        routes::{RouteDefaults, RouteObjects, RouteTable, RouteTableReader},
        workers::{ConnectionWorkers, WorkerThreads},
    },
};
use neap_kit::{clock::Clock, key::Key, telemetry::Telemetry};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    sync::watch,
};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

/// Longer than any step of these tests takes.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_mins(2);

/// Counts wake requests.
#[derive(Default)]
pub(crate) struct WakeCounter {
    woken: Mutex<Vec<Key>>,
    fails: Mutex<Option<&'static str>>,
}

impl WakeCounter {
    pub(crate) fn count(&self) -> usize {
        self.woken.lock().len()
    }

    /// Makes all wake requests fail from now on.
    pub(crate) fn fail(&self, why: &'static str) {
        *self.fails.lock() = Some(why);
    }
}

impl WakeRequester for WakeCounter {
    fn wake(&self, service: Key, _: usize) -> BoxFuture<'static, Result<(), WakeFailed>> {
        self.woken.lock().push(service);
        let fails = *self.fails.lock();
        async move { fails.map_or(Ok(()), |why| Err(WakeFailed(why.to_owned()))) }.boxed()
    }
}

pub(crate) struct ResolverFixture {
    pub(crate) resolver: Resolver,
    pub(crate) address: SocketAddr,
    pub(crate) listeners: CancellationToken,
    pub(crate) wakes: Arc<WakeCounter>,
    pub(crate) tasks: TaskTracker,
    pub(crate) telemetry: Telemetry,
    spec: Value,
    publish: watch::Sender<Arc<RouteTable>>,
    _stop: DropGuard,
    /// The worker threads of the resolver.
    pub(crate) threads: WorkerThreads,
}

impl ResolverFixture {
    /// A service with one port of `protocol`, and more fields of its `spec`.
    pub(crate) fn new(protocol: &str, spec: &Value) -> Self {
        Self::with(protocol, spec, false, |_| {})
    }

    /// The same on the thread of the test, so that the test's clock is the resolver's.
    pub(crate) fn on_test_clock(protocol: &str, spec: &Value) -> Self {
        Self::on(WorkerThreads::default(), protocol, spec, false, |_| {})
    }

    /// The same with another timeout for the head of a request.
    pub(crate) fn with_client_timeout(protocol: &str, timeout: Duration) -> Self {
        let set = |resolver: &mut Resolver| resolver.client_timeout = timeout;
        Self::with(protocol, &json!({}), false, set)
    }

    /// The same behind the shared port.
    pub(crate) fn shared(protocol: &str, spec: &Value) -> Self {
        Self::with(protocol, spec, true, |_| {})
    }

    /// The same with client-controlled labels in its metrics.
    pub(crate) fn shared_unbounded() -> Self {
        let unbounded = |resolver: &mut Resolver| resolver.unbounded_metrics = true;
        Self::with("HTTP", &json!({}), true, unbounded)
    }

    /// With worker threads, as in a process.
    fn with(protocol: &str, spec: &Value, shared: bool, set: impl FnOnce(&mut Resolver)) -> Self {
        Self::on(
            WorkerThreads::start(2).unwrap(),
            protocol,
            spec,
            shared,
            set,
        )
    }

    fn on(
        threads: WorkerThreads,
        protocol: &str,
        spec: &Value,
        shared: bool,
        set: impl FnOnce(&mut Resolver),
    ) -> Self {
        // A large backlog: the kernel drops silent connections that do not fit.
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(4096).unwrap();
        let address = listener.local_addr().unwrap();
        let (publish, route_table) = RouteTableReader::new();
        let wakes = Arc::new(WakeCounter::default());
        let clock = Clock::system();
        let telemetry = Telemetry::default();
        let mut resolver = Resolver::new(
            clock,
            route_table,
            wakes.clone(),
            HostRouting::default(),
            &telemetry,
        );
        set(&mut resolver);
        let tasks = TaskTracker::new();
        let (stop, listeners) = (CancellationToken::new(), CancellationToken::new());
        let mut all = json!({
            "service": "cart",
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "cart"},
            "ports": [{"port": 80, "protocol": protocol}],
        });
        for (field, value) in spec.as_object().unwrap() {
            all[field] = value.clone();
        }
        let fixture = Self {
            resolver: resolver.clone(),
            address,
            listeners: listeners.clone(),
            wakes,
            tasks: tasks.clone(),
            telemetry,
            spec: all,
            publish,
            _stop: stop.clone().drop_guard(),
            threads: threads.clone(),
        };
        fixture.pods(&[]);
        let entrance = if shared {
            ListenPort::Shared
        } else {
            ListenPort::Dedicated(address.port())
        };
        let workers = ConnectionWorkers::new(resolver.clone(), threads);
        let accept = listeners::accept(
            workers,
            Listener::over(listener).unwrap(),
            entrance,
            listeners,
        );
        tasks.spawn(accept);
        tasks.spawn(resolver.held_requests.run(stop));
        fixture
    }

    /// Replaces the ready pods.
    pub(crate) fn pods(&self, pods: &[SocketAddr]) {
        self.publish(pods, None);
    }

    /// Publishes the service as no operator has reconciled it yet.
    pub(crate) fn unreconciled(&self) {
        let elasti = json!({
            "metadata": {"namespace": "shop", "name": "cart"},
            "spec": self.spec, "status": {"mode": "proxy"},
        });
        let objects = RouteObjects {
            elasti_services: vec![Arc::new(serde_json::from_value(elasti).unwrap())],
            ..RouteObjects::default()
        };
        let table = RouteTable::build(&objects, RouteDefaults::default(), &RouteTable::default());
        self.publish.send_replace(Arc::new(table));
    }

    /// Removes the service.
    pub(crate) fn remove_service(&self) {
        self.publish.send_replace(Arc::default());
    }

    pub(crate) fn publish(&self, pods: &[SocketAddr], mode: Option<&str>) {
        let mut elasti = json!({
            "metadata": {"namespace": "shop", "name": "cart"},
            "spec": self.spec,
            "status": {
                "ports": [{"name": "", "port": 80, "resolverPort": self.address.port()}],
            },
        });
        if let Some(mode) = mode {
            elasti["status"]["mode"] = mode.into();
        }
        self.publish_object(&elasti, pods);
    }

    /// Publishes that no pod is ready, and why.
    pub(crate) fn not_ready(&self, reason: &str, message: &str) {
        let elasti = json!({
            "metadata": {"namespace": "shop", "name": "cart"},
            "spec": self.spec,
            "status": {
                "ports": [{"name": "", "port": 80, "resolverPort": self.address.port()}],
                "notReady": {
                    "since": "2026-01-01T00:00:00Z", "reason": reason, "message": message,
                    "failed": true,
                },
            },
        });
        self.publish_object(&elasti, &[]);
    }

    fn publish_object(&self, elasti: &Value, pods: &[SocketAddr]) {
        let slices = pods.iter().enumerate().map(|(number, pod)| {
            let slice = json!({
                "metadata": {"namespace": "shop", "name": format!("cart-{number}"), "labels": {
                    "kubernetes.io/service-name": names::private_service("cart"),
                }},
                "addressType": "IPv4",
                "ports": [{"name": "", "port": pod.port()}],
                "endpoints": [{"addresses": [pod.ip()], "conditions": {"ready": true}}],
            });
            Arc::new(serde_json::from_value(slice).unwrap())
        });
        let elasti = serde_json::from_value(elasti.clone()).unwrap();
        let objects = RouteObjects {
            elasti_services: vec![Arc::new(elasti)],
            slices: slices.collect(),
            ..RouteObjects::default()
        };
        let before = self.publish.borrow().clone();
        let table = RouteTable::build(&objects, RouteDefaults::default(), &before);
        self.publish.send_replace(Arc::new(table));
    }

    pub(crate) fn held(&self) -> usize {
        let queued = self
            .resolver
            .held_requests
            .queue_size(&Key::new("shop", "cart"));
        queued.requests
    }

    /// The number of wake requests.
    pub(crate) fn wake_requests(&self) -> usize {
        self.wakes.count()
    }

    /// Resolves once `count` requests are held.
    pub(crate) async fn wait_until_held(&self, count: usize) {
        until(|| self.held() == count).await;
    }

    /// Resolves once `count` requests are held and one wake was requested, which happens just after.
    pub(crate) async fn wait_until_waking(&self, count: usize) {
        until(|| (self.held(), self.wake_requests()) == (count, 1)).await;
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends `bytes` on a new connection, and returns the answer until it is closed.
    pub(crate) async fn exchange(&self, bytes: &[u8]) -> String {
        let mut client = self.connect().await;
        client.write_all(bytes).await.unwrap();
        let mut answer = Vec::new();
        let read = client.read_to_end(&mut answer);
        let read = tokio::time::timeout(TEST_TIMEOUT, read)
            .await
            .expect("no end");
        // The connection may be reset before all bytes were sent, which also ends it.
        drop(read);
        String::from_utf8(answer).unwrap()
    }
}

/// Resolves once `condition` holds; polls it.
pub(crate) async fn until(condition: impl Fn() -> bool) {
    let poll = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, poll)
        .await
        .expect("the condition never held");
}

/// Reads until `end` has arrived, and returns all that was read.
pub(crate) async fn read_until(client: &mut TcpStream, end: &str) -> String {
    let mut read = Vec::new();
    let reading = async {
        while !String::from_utf8_lossy(&read).contains(end) {
            let mut buffer = [0; 4096];
            let count = client.read(&mut buffer).await.unwrap();
            assert_ne!(
                count,
                0,
                "closed after {:?}",
                String::from_utf8_lossy(&read)
            );
            read.extend_from_slice(&buffer[..count]);
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, reading)
        .await
        .expect("the text never arrived");
    String::from_utf8(read).unwrap()
}
