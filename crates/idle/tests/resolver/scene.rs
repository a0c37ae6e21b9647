//! A resolver for one service, with pods that tests make.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use neap_idle::{
    api::names,
    resolver::{
        Resolver,
        hold::{NotWoken, Waker},
        http::{Entrance, Naming},
        lanes::{Lanes, Threads},
        listen,
        net::Listener,
        routes::{Defaults, Objects, Table, Tables},
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

/// Nothing here takes longer unless it is stuck.
pub(crate) const STUCK: Duration = Duration::from_mins(2);

/// Counts who is woken.
#[derive(Default)]
pub(crate) struct Wakes {
    woken: Mutex<Vec<Key>>,
    fails: Mutex<Option<&'static str>>,
}

impl Wakes {
    pub(crate) fn count(&self) -> usize {
        self.woken.lock().len()
    }

    /// Nobody can be woken from now on, for this reason.
    pub(crate) fn fail(&self, why: &'static str) {
        *self.fails.lock() = Some(why);
    }
}

impl Waker for Wakes {
    fn wake(&self, service: Key, _: usize) -> BoxFuture<'static, Result<(), NotWoken>> {
        self.woken.lock().push(service);
        let fails = *self.fails.lock();
        async move { fails.map_or(Ok(()), |why| Err(NotWoken(why.to_owned()))) }.boxed()
    }
}

pub(crate) struct Scene {
    pub(crate) resolver: Resolver,
    pub(crate) address: SocketAddr,
    pub(crate) listeners: CancellationToken,
    pub(crate) wakes: Arc<Wakes>,
    pub(crate) tasks: TaskTracker,
    pub(crate) telemetry: Telemetry,
    spec: Value,
    publish: watch::Sender<Arc<Table>>,
    _stop: DropGuard,
    /// Which carry its connections.
    pub(crate) threads: Threads,
}

impl Scene {
    /// A service whose only port speaks `protocol`, with more of its `spec`.
    pub(crate) fn new(protocol: &str, spec: &Value) -> Self {
        Self::with(protocol, spec, false, |_| {})
    }

    /// The same, on the thread of the test: whoever moves its clock moves that of the resolver.
    pub(crate) fn on_one_clock(protocol: &str, spec: &Value) -> Self {
        Self::on(Threads::default(), protocol, spec, false, |_| {})
    }

    /// The same, with a resolver that does not wait long for what clients want.
    pub(crate) fn impatient(protocol: &str, patience: Duration) -> Self {
        let impatient = |resolver: &mut Resolver| resolver.patience = patience;
        Self::with(protocol, &json!({}), false, impatient)
    }

    /// The same, met on the port that all services share.
    pub(crate) fn shared(protocol: &str, spec: &Value) -> Self {
        Self::with(protocol, spec, true, |_| {})
    }

    /// The same, with everything that clients choose among its numbers.
    pub(crate) fn shared_unbounded() -> Self {
        let unbounded = |resolver: &mut Resolver| resolver.unbounded_metrics = true;
        Self::with("HTTP", &json!({}), true, unbounded)
    }

    /// As in a process of its own.
    fn with(protocol: &str, spec: &Value, shared: bool, set: impl FnOnce(&mut Resolver)) -> Self {
        Self::on(Threads::start(2).unwrap(), protocol, spec, shared, set)
    }

    fn on(
        threads: Threads,
        protocol: &str,
        spec: &Value,
        shared: bool,
        set: impl FnOnce(&mut Resolver),
    ) -> Self {
        // Room for a crowd: one who finds none and says nothing is forgotten by the system.
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(4096).unwrap();
        let address = listener.local_addr().unwrap();
        let (publish, tables) = Tables::new();
        let wakes = Arc::new(Wakes::default());
        let clock = Clock::system();
        let telemetry = Telemetry::default();
        let mut resolver =
            Resolver::new(clock, tables, wakes.clone(), Naming::default(), &telemetry);
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
        let scene = Self {
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
        scene.pods(&[]);
        let entrance = if shared {
            Entrance::Shared
        } else {
            Entrance::Port(address.port())
        };
        let lanes = Lanes::new(resolver.clone(), threads);
        let accept = listen::accept(
            lanes,
            Listener::over(listener).unwrap(),
            entrance,
            listeners,
        );
        tasks.spawn(accept);
        tasks.spawn(resolver.holds.run(stop));
        scene
    }

    /// The pods that are ready from now on.
    pub(crate) fn pods(&self, pods: &[SocketAddr]) {
        self.publish(pods, None);
    }

    /// No operator of ours has looked at it yet.
    pub(crate) fn unclaimed(&self) {
        let elasti = json!({
            "metadata": {"namespace": "shop", "name": "cart"},
            "spec": self.spec, "status": {"mode": "proxy"},
        });
        let objects = Objects {
            elasti_services: vec![Arc::new(serde_json::from_value(elasti).unwrap())],
            ..Objects::default()
        };
        let table = Table::of(&objects, Defaults::default(), &Table::default());
        self.publish.send_replace(Arc::new(table));
    }

    /// The service is no longer there.
    pub(crate) fn forget(&self) {
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
        let objects = Objects {
            elasti_services: vec![Arc::new(serde_json::from_value(elasti).unwrap())],
            slices: slices.collect(),
            ..Objects::default()
        };
        let before = self.publish.borrow().clone();
        let table = Table::of(&objects, Defaults::default(), &before);
        self.publish.send_replace(Arc::new(table));
    }

    pub(crate) fn held(&self) -> usize {
        let queued = self.resolver.holds.queued(&Key::new("shop", "cart"));
        queued.requests
    }

    /// How many wakes were asked for.
    pub(crate) fn woken(&self) -> usize {
        self.wakes.count()
    }

    /// Resolves once so many are held.
    pub(crate) async fn holds(&self, count: usize) {
        until(|| self.held() == count).await;
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// What comes back on a connection of its own until it is closed.
    pub(crate) async fn say(&self, bytes: &[u8]) -> String {
        let mut client = self.connect().await;
        client.write_all(bytes).await.unwrap();
        let mut answer = Vec::new();
        let read = client.read_to_end(&mut answer);
        let read = tokio::time::timeout(STUCK, read).await.expect("no end");
        // A close that came too quickly for all of it to be taken is a close as well.
        drop(read);
        String::from_utf8(answer).unwrap()
    }
}

/// Resolves once it is so; looks often.
pub(crate) async fn until(condition: impl Fn() -> bool) {
    let look = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(STUCK, look)
        .await
        .expect("it never was so");
}

/// Reads until `end` is there, and gives what was read.
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
    tokio::time::timeout(STUCK, reading)
        .await
        .expect("it never came");
    String::from_utf8(read).unwrap()
}
