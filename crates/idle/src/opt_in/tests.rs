//! Annotations, as values and on a server in the test's own process.

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
use neap_kit::{apply::Object, clock::Clock, lease::Leadership, site::Site, watch::Watches};
use neap_pocket::{Options, Pocket, environment::Environment};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::{annotations::*, *};
use crate::{
    api::{ElastiService, ElastiServiceSpec, TriggerKind},
    service::facts::OFF,
};

fn asked(rows: &[(&str, &str)]) -> Result<Option<Asked>, Bad> {
    let mut said = BTreeMap::from([(ENABLED.to_owned(), "true".to_owned())]);
    let row = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    said.extend(rows.iter().map(row));
    read(&said)
}

fn spec(rows: &[(&str, &str)]) -> Value {
    let spec: ElastiServiceSpec = asked(rows).unwrap().unwrap().spec;
    let mut spec = serde_json::to_value(spec).unwrap();
    for name in ["service", "scaleTargetRef"] {
        spec.as_object_mut().unwrap().remove(name);
    }
    spec
}

#[test]
fn annotations_say_what_an_elasti_service_can() {
    assert_eq!(read(&BTreeMap::new()), Ok(None));
    assert_eq!(asked(&[(ENABLED, "false"), (COOLDOWN, "x")]), Ok(None));
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
    let target = |text| asked(&[(TARGET, text)]).unwrap().unwrap().target.unwrap();
    assert_eq!(target("StatefulSet/db").api_version, "apps/v1");
    let rollout = target("argoproj.io/v1alpha1/Rollout/web");
    assert_eq!(
        (&*rollout.api_version, &*rollout.kind),
        ("argoproj.io/v1alpha1", "Rollout")
    );
}

#[test]
fn what_cannot_be_meant_is_refused_by_its_name() {
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
        let bad = asked(&[(name, value)]).unwrap_err();
        assert_eq!((&*bad.annotation, &*bad.value), (name, value));
        assert!(
            bad.to_string().starts_with("metadata.annotations["),
            "{bad}"
        );
    }
    assert!(asked(&[(QUERY, "up"), (THRESHOLD, "many")]).is_err());
    assert!(asked(&[(SCHEDULE, "0 1 * * *"), (SCHEDULE_DURATION, "long")]).is_err());
}

struct Stage {
    client: Client,
    clock: Clock,
    /// Whether Deployments cannot be read.
    blind: Arc<AtomicBool>,
    stop: CancellationToken,
    _tasks: JoinSet<()>,
    _pocket: Pocket,
}

/// Finds no Deployments of a namespace while it is `blind`.
fn hiding(pocket: &Pocket, blind: Arc<AtomicBool>) -> Client {
    const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
    let hiding = pocket
        .service()
        .map_request(move |mut request: Request<Body>| {
            if blind.load(Ordering::SeqCst) && request.uri().path() == DEPLOYMENTS {
                *request.uri_mut() = "/apis/apps/v1/namespaces/default/none".parse().unwrap();
            }
            request
        });
    Client::new(hiding, "default")
}

impl Stage {
    async fn open() -> Self {
        let options = Options::new(Environment::rehearsal(7));
        let pocket = Pocket::open(options).await.unwrap();
        let client = Client::new(pocket.service(), "default");
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        let (watches, watching) = Watches::new(clock);
        let blind = Arc::<AtomicBool>::default();
        let site = Site {
            client: hiding(&pocket, blind.clone()),
            watches,
            leadership: Leadership::alone(clock),
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
        let controller = service(&site, "elasti").unwrap();
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

    /// Says something for a whole namespace, which is made if it is not there.
    async fn switch(&self, namespace: &str, annotations: Value) {
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
            let said = namespaces.patch(namespace, &parameters, &patch).await;
            said.unwrap();
        }
        self.clock.sleep(Duration::from_secs(1)).await;
    }

    async fn made(&self, name: &str) -> Option<ElastiService> {
        self.api().get_opt(name).await.unwrap()
    }

    async fn told(&self) -> Vec<(String, String)> {
        let events = self.api::<Event>().list(&ListParams::default()).await;
        let events = events.unwrap().items.into_iter();
        events
            .map(|event| (event.reason.unwrap(), event.message.unwrap()))
            .collect()
    }
}

impl Drop for Stage {
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
async fn an_annotated_service_sleeps_and_its_annotation_ends_it() {
    let stage = Stage::open().await;
    stage.create::<Deployment>(deployment("web")).await;
    stage.create::<Service>(public("shop")).await;
    assert!(stage.made("shop").await.is_none());
    stage
        .annotate::<Service>("shop", json!({ENABLED: "true"}))
        .await;
    let made = stage.made("shop").await.unwrap();
    assert_eq!(made.spec.service, "shop");
    assert_eq!(made.spec.scale_target_ref.name, "web");
    assert_eq!(made.spec.triggers[0].kind, TriggerKind::Requests);
    assert_eq!(
        made.metadata.owner_references.as_ref().unwrap()[0].name,
        "shop"
    );
    // What they say is followed, and what somebody writes into it is not.
    stage
        .annotate::<Service>("shop", json!({COOLDOWN: "1m"}))
        .await;
    assert_eq!(
        stage.made("shop").await.unwrap().spec.cooldown_period,
        Some(60)
    );
    let parameters = PatchParams::default();
    let change = Patch::Merge(json!({"spec": {"cooldownPeriod": 5}}));
    let services = stage.api::<ElastiService>();
    services.patch("shop", &parameters, &change).await.unwrap();
    stage.clock.sleep(Duration::from_secs(1)).await;
    assert_eq!(
        stage.made("shop").await.unwrap().spec.cooldown_period,
        Some(60)
    );
    // What is not understood is told, and changes nothing.
    stage
        .annotate::<Service>("shop", json!({COOLDOWN: "soon"}))
        .await;
    assert_eq!(
        stage.made("shop").await.unwrap().spec.cooldown_period,
        Some(60)
    );
    let told = stage.told().await;
    assert_eq!(told[0].0, "NotUnderstood");
    assert!(told[0].1.contains(COOLDOWN), "{told:?}");
    stage
        .annotate::<Service>("shop", json!({ENABLED: null, COOLDOWN: null}))
        .await;
    assert!(stage.made("shop").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn an_annotated_deployment_sleeps_behind_the_service_that_selects_it() {
    let stage = Stage::open().await;
    stage.create::<Deployment>(deployment("web")).await;
    stage.create::<Service>(public("shop")).await;
    stage
        .annotate::<Deployment>("web", json!({ENABLED: "true"}))
        .await;
    let made = stage.made("shop").await.unwrap();
    assert_eq!(made.spec.scale_target_ref.kind, "Deployment");
    assert_eq!(
        made.metadata.owner_references.unwrap()[0].kind,
        "Deployment"
    );
    // With two that fit, one has to be named.
    stage.create::<Service>(public("other")).await;
    stage
        .annotate::<Deployment>("web", json!({COOLDOWN: "1m"}))
        .await;
    let told = stage.told().await;
    assert!(
        told.iter().any(|(_, message)| message.contains(SERVICE)),
        "{told:?}"
    );
    stage
        .annotate::<Deployment>("web", json!({SERVICE: "other"}))
        .await;
    assert_eq!(
        stage.made("other").await.unwrap().spec.cooldown_period,
        Some(60)
    );
    assert!(
        stage.made("shop").await.is_none(),
        "it is about another one now"
    );
}

#[tokio::test(start_paused = true)]
async fn what_somebody_wrote_comes_first() {
    let stage = Stage::open().await;
    stage.create::<Deployment>(deployment("web")).await;
    stage.create::<Service>(public("shop")).await;
    stage
        .annotate::<Service>("shop", json!({ENABLED: "true"}))
        .await;
    assert!(stage.made("shop").await.is_some());
    let written = json!({"metadata": {"name": "by-hand"}, "spec": {
        "service": "shop", "cooldownPeriod": 30,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
    }});
    stage.create::<ElastiService>(written).await;
    stage.clock.sleep(Duration::from_secs(5)).await;
    assert!(stage.made("shop").await.is_none());
    assert_eq!(stage.told().await[0].0, "AlreadyThere");
    let by_hand = stage.made("by-hand").await.unwrap();
    assert_eq!(by_hand.spec.cooldown_period, Some(30));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_made_where_nothing_sleeps() {
    let stage = Stage::open().await;
    stage.create::<Deployment>(deployment("web")).await;
    stage.create::<Service>(public("shop")).await;
    stage
        .annotate::<Service>("shop", json!({ENABLED: "true"}))
        .await;
    for namespace in ["elasti", "default"] {
        stage.switch(namespace, json!({OFF: "true"})).await;
        assert!(stage.made("shop").await.is_some(), "what is there stays");
        let services = stage.api::<ElastiService>();
        let parameters = DeleteParams::default();
        services.delete("shop", &parameters).await.unwrap();
        stage.clock.sleep(Duration::from_mins(2)).await;
        assert!(stage.made("shop").await.is_none(), "off in {namespace}");
        stage.switch(namespace, json!({OFF: null})).await;
        assert!(stage.made("shop").await.is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_told_and_read_later() {
    let stage = Stage::open().await;
    stage.create::<Service>(public("web")).await;
    stage.create::<Deployment>(deployment("web")).await;
    stage.blind.store(true, Ordering::SeqCst);
    let on = json!({ENABLED: "true"});
    stage.annotate::<Service>("web", on).await;
    assert!(stage.made("web").await.is_none());
    let told = stage.told().await;
    assert_eq!(told[0].0, "NotRead", "{told:?}");
    stage.blind.store(false, Ordering::SeqCst);
    stage.clock.sleep(Duration::from_mins(1)).await;
    assert!(stage.made("web").await.is_some());
}
