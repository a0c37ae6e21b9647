//! Wakes against a server in the test's own process.

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
    key::Key,
    lease::{self, Leadership},
    process::Process,
    site::Site,
    watch::Watches,
};
use neap_pocket::{Options, Pocket, environment::Environment};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::util::MapRequest;

use super::*;
use crate::api::ElastiService;

struct Stage {
    client: Client,
    waker: Waker,
    clock: Clock,
    process: Process,
    scale_reads: Arc<AtomicUsize>,
    stop: CancellationToken,
    tasks: JoinSet<()>,
    _pocket: Pocket,
}

impl Stage {
    /// A server with our kind and KEDA's, and wakes that run there in a process that does not lead.
    async fn open() -> Self {
        let options = Options::new(Environment::rehearsal(7));
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
        let site = Site {
            client: Client::new(counting, "default"),
            watches,
            leadership: following(clock),
            clock,
        };
        let (waker, wakes) = WakeService::of_all(&site).unwrap();
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(watching.run(stop.clone()));
        tasks.spawn(wakes.run(stop.clone()));
        Self {
            client,
            waker,
            clock,
            process: site.watches.process().clone(),
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
        // The watch shows it.
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

    async fn wake(&self, name: &str) -> Outcome {
        self.pending(name).outcome().await
    }

    fn pending(&self, name: &str) -> Pending {
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

/// Of a process that never leads.
fn following(clock: Clock) -> Leadership {
    let candidate = lease::Options {
        namespace: "default".into(),
        name: "lease".into(),
        identity: "somebody".into(),
        timings: lease::Timings::default(),
    };
    let (_, leadership) = lease::Elector::new(nobody(), candidate, clock).unwrap();
    leadership
}

fn nobody() -> Client {
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

const WOKEN: Outcome = Outcome::Woken { from: 0, to: 1 };

#[tokio::test(start_paused = true)]
async fn what_sleeps_is_woken_by_whoever_runs_and_it_is_told() {
    let stage = Stage::open().await;
    stage.deployment("web", 0).await;
    stage.service("web", json!({})).await;
    assert_eq!(stage.wake("web").await, WOKEN);
    assert_eq!(stage.replicas("web").await, 1);
    stage.clock.sleep(Duration::from_millis(10)).await;
    let status = stage.status("web").await;
    assert_eq!(status["lastWake"]["cause"], "request");
    assert_eq!(status["lastWake"]["time"], status["lastScaledUpTime"]);
    assert_eq!(stage.reasons().await, ["SuccessToScale"]);
    let counted = r#"neaptide_idle_wakes_total{cause="request",result="woken"} 1"#;
    let numbers = stage.process.metrics();
    assert!(numbers.contains(counted), "{numbers}");
}

#[tokio::test(start_paused = true)]
async fn it_is_woken_to_as_many_as_it_says_and_never_to_fewer() {
    let stage = Stage::open().await;
    for (name, replicas, outcome) in [
        ("none", 0, Outcome::Woken { from: 0, to: 3 }),
        ("few", 1, Outcome::Woken { from: 1, to: 3 }),
        ("enough", 3, Outcome::Awake { replicas: 3 }),
        ("many", 9, Outcome::Awake { replicas: 9 }),
    ] {
        stage.deployment(name, replicas).await;
        stage.service(name, json!({"minTargetReplicas": 3})).await;
        assert_eq!(stage.wake(name).await, outcome, "{name}");
        assert_eq!(stage.replicas(name).await, replicas.max(3), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn that_somebody_asks_is_noted_now_and_then() {
    let stage = Stage::open().await;
    stage.deployment("web", 1).await;
    stage.service("web", json!({})).await;
    let mut noted = Vec::new();
    for _ in 0..4 {
        assert_eq!(stage.wake("web").await, Outcome::Awake { replicas: 1 });
        stage.clock.sleep(Duration::from_millis(10)).await;
        let time = stage.status("web").await["lastScaledUpTime"].clone();
        if noted.last() != Some(&time) {
            noted.push(time);
        }
        stage.clock.sleep(Duration::from_secs(25)).await;
    }
    assert_eq!(noted.len(), 2, "{noted:?}");
    assert_eq!(stage.status("web").await.get("lastWake"), None);
    assert_eq!(stage.reasons().await, [] as [String; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_herd_looks_twice_and_writes_once() {
    let stage = Stage::open().await;
    stage.deployment("web", 0).await;
    stage.service("web", json!({})).await;
    let asked: Vec<_> = (0..1000).map(|_| stage.pending("web")).collect();
    let mut outcomes = Vec::new();
    for one in asked {
        outcomes.push(one.outcome().await);
    }
    assert_eq!(outcomes[0], WOKEN);
    let rest = Outcome::Awake { replicas: 1 };
    assert!(outcomes[1..].iter().all(|one| *one == rest));
    assert_eq!(stage.scale_reads.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn who_hangs_up_stops_nothing() {
    let stage = Stage::open().await;
    stage.deployment("web", 0).await;
    stage.service("web", json!({})).await;
    drop(stage.pending("web"));
    stage.clock.sleep(Duration::from_secs(1)).await;
    assert_eq!(stage.replicas("web").await, 1);
}

#[tokio::test(start_paused = true)]
async fn what_a_service_needs_is_woken_with_it() {
    let stage = Stage::open().await;
    for (name, needs) in [
        ("web", json!(["api", "gone"])),
        ("api", json!(["store", "web"])),
        ("store", json!([])),
        ("other", json!(["web"])),
    ] {
        stage.deployment(name, 0).await;
        stage.service(name, json!({"dependencies": needs})).await;
    }
    assert_eq!(stage.wake("web").await, WOKEN);
    stage.clock.sleep(Duration::from_secs(1)).await;
    for (name, replicas, cause) in [
        ("web", 1, json!("request")),
        ("api", 1, json!("needed by web")),
        ("store", 1, json!("needed by api")),
        ("other", 0, Value::Null),
    ] {
        assert_eq!(stage.replicas(name).await, replicas, "{name}");
        assert_eq!(
            stage.status(name).await["lastWake"]["cause"],
            cause,
            "{name}"
        );
    }
}

async fn scaled_object(stage: &Stage, annotations: Value) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("keda.sh", "v1alpha1", "ScaledObject");
    let kind = ApiResource::from_gvk(&kind);
    let api: Api<DynamicObject> = Api::default_namespaced_with(stage.client.clone(), &kind);
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
async fn keda_goes_on_if_it_was_stopped_for_a_sleep() {
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
        let stage = Stage::open().await;
        let objects = scaled_object(&stage, before.clone()).await;
        stage.deployment("web", 0).await;
        let keda = json!({"autoscaler": {"type": "keda", "name": "so"}});
        stage.service("web", keda).await;
        assert_eq!(stage.wake("web").await, WOKEN);
        let after = objects.get("so").await.unwrap();
        assert_eq!(after.annotations()[PAUSED], paused, "{before}");
        assert_eq!(after.annotations().contains_key(REPLICAS), paused == "true");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_there_is_said() {
    let stage = Stage::open().await;
    assert_eq!(stage.wake("nobody").await, Outcome::Unknown);
    stage.service("hollow", json!({})).await;
    let Outcome::Failed(why) = stage.wake("hollow").await else {
        panic!("nothing to wake");
    };
    assert!(why.contains("default/hollow does not exist"), "{why}");
    stage.clock.sleep(Duration::from_secs(1)).await;
    assert_eq!(stage.reasons().await, ["FailedToScale"]);
    assert_eq!(stage.status("hollow").await.get("lastWake"), None);
}

#[tokio::test(start_paused = true)]
async fn what_was_asked_for_is_done_before_the_end() {
    let mut stage = Stage::open().await;
    stage.deployment("web", 0).await;
    stage.service("web", json!({})).await;
    let pending = stage.pending("web");
    stage.stop.cancel();
    assert_eq!(pending.outcome().await, WOKEN);
    while stage.tasks.join_next().await.is_some() {}
    let key = Key::new("default", "web");
    assert_eq!(stage.waker.wake(key).unwrap_err(), Full);
    assert_eq!(stage.replicas("web").await, 1);
}

#[tokio::test(start_paused = true)]
async fn wakes_that_resolvers_ask_for_are_counted_as_in_the_original() {
    let stage = Stage::open().await;
    stage.service("web", json!({})).await;
    stage.deployment("web", 0).await;
    stage.wake("web").await;
    stage.service("none", json!({})).await;
    stage.wake("none").await;
    let shown = || {
        let metrics = stage.process.metrics();
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
    let api: Api<ElastiService> = Api::default_namespaced(stage.client.clone());
    api.delete("web", &DeleteParams::default()).await.unwrap();
    stage.clock.sleep(Duration::from_millis(10)).await;
    assert_eq!(shown(), [labels("none", "failed")]);
}
