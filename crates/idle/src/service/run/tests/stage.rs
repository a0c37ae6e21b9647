//! Where the operator is played.

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
        core::v1::{Namespace, Service},
        discovery::v1::EndpointSlice,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, CustomResourceExt, Resource,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use neap_kit::{
    apply::Object, clock::Clock, controller::Trigger, key::Key, lease::Leadership, site::Site,
    watch::Watches,
};
use neap_pocket::{Options, Pocket, environment::Environment};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::super::{Settings, service};
use crate::{
    api::{ElastiService, ElastiServiceStatus},
    service::{
        facts::{Patience, Resolver},
        objects::{PRIVATE, SERVICE_NAME},
        ports::Range,
        prove::{Prover, Search},
        verdict::{Because, Verdict, Verdicts},
    },
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

/// Says what the test says.
#[derive(Debug)]
pub(super) struct Said {
    idle: AtomicBool,
    busy_anew: AtomicBool,
    asked_anew: AtomicUsize,
    triggers: Mutex<Vec<Listener>>,
}

struct Listener(Trigger<Key>);

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Listener")
    }
}

impl Said {
    pub(super) fn idle(&self) {
        self.say(true);
    }

    pub(super) fn busy(&self) {
        self.say(false);
    }

    pub(super) fn busy_anew(&self) {
        self.busy_anew.store(true, Ordering::Relaxed);
    }

    pub(super) fn asked_anew(&self) -> usize {
        self.asked_anew.load(Ordering::Relaxed)
    }

    fn say(&self, idle: bool) {
        self.idle.store(idle, Ordering::Relaxed);
        for listener in self.triggers.lock().iter() {
            listener.0.changed(Key::new("default", "web"));
        }
    }
}

impl Verdicts for Said {
    fn of(&self, _: &ElastiService) -> Verdict {
        if self.idle.load(Ordering::Relaxed) {
            Verdict::Idle(Because::new("Idle", "nobody asks"))
        } else {
            Verdict::Busy(Because::new("Busy", "somebody asks"))
        }
    }

    fn anew<'a>(&'a self, service: &'a ElastiService) -> BoxFuture<'a, Verdict> {
        self.asked_anew.fetch_add(1, Ordering::Relaxed);
        if self.busy_anew.load(Ordering::Relaxed) {
            self.busy();
        }
        Box::pin(async { self.of(service) })
    }

    fn tell(&self, trigger: Trigger<Key>) {
        self.triggers.lock().push(Listener(trigger));
    }
}

/// Proves what the test says.
#[derive(Debug)]
pub(super) struct Proves {
    holds: AtomicBool,
    /// Resolvers of another kind.
    strangers: Mutex<Vec<String>>,
}

impl Proves {
    pub(super) fn strangers(&self, addresses: &[&str]) {
        let addresses = addresses.iter().map(ToString::to_string);
        *self.strangers.lock() = addresses.collect();
    }

    pub(super) fn set(&self, holds: bool) {
        self.holds.store(holds, Ordering::Relaxed);
    }
}

impl Prover for Proves {
    fn prove<'a>(&'a self, search: &'a Search) -> BoxFuture<'a, bool> {
        assert!(!search.resolvers.is_empty() && !search.addresses.is_empty());
        assert_eq!(search.ports[0], 80);
        Box::pin(async { self.holds.load(Ordering::Relaxed) })
    }

    fn ours<'a>(&'a self, resolvers: &'a [Resolver]) -> BoxFuture<'a, Vec<Resolver>> {
        let strangers = self.strangers.lock().clone();
        let ours = resolvers.iter();
        let ours = ours.filter(|it| !strangers.contains(&it.address.to_string()));
        let ours = ours.cloned().collect();
        Box::pin(async { ours })
    }
}

type Asked = http::Request<kube::client::Body>;

pub(super) struct Stage {
    pub(super) client: Client,
    pub(super) verdicts: Arc<Said>,
    pub(super) prover: Arc<Proves>,
    clock: Clock,
    site: Site,
    stop: CancellationToken,
    tasks: JoinSet<()>,
    asked: Noted,
    _pocket: Pocket,
}

type Noted = Arc<Mutex<Vec<(String, String)>>>;

/// A client, and what is asked through it.
fn noting(pocket: &Pocket) -> (Client, Noted) {
    let asked = Noted::default();
    let noted = asked.clone();
    let noting = pocket.service().map_request(move |request: Asked| {
        let path = request.uri().path().to_owned();
        noted.lock().push((request.method().to_string(), path));
        request
    });
    (Client::new(noting, "default"), asked)
}

impl Stage {
    /// A server with a Service whose pods are ready, a resolver, and the operator. Everybody is in one
    /// namespace.
    pub(super) async fn open() -> Self {
        Self::open_with(|_| {}).await
    }

    pub(super) async fn open_with(change: impl FnOnce(&mut Settings)) -> Self {
        Self::open_within(&[], change).await
    }

    /// The same, with an operator that looks at these namespaces only.
    pub(super) async fn open_within(
        namespaces: &[&str],
        change: impl FnOnce(&mut Settings),
    ) -> Self {
        let pocket = Pocket::open(Options::new(Environment::rehearsal(7)))
            .await
            .unwrap();
        let client = Client::new(pocket.service(), "default");
        let (operators, asked) = noting(&pocket);
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        let (watches, watching) = Watches::new(clock);
        let named = namespaces.iter().map(ToString::to_string);
        let site = Site {
            client: operators,
            watches: watches.within(named),
            leadership: Leadership::alone(clock),
            clock,
        };
        let verdicts = Arc::new(Said {
            idle: AtomicBool::new(false),
            busy_anew: AtomicBool::new(false),
            asked_anew: AtomicUsize::new(0),
            triggers: Mutex::default(),
        });
        let mut stage = Self {
            client,
            verdicts,
            prover: Arc::new(Proves {
                holds: AtomicBool::new(true),
                strangers: Mutex::default(),
            }),
            clock,
            site,
            stop: CancellationToken::new(),
            tasks: JoinSet::new(),
            asked,
            _pocket: pocket,
        };
        stage.define(ElastiService::crd()).await;
        stage.create::<Service>(public()).await;
        stage.create::<Deployment>(deployment()).await;
        let mut resolver = public();
        resolver["metadata"]["name"] = json!("elasti-resolver-service");
        stage.create::<Service>(resolver).await;
        stage.resolvers(&["10.9.0.1"]).await;
        stage.pods_are_ready(true).await;
        let mut settings = Settings {
            namespace: "default".to_owned(),
            resolver_namespace: "default".to_owned(),
            resolver_service: "elasti-resolver-service".to_owned(),
            range: Range::default(),
            patience: Patience::default(),
        };
        change(&mut settings);
        let (verdicts, prover) = (stage.verdicts.clone(), stage.prover.clone());
        let operator = service(&stage.site, settings, verdicts, prover).unwrap();
        stage.tasks.spawn(operator.run(stage.stop.clone()));
        stage.tasks.spawn(watching.run(stage.stop.clone()));
        stage
    }

    /// The same, with everything asleep.
    pub(super) async fn asleep() -> Self {
        let stage = Self::open().await;
        stage.declare().await;
        stage.verdicts.idle();
        stage.pass(Duration::from_mins(11)).await;
        assert_eq!(stage.replicas().await, 0);
        stage.pods_are_ready(false).await;
        stage.pass(Duration::from_mins(1)).await;
        stage
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

    /// What the endpoint slice controller would say of the pods.
    pub(super) async fn pods_are_ready(&self, ready: bool) {
        let endpoints = json!([{"addresses": ["10.2.0.1"], "conditions": {"ready": ready}}]);
        let labels = json!({PRIVATE: "true", SERVICE_NAME: PRIVATE_NAME});
        let slice = json!({
            "metadata": {"name": "pods", "labels": labels},
            "addressType": "IPv4", "endpoints": endpoints, "ports": [],
        });
        self.put(slice).await;
    }

    /// What it would say of the resolvers.
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

    /// What the operator asked the server, by method and path.
    pub(super) fn asked(&self) -> Vec<(String, String)> {
        self.asked.lock().clone()
    }

    pub(super) fn metrics(&self) -> String {
        self.site.watches.process().metrics()
    }

    /// How many writes the operator has tried.
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

impl Drop for Stage {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
