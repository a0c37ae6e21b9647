//! Wakes against an API server in the test's own process.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::Request;
use k8s_openapi::{
    api::{apps::v1::Deployment, core::v1::Event},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, CustomResourceExt, Resource, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, PostParams},
    client::Body,
    core::NamespaceResourceScope,
};
use neap_kit::{
    apply::Object,
    clock::Clock,
    context::Context,
    key::Key,
    lease::{self, Leadership},
    process::Process,
    watch::Watches,
};
use neap_pocket::{Options, Pocket, environment::Environment};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::util::MapRequest;

use super::*;
use crate::api::ElastiService;

struct TestCluster {
    client: Client,
    waker: WakeHandle,
    clock: Clock,
    process: Process,
    scale_reads: Arc<AtomicUsize>,
    stop: CancellationToken,
    tasks: JoinSet<()>,
    _pocket: Pocket,
}

impl TestCluster {
    /// A server with our kind and KEDA's, and a runner in a process that does not lead.
    async fn open() -> Self {
        let options = Options::new(Environment::simulated(7));
        let pocket = Pocket::open(options).await.unwrap();
        let client = Client::new(pocket.service(), "default");
        for definition in [ElastiService::crd(), scaled_objects()] {
            let api: Api<CustomResourceDefinition> = Api::all(client.clone());
            api.create(&PostParams::default(), &definition)
                .await
                .unwrap();
        }
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        clock.sleep(Duration::from_secs(1)).await;
        let scale_reads = Arc::<AtomicUsize>::default();
        let counted = scale_reads.clone();
        let counting = MapRequest::new(pocket.service(), move |request: Request<Body>| {
            if request.method() == "GET" && request.uri().path().ends_with("/scale") {
                counted.fetch_add(1, Ordering::Relaxed);
            }
            request
        });
        let (watches, watching) = Watches::new(clock);
        let context = Context {
            client: Client::new(counting, "default"),
            watches,
            leadership: following(clock),
            clock,
        };
        let (waker, wakes) = WakeRunner::for_all_services(&context).unwrap();
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(watching.run(stop.clone()));
        tasks.spawn(wakes.run(stop.clone()));
        Self {
            client,
            waker,
            clock,
            process: context.watches.process().clone(),
            scale_reads,
            stop,
            tasks,
            _pocket: pocket,
        }
    }

    async fn create<K>(&self, object: Value) -> K
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        let object = serde_json::from_value(object).unwrap();
        let api: Api<K> = Api::default_namespaced(self.client.clone());
        let made = api.create(&PostParams::default(), &object).await.unwrap();
        // Until the watch shows it.
        self.clock.sleep(Duration::from_millis(10)).await;
        made
    }

    async fn service(&self, name: &str, more: Value) -> ElastiService {
        let mut spec = json!({
            "service": format!("{name}-svc"),
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "deployments", "name": name},
            "cooldownPeriod": 900,
        });
        merged(&mut spec, &more);
        self.create(json!({
            "apiVersion": "elasti.truefoundry.com/v1alpha1",
            "kind": "ElastiService",
            "metadata": {"name": name},
            "spec": spec,
        }))
        .await
    }

    async fn deployment(&self, name: &str, replicas: i32) -> Deployment {
        self.create(json!({
            "metadata": {"name": name},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": name}},
                "template": {
                    "metadata": {"labels": {"app": name}},
                    "spec": {"containers": [{"name": "c", "image": "i"}]},
                },
            },
        }))
        .await
    }

    async fn replicas(&self, name: &str) -> i32 {
        let api: Api<Deployment> = Api::default_namespaced(self.client.clone());
        api.get(name).await.unwrap().spec.unwrap().replicas.unwrap()
    }

    async fn status(&self, name: &str) -> Value {
        let api: Api<ElastiService> = Api::default_namespaced(self.client.clone());
        let service = api.get(name).await.unwrap();
        serde_json::to_value(service.status).unwrap()
    }

    async fn wake(&self, name: &str) -> WakeOutcome {
        self.pending(name).outcome().await
    }

    fn pending(&self, name: &str) -> PendingWake {
        let key = Key::new("default", &format!("{name}-svc"));
        self.waker.wake(key).unwrap()
    }

    async fn reasons(&self) -> Vec<String> {
        let api: Api<Event> = Api::default_namespaced(self.client.clone());
        let events = api.list(&ListParams::default()).await.unwrap();
        events
            .iter()
            .filter_map(|event| event.reason.clone())
            .collect()
    }
}

fn merged(into: &mut Value, more: &Value) {
    for (name, value) in more.as_object().unwrap() {
        into[name] = value.clone();
    }
}

/// The leadership of a process that never leads.
fn following(clock: Clock) -> Leadership {
    let candidate = lease::ElectionOptions {
        namespace: "default".into(),
        name: "lease".into(),
        identity: "candidate".into(),
        timings: lease::LeaseTimings::default(),
    };
    let (_, leadership) = lease::Elector::new(unreachable_client(), candidate, clock).unwrap();
    leadership
}

fn unreachable_client() -> Client {
    let silence = tower::service_fn(|_: Request<Body>| {
        std::future::pending::<Result<http::Response<Body>, std::convert::Infallible>>()
    });
    Client::new(silence, "default")
}

fn scaled_objects() -> CustomResourceDefinition {
    serde_json::from_value(json!({
        "metadata": {"name": "scaledobjects.keda.sh"},
        "spec": {
            "group": "keda.sh",
            "names": {"kind": "ScaledObject", "plural": "scaledobjects"},
            "scope": "Namespaced",
            "versions": [{
                "name": "v1alpha1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": true,
                }},
            }],
        },
    }))
    .unwrap()
}

const WOKEN: WakeOutcome = WakeOutcome::Woken { from: 0, to: 1 };

#[tokio::test(start_paused = true)]
async fn a_sleeping_service_is_woken_without_leadership() {
    let cluster = TestCluster::open().await;
    cluster.deployment("web", 0).await;
    cluster.service("web", json!({})).await;
    assert_eq!(cluster.wake("web").await, WOKEN);
    assert_eq!(cluster.replicas("web").await, 1);
    cluster.clock.sleep(Duration::from_millis(10)).await;
    let status = cluster.status("web").await;
    assert_eq!(status["lastWake"]["cause"], "request");
    assert_eq!(status["lastWake"]["time"], status["lastScaledUpTime"]);
    assert_eq!(cluster.reasons().await, ["SuccessToScale"]);
    let counted = r#"neaptide_idle_wakes_total{cause="request",result="woken"} 1"#;
    let numbers = cluster.process.metrics();
    assert!(numbers.contains(counted), "{numbers}");
}

#[tokio::test(start_paused = true)]
async fn it_is_woken_to_its_minimum_and_never_scaled_down() {
    let cluster = TestCluster::open().await;
    for (name, replicas, outcome) in [
        ("none", 0, WakeOutcome::Woken { from: 0, to: 3 }),
        ("few", 1, WakeOutcome::Woken { from: 1, to: 3 }),
        ("enough", 3, WakeOutcome::Awake { replicas: 3 }),
        ("many", 9, WakeOutcome::Awake { replicas: 9 }),
    ] {
        cluster.deployment(name, replicas).await;
        cluster.service(name, json!({"minTargetReplicas": 3})).await;
        assert_eq!(cluster.wake(name).await, outcome, "{name}");
        assert_eq!(cluster.replicas(name).await, replicas.max(3), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn requests_are_recorded_from_time_to_time() {
    let cluster = TestCluster::open().await;
    cluster.deployment("web", 1).await;
    cluster.service("web", json!({})).await;
    let mut noted = Vec::new();
    for _ in 0..4 {
        assert_eq!(
            cluster.wake("web").await,
            WakeOutcome::Awake { replicas: 1 }
        );
        cluster.clock.sleep(Duration::from_millis(10)).await;
        let time = cluster.status("web").await["lastScaledUpTime"].clone();
        if noted.last() != Some(&time) {
            noted.push(time);
        }
        cluster.clock.sleep(Duration::from_secs(25)).await;
    }
    assert_eq!(noted.len(), 2, "{noted:?}");
    assert_eq!(cluster.status("web").await.get("lastWake"), None);
    assert_eq!(cluster.reasons().await, [] as [String; 0]);
}

#[tokio::test(start_paused = true)]
async fn concurrent_requests_share_two_wakes_and_one_write() {
    let cluster = TestCluster::open().await;
    cluster.deployment("web", 0).await;
    cluster.service("web", json!({})).await;
    let asked: Vec<_> = (0..1000).map(|_| cluster.pending("web")).collect();
    let mut outcomes = Vec::new();
    for one in asked {
        outcomes.push(one.outcome().await);
    }
    assert_eq!(outcomes[0], WOKEN);
    let rest = WakeOutcome::Awake { replicas: 1 };
    assert!(outcomes[1..].iter().all(|one| *one == rest));
    assert_eq!(cluster.scale_reads.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_request_does_not_stop_the_wake() {
    let cluster = TestCluster::open().await;
    cluster.deployment("web", 0).await;
    cluster.service("web", json!({})).await;
    drop(cluster.pending("web"));
    cluster.clock.sleep(Duration::from_secs(1)).await;
    assert_eq!(cluster.replicas("web").await, 1);
}

#[tokio::test(start_paused = true)]
async fn dependencies_are_woken_with_a_service() {
    let cluster = TestCluster::open().await;
    for (name, needs) in [
        ("web", json!(["api", "gone"])),
        ("api", json!(["store", "web"])),
        ("store", json!([])),
        ("other", json!(["web"])),
    ] {
        cluster.deployment(name, 0).await;
        cluster.service(name, json!({"dependencies": needs})).await;
    }
    assert_eq!(cluster.wake("web").await, WOKEN);
    cluster.clock.sleep(Duration::from_secs(1)).await;
    for (name, replicas, cause) in [
        ("web", 1, json!("request")),
        ("api", 1, json!("needed by web")),
        ("store", 1, json!("needed by api")),
        ("other", 0, Value::Null),
    ] {
        assert_eq!(cluster.replicas(name).await, replicas, "{name}");
        assert_eq!(
            cluster.status(name).await["lastWake"]["cause"],
            cause,
            "{name}"
        );
    }
}

async fn scaled_object(cluster: &TestCluster, annotations: Value) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("keda.sh", "v1alpha1", "ScaledObject");
    let kind = ApiResource::from_gvk(&kind);
    let api: Api<DynamicObject> = Api::default_namespaced_with(cluster.client.clone(), &kind);
    let object = json!({"metadata": {"name": "so", "annotations": annotations}, "spec": {}});
    let mut object: DynamicObject = serde_json::from_value(object).unwrap();
    object.types = Some(kube::core::TypeMeta {
        api_version: "keda.sh/v1alpha1".into(),
        kind: "ScaledObject".into(),
    });
    api.create(&PostParams::default(), &object).await.unwrap();
    api
}

#[tokio::test(start_paused = true)]
async fn keda_is_resumed_if_it_was_paused_for_sleep() {
    const PAUSED: &str = "autoscaling.keda.sh/paused";
    const REPLICAS: &str = "autoscaling.keda.sh/paused-replicas";
    for (before, paused) in [
        (json!({PAUSED: "true", REPLICAS: "0"}), "false"),
        (
            json!({PAUSED: "true", "idle.neaptide.dev/paused": "true"}),
            "false",
        ),
        (json!({PAUSED: "true", REPLICAS: "4"}), "true"),
    ] {
        let cluster = TestCluster::open().await;
        let objects = scaled_object(&cluster, before.clone()).await;
        cluster.deployment("web", 0).await;
        let keda = json!({"autoscaler": {"type": "keda", "name": "so"}});
        cluster.service("web", keda).await;
        assert_eq!(cluster.wake("web").await, WOKEN);
        let after = objects.get("so").await.unwrap();
        assert_eq!(after.annotations()[PAUSED], paused, "{before}");
        assert_eq!(after.annotations().contains_key(REPLICAS), paused == "true");
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_target_is_reported() {
    let cluster = TestCluster::open().await;
    assert_eq!(cluster.wake("missing").await, WakeOutcome::Unknown);
    cluster.service("hollow", json!({})).await;
    let WakeOutcome::Failed(why) = cluster.wake("hollow").await else {
        panic!("nothing to wake");
    };
    assert!(why.contains("default/hollow does not exist"), "{why}");
    cluster.clock.sleep(Duration::from_secs(1)).await;
    assert_eq!(cluster.reasons().await, ["FailedToScale"]);
    assert_eq!(cluster.status("hollow").await.get("lastWake"), None);
}

#[tokio::test(start_paused = true)]
async fn accepted_requests_finish_before_shutdown() {
    let mut cluster = TestCluster::open().await;
    cluster.deployment("web", 0).await;
    cluster.service("web", json!({})).await;
    let pending = cluster.pending("web");
    cluster.stop.cancel();
    assert_eq!(pending.outcome().await, WOKEN);
    while cluster.tasks.join_next().await.is_some() {}
    let key = Key::new("default", "web");
    assert_eq!(cluster.waker.wake(key).unwrap_err(), WakeQueueFull);
    assert_eq!(cluster.replicas("web").await, 1);
}

#[tokio::test(start_paused = true)]
async fn wakes_on_request_are_counted_as_in_kube_elasti() {
    let cluster = TestCluster::open().await;
    cluster.service("web", json!({})).await;
    cluster.deployment("web", 0).await;
    cluster.wake("web").await;
    cluster.service("none", json!({})).await;
    cluster.wake("none").await;
    let shown = || {
        let metrics = cluster.process.metrics();
        let lines = metrics.lines().map(str::to_owned);
        let mut lines: Vec<_> = lines
            .filter(|line| line.starts_with("elasti_operator_scale_counter{"))
            .collect();
        lines.sort();
        lines
    };
    let labels = |name: &str, error: &str| {
        format!(
            "elasti_operator_scale_counter{{service_name=\"{name}-svc\",namespace=\"default\",\
             target=\"deployments-{name}\",error=\"{error}\"}} 1"
        )
    };
    assert_eq!(
        shown(),
        [labels("none", "failed"), labels("web", "success")]
    );
    let api: Api<ElastiService> = Api::default_namespaced(cluster.client.clone());
    api.delete("web", &DeleteParams::default()).await.unwrap();
    cluster.clock.sleep(Duration::from_millis(10)).await;
    assert_eq!(shown(), [labels("none", "failed")]);
}
