//! A server with the operator and the objects of a service.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::future::BoxFuture;
use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        apps::v1::Deployment,
        core::v1::{Event, Namespace, Pod, Service},
        discovery::v1::EndpointSlice,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, CustomResourceExt, Resource,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use neap_kit::{
    apply::Object, clock::Clock, context::Context, controller::Enqueuer, key::Key,
    lease::Leadership, watch::Watches,
};
use neap_pocket::{Options, Pocket, environment::Environment};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::super::{Settings, component};
use crate::{
    api::{
        ElastiService, ElastiServiceStatus,
        labels::{PRIVATE, SERVICE_NAME},
    },
    elasti_service::{
        facts::{PortRange, ResolverEndpoint, Timeouts},
        reachability::{ProofRequest, Prover},
    },
    options::Installation,
    reason::Reason,
    trigger::{Verdict, Verdicts},
};

pub(super) const PRIVATE_NAME: &str = "elasti-web-pvt-4b5e57f6eb";
pub(super) const SLICE: &str = "elasti-web-endpointslice-to-resolver-4b5e57f6eb";

pub(super) fn elasti_service() -> Value {
    json!({
        "metadata": {"name": "web"},
        "spec": {
            "service": "web", "cooldownPeriod": 600,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "deployments", "name": "web"},
            "triggers": [{"type": "prometheus"}],
        },
    })
}

pub(super) fn deployment() -> Value {
    json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 3, "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "web"}]},
            },
        },
    })
}

pub(super) fn public() -> Value {
    json!({
        "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80}]},
    })
}

/// Triggers whose verdict the test sets.
#[derive(Debug)]
pub(super) struct FakeTriggers {
    idle: AtomicBool,
    busy_when_polled: AtomicBool,
    polls: AtomicUsize,
    enqueuers: Mutex<Vec<ChangeListener>>,
}

struct ChangeListener(Enqueuer<Key>);

impl std::fmt::Debug for ChangeListener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Listener")
    }
}

impl FakeTriggers {
    pub(super) fn idle(&self) {
        self.set(true);
    }

    pub(super) fn busy(&self) {
        self.set(false);
    }

    pub(super) fn busy_when_polled(&self) {
        self.busy_when_polled.store(true, Ordering::Relaxed);
    }

    pub(super) fn polls(&self) -> usize {
        self.polls.load(Ordering::Relaxed)
    }

    fn set(&self, idle: bool) {
        self.idle.store(idle, Ordering::Relaxed);
        for listener in self.enqueuers.lock().iter() {
            listener.0.enqueue(Key::new("default", "web"));
        }
    }
}

impl Verdicts for FakeTriggers {
    fn latest(&self, _: &ElastiService) -> Verdict {
        if self.idle.load(Ordering::Relaxed) {
            Verdict::Idle(Reason::new("Idle", "no requests"))
        } else {
            Verdict::Busy(Reason::new("Busy", "requests"))
        }
    }

    fn poll_now<'a>(&'a self, service: &'a ElastiService) -> BoxFuture<'a, Verdict> {
        self.polls.fetch_add(1, Ordering::Relaxed);
        if self.busy_when_polled.load(Ordering::Relaxed) {
            self.busy();
        }
        Box::pin(async { self.latest(service) })
    }

    fn enqueue_changes(&self, enqueuer: Enqueuer<Key>) {
        self.enqueuers.lock().push(ChangeListener(enqueuer));
    }
}

/// A prover whose result the test sets.
#[derive(Debug)]
pub(super) struct FakeProver {
    holds: AtomicBool,
    /// Resolvers of another kind.
    incompatible: Mutex<Vec<String>>,
}

impl FakeProver {
    pub(super) fn set_incompatible(&self, addresses: &[&str]) {
        let addresses = addresses.iter().map(ToString::to_string);
        *self.incompatible.lock() = addresses.collect();
    }

    pub(super) fn set(&self, holds: bool) {
        self.holds.store(holds, Ordering::Relaxed);
    }
}

impl Prover for FakeProver {
    fn prove<'a>(&'a self, request: &'a ProofRequest) -> BoxFuture<'a, bool> {
        assert!(!request.resolvers.is_empty() && !request.addresses.is_empty());
        assert_eq!(request.ports[0], 80);
        Box::pin(async { self.holds.load(Ordering::Relaxed) })
    }

    fn select_compatible<'a>(
        &'a self,
        resolvers: &'a [ResolverEndpoint],
    ) -> BoxFuture<'a, Vec<ResolverEndpoint>> {
        let incompatible = self.incompatible.lock().clone();
        let compatible = resolvers.iter();
        let compatible = compatible.filter(|it| !incompatible.contains(&it.address.to_string()));
        let compatible = compatible.cloned().collect();
        Box::pin(async { compatible })
    }
}

type ApiCall = http::Request<kube::client::Body>;

pub(super) struct TestCluster {
    pub(super) client: Client,
    pub(super) verdicts: Arc<FakeTriggers>,
    pub(super) prover: Arc<FakeProver>,
    clock: Clock,
    context: Context,
    stop: CancellationToken,
    tasks: JoinSet<()>,
    calls: RecordedCalls,
    _pocket: Pocket,
}

type RecordedCalls = Arc<Mutex<Vec<(String, String)>>>;

/// A client that records its calls.
fn recording_client(pocket: &Pocket) -> (Client, RecordedCalls) {
    let calls = RecordedCalls::default();
    let noted = calls.clone();
    let recording_client = pocket.service().map_request(move |request: ApiCall| {
        let path = request.uri().path().to_owned();
        noted.lock().push((request.method().to_string(), path));
        request
    });
    (Client::new(recording_client, "default"), calls)
}

impl TestCluster {
    /// A server with a Service whose pods are ready, a resolver, and the operator, all in one namespace.
    pub(super) async fn open() -> Self {
        Self::open_with(|_| {}).await
    }

    pub(super) async fn open_with(change: impl FnOnce(&mut Settings)) -> Self {
        Self::open_within(&[], change).await
    }

    /// The same, with an operator that watches only these namespaces.
    pub(super) async fn open_within(
        namespaces: &[&str],
        change: impl FnOnce(&mut Settings),
    ) -> Self {
        let pocket = Pocket::open(Options::new(Environment::simulated(7)))
            .await
            .unwrap();
        let client = Client::new(pocket.service(), "default");
        let (operators, calls) = recording_client(&pocket);
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        let (watches, watching) = Watches::new(clock);
        let named = namespaces.iter().map(ToString::to_string);
        let context = Context {
            client: operators,
            watches: watches.in_namespaces(named),
            leadership: Leadership::without_election(clock),
            clock,
        };
        let verdicts = Arc::new(FakeTriggers {
            idle: AtomicBool::new(false),
            busy_when_polled: AtomicBool::new(false),
            polls: AtomicUsize::new(0),
            enqueuers: Mutex::default(),
        });
        let mut cluster = Self {
            client,
            verdicts,
            prover: Arc::new(FakeProver {
                holds: AtomicBool::new(true),
                incompatible: Mutex::default(),
            }),
            clock,
            context,
            stop: CancellationToken::new(),
            tasks: JoinSet::new(),
            calls,
            _pocket: pocket,
        };
        cluster.define(ElastiService::crd()).await;
        cluster.create::<Service>(public()).await;
        cluster.create::<Deployment>(deployment()).await;
        let mut resolver = public();
        resolver["metadata"]["name"] = json!("elasti-resolver-service");
        cluster.create::<Service>(resolver).await;
        cluster.resolvers(&["10.9.0.1"]).await;
        cluster.pods_are_ready(true).await;
        let mut settings = Settings {
            installation: Installation {
                operator_namespace: "default".to_owned(),
                resolver_namespace: "default".to_owned(),
                ..Installation::standard()
            },
            resolver_ports: PortRange::default(),
            timeouts: Timeouts::default(),
        };
        change(&mut settings);
        let (verdicts, prover) = (cluster.verdicts.clone(), cluster.prover.clone());
        let operator = component(&cluster.context, settings, verdicts, prover).unwrap();
        cluster.tasks.spawn(operator.run(cluster.stop.clone()));
        cluster.tasks.spawn(watching.run(cluster.stop.clone()));
        cluster
    }

    /// The same, with the service asleep.
    pub(super) async fn asleep() -> Self {
        let cluster = Self::open().await;
        cluster.declare().await;
        cluster.verdicts.idle();
        cluster.pass(Duration::from_mins(11)).await;
        assert_eq!(cluster.replicas().await, 0);
        cluster.pods_are_ready(false).await;
        cluster.pass(Duration::from_mins(1)).await;
        cluster
    }

    pub(super) async fn declare(&self) {
        self.create::<ElastiService>(elasti_service()).await;
    }

    pub(super) async fn pass(&self, time: Duration) {
        self.clock.sleep(time).await;
    }

    pub(super) async fn define(&self, definition: CustomResourceDefinition) {
        let all = Api::all(self.client.clone());
        all.create(&PostParams::default(), &definition)
            .await
            .unwrap();
        self.pass(Duration::from_secs(1)).await;
    }

    /// Writes the EndpointSlice of the pods, as its controller would.
    pub(super) async fn pods_are_ready(&self, ready: bool) {
        let endpoints = json!([{"addresses": ["10.2.0.1"], "conditions": {"ready": ready}}]);
        let labels = json!({PRIVATE: "true", SERVICE_NAME: PRIVATE_NAME});
        let slice = json!({
            "metadata": {"name": "pods", "labels": labels},
            "addressType": "IPv4", "endpoints": endpoints, "ports": [],
        });
        self.put(slice).await;
    }

    /// Writes a pod of the workload with this status, as the kubelet would.
    pub(super) async fn pod(&self, status: Value) {
        if self.get::<Pod>("web-1").await.is_none() {
            let pod = json!({
                "metadata": {"name": "web-1", "labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "web:1"}]},
            });
            self.create::<Pod>(pod).await;
        }
        self.patch_status::<Pod>("web-1", status).await;
    }

    /// The reasons and messages of the Events about an object of this kind.
    pub(super) async fn events_about(&self, kind: &str) -> Vec<(String, String)> {
        let all = self.api::<Event>();
        let all = all.list(&ListParams::default()).await;
        let all = all.unwrap().items.into_iter();
        let about = all.filter(|event| event.involved_object.kind.as_deref() == Some(kind));
        about
            .map(|event| (event.reason.unwrap(), event.message.unwrap()))
            .collect()
    }

    /// Writes the EndpointSlice of the resolvers, as its controller would.
    pub(super) async fn resolvers(&self, addresses: &[&str]) {
        let service: Service = self.get("elasti-resolver-service").await.unwrap();
        let owner = json!([{
            "apiVersion": "v1", "kind": "Service", "name": "elasti-resolver-service",
            "uid": service.metadata.uid, "controller": true,
        }]);
        let endpoints = addresses
            .iter()
            .map(|address| json!({"addresses": [address], "conditions": {"ready": true}}));
        let labels = json!({SERVICE_NAME: "elasti-resolver-service"});
        let slice = json!({
            "metadata": {"name": "resolvers", "labels": labels, "ownerReferences": owner},
            "addressType": "IPv4", "endpoints": endpoints.collect::<Vec<_>>(), "ports": [],
        });
        self.put(slice).await;
    }

    async fn put(&self, slice: Value) {
        let name = slice["metadata"]["name"].as_str().unwrap().to_owned();
        if self.get::<EndpointSlice>(&name).await.is_some() {
            self.patch::<EndpointSlice>(&name, slice).await;
        } else {
            self.create::<EndpointSlice>(slice).await;
        }
    }

    pub(super) fn now(&self) -> jiff::Timestamp {
        self.clock.now()
    }

    pub(super) async fn on_namespace(&self, annotations: Value) {
        let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let parameters = PatchParams::default();
        namespaces
            .patch("default", &parameters, &patch)
            .await
            .unwrap();
    }

    pub(super) async fn replicas(&self) -> i32 {
        let web: Deployment = self.get("web").await.unwrap();
        web.spec.unwrap().replicas.unwrap()
    }

    pub(super) async fn scale(&self, replicas: i32) {
        self.patch::<Deployment>("web", json!({"spec": {"replicas": replicas}}))
            .await;
    }

    pub(super) async fn status(&self) -> ElastiServiceStatus {
        let web: ElastiService = self.get("web").await.unwrap();
        web.status.unwrap()
    }

    /// The calls of the operator, by method and path.
    pub(super) fn calls(&self) -> Vec<(String, String)> {
        self.calls.lock().clone()
    }

    pub(super) fn metrics(&self) -> String {
        self.context.watches.process().metrics()
    }

    /// The number of writes that the operator has attempted.
    pub(super) fn writes(&self) -> u64 {
        let metrics = self.metrics();
        let counted = metrics
            .lines()
            .filter(|line| line.starts_with("neaptide_writes_total{"));
        let numbers = counted.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        numbers.sum()
    }

    fn api<K: Object + Resource<Scope = NamespaceResourceScope>>(&self) -> Api<K> {
        Api::default_namespaced(self.client.clone())
    }

    pub(super) async fn create<K>(&self, object: Value) -> K
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        let object = serde_json::from_value(object).unwrap();
        let made = self.api().create(&PostParams::default(), &object).await;
        made.unwrap()
    }

    pub(super) async fn get<K>(&self, name: &str) -> Option<K>
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        self.api().get_opt(name).await.unwrap()
    }

    pub(super) async fn patch<K>(&self, name: &str, patch: Value)
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        let (api, patch) = (self.api::<K>(), Patch::Merge(patch));
        let done = api.patch(name, &PatchParams::default(), &patch).await;
        done.unwrap();
    }

    pub(super) async fn patch_status<K>(&self, name: &str, status: Value)
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        let (api, patch) = (self.api::<K>(), Patch::Merge(json!({"status": status})));
        let done = api
            .patch_status(name, &PatchParams::default(), &patch)
            .await;
        done.unwrap();
    }

    pub(super) async fn delete<K>(&self, name: &str)
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        let deleted = self.api::<K>().delete(name, &DeleteParams::default()).await;
        deleted.unwrap();
    }
}

impl Drop for TestCluster {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
