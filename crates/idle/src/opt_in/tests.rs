//! Annotations, as values and against an API server in the test's own process.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http::Request;
use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        apps::v1::Deployment,
        core::v1::{Event, Namespace, Service},
    },
};
use kube::{
    Api, Client, CustomResourceExt, Resource,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    client::Body,
};
use neap_kit::{apply::Object, clock::Clock, context::Context, lease::Leadership, watch::Watches};
use neap_pocket::{Options, Pocket, environment::Environment};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::{annotations::*, *};
use crate::api::{ElastiService, ElastiServiceSpec, TriggerKind, annotations::OFF};

fn parse_enabled(rows: &[(&str, &str)]) -> Result<Option<OptIn>, InvalidAnnotation> {
    let mut annotations = BTreeMap::from([(ENABLED.to_owned(), "true".to_owned())]);
    let row = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    annotations.extend(rows.iter().map(row));
    parse(&annotations)
}

fn spec(rows: &[(&str, &str)]) -> Value {
    let spec: ElastiServiceSpec = parse_enabled(rows).unwrap().unwrap().spec;
    let mut spec = serde_json::to_value(spec).unwrap();
    for name in ["service", "scaleTargetRef"] {
        spec.as_object_mut().unwrap().remove(name);
    }
    spec
}

#[test]
fn annotations_cover_the_spec_of_an_elasti_service() {
    assert_eq!(parse(&BTreeMap::new()), Ok(None));
    assert_eq!(
        parse_enabled(&[(ENABLED, "false"), (COOLDOWN, "x")]),
        Ok(None)
    );
    let requests = json!([{"type": "requests"}]);
    assert_eq!(
        spec(&[]),
        json!({"cooldownPeriod": 900, "triggers": requests})
    );
    let all = spec(&[
        (COOLDOWN, "2m"),
        (MIN_REPLICAS, "2"),
        (QUERY, "sum(rate(requests[1m]))"),
        (THRESHOLD, "0.5"),
        (SERVER_ADDRESS, "http://prometheus:9090"),
        (AUTOSCALER, "keda/scale-web"),
        (SCHEDULE, "0 20 * * *"),
        (SCHEDULE_DURATION, "10h"),
        (TIME_ZONE, "Europe/Berlin"),
        (DEPENDENCIES, "api, store"),
        (OBSERVE_ONLY, "true"),
        (WAITING_PAGE, "true"),
    ]);
    let metadata = json!({
        "query": "sum(rate(requests[1m]))", "threshold": "0.5",
        "serverAddress": "http://prometheus:9090",
    });
    let wanted = json!({
        "minTargetReplicas": 2, "cooldownPeriod": 120,
        "triggers": [{"type": "prometheus", "metadata": metadata}],
        "autoscaler": {"type": "keda", "name": "scale-web"},
        "enabledPeriod": {"schedule": "0 20 * * *", "duration": "10h", "timeZone": "Europe/Berlin"},
        "dependencies": ["api", "store"], "observeOnly": true, "waitingPage": true,
    });
    assert_eq!(all, wanted);
    let target = |text| {
        parse_enabled(&[(TARGET, text)])
            .unwrap()
            .unwrap()
            .target
            .unwrap()
    };
    assert_eq!(target("StatefulSet/db").api_version, "apps/v1");
    let rollout = target("argoproj.io/v1alpha1/Rollout/web");
    assert_eq!(
        (&*rollout.api_version, &*rollout.kind),
        ("argoproj.io/v1alpha1", "Rollout")
    );
}

#[test]
fn invalid_annotations_are_refused_by_name() {
    for (name, value) in [
        (ENABLED, "yes"),
        (COOLDOWN, "soon"),
        (COOLDOWN, "0s"),
        (COOLDOWN, "169h"),
        (MIN_REPLICAS, "0"),
        (THRESHOLD, "1"),
        (SERVER_ADDRESS, "http://prometheus"),
        (AUTOSCALER, "vpa/web"),
        (AUTOSCALER, "keda/"),
        (TIME_ZONE, "Europe/Berlin"),
        (TARGET, "web"),
        (TARGET, "Deployment/"),
        (OBSERVE_ONLY, "perhaps"),
        ("idle.neaptide.dev/cooldwon", "5m"),
    ] {
        let invalid = parse_enabled(&[(name, value)]).unwrap_err();
        assert_eq!((&*invalid.annotation, &*invalid.value), (name, value));
        assert!(
            invalid.to_string().starts_with("metadata.annotations["),
            "{invalid}"
        );
    }
    assert!(parse_enabled(&[(QUERY, "up"), (THRESHOLD, "many")]).is_err());
    assert!(parse_enabled(&[(SCHEDULE, "0 1 * * *"), (SCHEDULE_DURATION, "long")]).is_err());
}

struct TestCluster {
    client: Client,
    clock: Clock,
    /// Whether reads of Deployments fail.
    blind: Arc<AtomicBool>,
    stop: CancellationToken,
    _tasks: JoinSet<()>,
    _pocket: Pocket,
}

/// A client whose reads of Deployments fail while `blind` is set.
fn failing_client(pocket: &Pocket, blind: Arc<AtomicBool>) -> Client {
    const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
    let failing_client = pocket
        .service()
        .map_request(move |mut request: Request<Body>| {
            if blind.load(Ordering::SeqCst) && request.uri().path() == DEPLOYMENTS {
                *request.uri_mut() = "/apis/apps/v1/namespaces/default/none".parse().unwrap();
            }
            request
        });
    Client::new(failing_client, "default")
}

impl TestCluster {
    async fn open() -> Self {
        let options = Options::new(Environment::rehearsal(7));
        let pocket = Pocket::open(options).await.unwrap();
        let client = Client::new(pocket.service(), "default");
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        let (watches, watching) = Watches::new(clock);
        let blind = Arc::<AtomicBool>::default();
        let context = Context {
            client: failing_client(&pocket, blind.clone()),
            watches,
            leadership: Leadership::without_election(clock),
            clock,
        };
        let definitions = Api::all(client.clone());
        let parameters = PostParams::default();
        definitions
            .create(&parameters, &ElastiService::crd())
            .await
            .unwrap();
        clock.sleep(Duration::from_secs(1)).await;
        let (stop, mut tasks) = (CancellationToken::new(), JoinSet::new());
        let controller = component(&context, "elasti").unwrap();
        tasks.spawn(controller.run(stop.clone()));
        tasks.spawn(watching.run(stop.clone()));
        Self {
            client,
            clock,
            blind,
            stop,
            _tasks: tasks,
            _pocket: pocket,
        }
    }

    fn api<K: Object + Resource<Scope = NamespaceResourceScope>>(&self) -> Api<K> {
        Api::default_namespaced(self.client.clone())
    }

    async fn create<K: Object + Resource<Scope = NamespaceResourceScope>>(&self, object: Value) {
        let object = serde_json::from_value(object).unwrap();
        let parameters = PostParams::default();
        self.api::<K>().create(&parameters, &object).await.unwrap();
        self.clock.sleep(Duration::from_secs(1)).await;
    }

    async fn annotate<K>(&self, name: &str, annotations: Value)
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
        let parameters = PatchParams::default();
        self.api::<K>()
            .patch(name, &parameters, &patch)
            .await
            .unwrap();
        self.clock.sleep(Duration::from_secs(1)).await;
    }

    /// Annotates a Namespace, which is created if it does not exist.
    async fn annotate_namespace(&self, namespace: &str, annotations: Value) {
        let object = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": namespace, "annotations": annotations},
        });
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        if namespaces.get_opt(namespace).await.unwrap().is_none() {
            let object = serde_json::from_value(object).unwrap();
            let parameters = PostParams::default();
            namespaces.create(&parameters, &object).await.unwrap();
        } else {
            let (parameters, patch) = (PatchParams::default(), Patch::Merge(object));
            let annotations = namespaces.patch(namespace, &parameters, &patch).await;
            annotations.unwrap();
        }
        self.clock.sleep(Duration::from_secs(1)).await;
    }

    async fn elasti_service(&self, name: &str) -> Option<ElastiService> {
        self.api().get_opt(name).await.unwrap()
    }

    async fn events(&self) -> Vec<(String, String)> {
        let events = self.api::<Event>().list(&ListParams::default()).await;
        let events = events.unwrap().items.into_iter();
        events
            .map(|event| (event.reason.unwrap(), event.message.unwrap()))
            .collect()
    }
}

impl Drop for TestCluster {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn public(name: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    })
}

fn deployment(name: &str) -> Value {
    let labels = json!({"app": "web", "tier": name});
    json!({
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "web", "image": "web"}]},
            },
        },
    })
}

#[tokio::test(start_paused = true)]
async fn an_annotated_service_gets_an_elasti_service_until_the_annotation_goes() {
    let cluster = TestCluster::open().await;
    cluster.create::<Deployment>(deployment("web")).await;
    cluster.create::<Service>(public("shop")).await;
    assert!(cluster.elasti_service("shop").await.is_none());
    cluster
        .annotate::<Service>("shop", json!({ENABLED: "true"}))
        .await;
    let elasti_service = cluster.elasti_service("shop").await.unwrap();
    assert_eq!(elasti_service.spec.service, "shop");
    assert_eq!(elasti_service.spec.scale_target_ref.name, "web");
    assert_eq!(elasti_service.spec.triggers[0].kind, TriggerKind::Requests);
    assert_eq!(
        elasti_service.metadata.owner_references.as_ref().unwrap()[0].name,
        "shop"
    );
    // Changes of the annotations are applied, and changes of the ElastiService are reverted.
    cluster
        .annotate::<Service>("shop", json!({COOLDOWN: "1m"}))
        .await;
    assert_eq!(
        cluster
            .elasti_service("shop")
            .await
            .unwrap()
            .spec
            .cooldown_period,
        Some(60)
    );
    let parameters = PatchParams::default();
    let change = Patch::Merge(json!({"spec": {"cooldownPeriod": 5}}));
    let services = cluster.api::<ElastiService>();
    services.patch("shop", &parameters, &change).await.unwrap();
    cluster.clock.sleep(Duration::from_secs(1)).await;
    assert_eq!(
        cluster
            .elasti_service("shop")
            .await
            .unwrap()
            .spec
            .cooldown_period,
        Some(60)
    );
    // An invalid annotation is reported, and changes nothing.
    cluster
        .annotate::<Service>("shop", json!({COOLDOWN: "soon"}))
        .await;
    assert_eq!(
        cluster
            .elasti_service("shop")
            .await
            .unwrap()
            .spec
            .cooldown_period,
        Some(60)
    );
    let events = cluster.events().await;
    assert_eq!(events[0].0, "NotUnderstood");
    assert!(events[0].1.contains(COOLDOWN), "{events:?}");
    cluster
        .annotate::<Service>("shop", json!({ENABLED: null, COOLDOWN: null}))
        .await;
    assert!(cluster.elasti_service("shop").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn an_annotated_deployment_uses_the_service_that_selects_it() {
    let cluster = TestCluster::open().await;
    cluster.create::<Deployment>(deployment("web")).await;
    cluster.create::<Service>(public("shop")).await;
    cluster
        .annotate::<Deployment>("web", json!({ENABLED: "true"}))
        .await;
    let elasti_service = cluster.elasti_service("shop").await.unwrap();
    assert_eq!(elasti_service.spec.scale_target_ref.kind, "Deployment");
    assert_eq!(
        elasti_service.metadata.owner_references.unwrap()[0].kind,
        "Deployment"
    );
    // If two match, one has to be named.
    cluster.create::<Service>(public("other")).await;
    cluster
        .annotate::<Deployment>("web", json!({COOLDOWN: "1m"}))
        .await;
    let events = cluster.events().await;
    assert!(
        events.iter().any(|(_, message)| message.contains(SERVICE)),
        "{events:?}"
    );
    cluster
        .annotate::<Deployment>("web", json!({SERVICE: "other"}))
        .await;
    assert_eq!(
        cluster
            .elasti_service("other")
            .await
            .unwrap()
            .spec
            .cooldown_period,
        Some(60)
    );
    assert!(
        cluster.elasti_service("shop").await.is_none(),
        "it names another one now"
    );
}

#[tokio::test(start_paused = true)]
async fn an_elasti_service_of_a_user_takes_precedence() {
    let cluster = TestCluster::open().await;
    cluster.create::<Deployment>(deployment("web")).await;
    cluster.create::<Service>(public("shop")).await;
    cluster
        .annotate::<Service>("shop", json!({ENABLED: "true"}))
        .await;
    assert!(cluster.elasti_service("shop").await.is_some());
    let written = json!({"metadata": {"name": "by-hand"}, "spec": {
        "service": "shop", "cooldownPeriod": 30,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
    }});
    cluster.create::<ElastiService>(written).await;
    cluster.clock.sleep(Duration::from_secs(5)).await;
    assert!(cluster.elasti_service("shop").await.is_none());
    assert_eq!(cluster.events().await[0].0, "AlreadyThere");
    let by_hand = cluster.elasti_service("by-hand").await.unwrap();
    assert_eq!(by_hand.spec.cooldown_period, Some(30));
}

#[tokio::test(start_paused = true)]
async fn no_elasti_service_is_created_in_a_namespace_that_is_off() {
    let cluster = TestCluster::open().await;
    cluster.create::<Deployment>(deployment("web")).await;
    cluster.create::<Service>(public("shop")).await;
    cluster
        .annotate::<Service>("shop", json!({ENABLED: "true"}))
        .await;
    for namespace in ["elasti", "default"] {
        cluster
            .annotate_namespace(namespace, json!({OFF: "true"}))
            .await;
        assert!(
            cluster.elasti_service("shop").await.is_some(),
            "an existing one stays"
        );
        let services = cluster.api::<ElastiService>();
        let parameters = DeleteParams::default();
        services.delete("shop", &parameters).await.unwrap();
        cluster.clock.sleep(Duration::from_mins(2)).await;
        assert!(
            cluster.elasti_service("shop").await.is_none(),
            "off in {namespace}"
        );
        cluster
            .annotate_namespace(namespace, json!({OFF: null}))
            .await;
        assert!(cluster.elasti_service("shop").await.is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_read_is_reported_and_retried() {
    let cluster = TestCluster::open().await;
    cluster.create::<Service>(public("web")).await;
    cluster.create::<Deployment>(deployment("web")).await;
    cluster.blind.store(true, Ordering::SeqCst);
    let on = json!({ENABLED: "true"});
    cluster.annotate::<Service>("web", on).await;
    assert!(cluster.elasti_service("web").await.is_none());
    let events = cluster.events().await;
    assert_eq!(events[0].0, "NotRead", "{events:?}");
    cluster.blind.store(false, Ordering::SeqCst);
    cluster.clock.sleep(Duration::from_mins(1)).await;
    assert!(cluster.elasti_service("web").await.is_some());
}
