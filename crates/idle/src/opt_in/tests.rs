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
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, CustomResourceExt, Resource,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
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

/// Limits that allow one server besides the default.
fn limits() -> OptInLimits {
    OptInLimits {
        servers: "http://prometheus.example:9090".parse().unwrap(),
        ..OptInLimits::default()
    }
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
        let controller = component(&context, "elasti", &limits()).unwrap();
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

    async fn elasti_services(&self) -> Vec<ElastiService> {
        let all = self.api::<ElastiService>();
        all.list(&ListParams::default()).await.unwrap().items
    }

    /// Defines ScaledObjects, and creates one for each of these Deployments.
    async fn scaled_objects(&self, deployments: &[&str]) {
        let definition = json!({
            "metadata": {"name": "scaledobjects.keda.sh"},
            "spec": {
                "group": "keda.sh", "scope": "Namespaced",
                "names": {"kind": "ScaledObject", "plural": "scaledobjects"},
                "versions": [{
                    "name": "v1alpha1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {
                        "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                    }},
                }],
            },
        });
        let definition: CustomResourceDefinition = serde_json::from_value(definition).unwrap();
        let definitions = Api::all(self.client.clone());
        let parameters = PostParams::default();
        definitions.create(&parameters, &definition).await.unwrap();
        self.clock.sleep(Duration::from_secs(1)).await;
        let kind = crate::target::scaled_object_kind().resource;
        let api: Api<DynamicObject> = Api::default_namespaced_with(self.client.clone(), &kind);
        for name in deployments {
            let object = DynamicObject::new(&format!("of-{name}"), &kind)
                .data(json!({"spec": {"scaleTargetRef": {"name": name}}}));
            api.create(&parameters, &object).await.unwrap();
        }
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
    let refused = events.iter().find(|(reason, _)| reason == "NotUnderstood");
    assert!(refused.unwrap().1.contains(COOLDOWN), "{events:?}");
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

/// What a user may write.
#[derive(Debug, Clone, Copy, PartialEq)]
enum MayWrite {
    Services,
    Deployments,
    ElastiServices,
}

/// The workload that sleeps in the end, and the annotation that is refused.
type Effect = (Option<&'static str>, Option<&'static str>);

/// What a user may write, the annotations, and their effect.
type Row = (MayWrite, &'static [(&'static str, &'static str)], Effect);

#[tokio::test(start_paused = true)]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
async fn a_right_on_an_object_gives_none_on_other_workloads() {
    use MayWrite::{Deployments, ElastiServices, Services};
    const QUERY_OF: (&str, &str) = (QUERY, "up");
    let own = (Some("web"), None);
    let refused = |annotation| (None, Some(annotation));
    let rows: [Row; 15] = [
        (Services, &[], own),
        (Services, &[(TARGET, "Deployment/web")], own),
        (Services, &[(TARGET, "Deployment/other")], refused(TARGET)),
        (Services, &[(TARGET, "StatefulSet/none")], refused(TARGET)),
        (
            Services,
            &[(TARGET, "example.com/v1/Thing/none")],
            refused(TARGET),
        ),
        (Services, &[(MIN_REPLICAS, "10")], own),
        (Services, &[(MIN_REPLICAS, "11")], refused(MIN_REPLICAS)),
        (
            Services,
            &[QUERY_OF, (SERVER_ADDRESS, "http://prometheus.example:9090")],
            own,
        ),
        (
            Services,
            &[
                QUERY_OF,
                (SERVER_ADDRESS, "http://me:hush@attacker.example"),
            ],
            refused(SERVER_ADDRESS),
        ),
        (Services, &[(AUTOSCALER, "hpa/anything")], own),
        (Services, &[(AUTOSCALER, "keda/of-web")], own),
        (
            Services,
            &[(AUTOSCALER, "keda/of-other")],
            refused(AUTOSCALER),
        ),
        (Deployments, &[(SERVICE, "shop")], own),
        (Deployments, &[(SERVICE, "foreign")], refused(SERVICE)),
        // A user who may write ElastiServices may name any workload: the cluster's RBAC controls that.
        (
            ElastiServices,
            &[(TARGET, "Deployment/other")],
            (Some("other"), None),
        ),
    ];
    for (may, annotations, (sleeps, refused)) in rows {
        let cluster = TestCluster::open().await;
        cluster.create::<Deployment>(deployment("web")).await;
        let mut other = deployment("other");
        let labels = json!({"app": "other"});
        other["spec"]["selector"]["matchLabels"] = labels.clone();
        other["spec"]["template"]["metadata"]["labels"] = labels;
        cluster.create::<Deployment>(other).await;
        cluster.create::<Service>(public("shop")).await;
        let mut foreign = public("foreign");
        foreign["spec"]["selector"] = json!({"app": "other"});
        cluster.create::<Service>(foreign).await;
        cluster.scaled_objects(&["web", "other"]).await;
        let all = annotations
            .iter()
            .map(|(name, value)| (*name, json!(value)));
        let all: serde_json::Map<_, _> = all
            .chain([(ENABLED, json!("true"))])
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        match may {
            Services => cluster.annotate::<Service>("shop", json!(all)).await,
            Deployments => cluster.annotate::<Deployment>("web", json!(all)).await,
            ElastiServices => {
                let service = json!({"metadata": {"name": "shop"}, "spec": {
                    "service": "shop",
                    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "other"},
                }});
                cluster.create::<ElastiService>(service).await;
            }
        }
        let row = format!("{may:?} {annotations:?}");
        let made = cluster.elasti_services().await;
        let targets: Vec<_> = made
            .iter()
            .map(|it| &*it.spec.scale_target_ref.name)
            .collect();
        assert_eq!(targets, sleeps.into_iter().collect::<Vec<_>>(), "{row}");
        let events = cluster.events().await;
        let mut told = events.iter().filter(|(reason, _)| reason == "NotAllowed");
        match refused {
            None => assert_eq!(told.next(), None, "{row}"),
            Some(annotation) => {
                let (_, message) = told.next().expect(&row);
                assert!(message.contains(annotation), "{row}: {message}");
                assert!(!message.contains("hush"), "{row}: {message}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_allowed_ends_when_the_service_selects_other_pods() {
    let cluster = TestCluster::open().await;
    cluster.create::<Deployment>(deployment("web")).await;
    cluster.create::<Service>(public("shop")).await;
    let on = json!({ENABLED: "true", TARGET: "Deployment/web"});
    cluster.annotate::<Service>("shop", on).await;
    assert!(cluster.elasti_service("shop").await.is_some());
    let patch = Patch::Merge(json!({"spec": {"selector": {"app": "another"}}}));
    let services = cluster.api::<Service>();
    let parameters = PatchParams::default();
    services.patch("shop", &parameters, &patch).await.unwrap();
    cluster.clock.sleep(Duration::from_secs(1)).await;
    assert!(cluster.elasti_service("shop").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn only_an_edit_of_a_user_is_reported_when_it_is_reverted() {
    let cluster = TestCluster::open().await;
    cluster.create::<Deployment>(deployment("web")).await;
    cluster.create::<Service>(public("shop")).await;
    let on = json!({ENABLED: "true", COOLDOWN: "1m"});
    cluster.annotate::<Service>("shop", on).await;
    cluster
        .annotate::<Service>("shop", json!({COOLDOWN: "2m"}))
        .await;
    assert_eq!(cluster.events().await, [], "the annotations changed");
    let parameters = PatchParams::default();
    let change = Patch::Merge(json!({"spec": {"cooldownPeriod": 5, "observeOnly": true}}));
    let services = cluster.api::<ElastiService>();
    services.patch("shop", &parameters, &change).await.unwrap();
    cluster.clock.sleep(Duration::from_secs(1)).await;
    let spec = cluster.elasti_service("shop").await.unwrap().spec;
    assert_eq!(
        (spec.cooldown_period, spec.observe_only),
        (Some(120), false)
    );
    let events = cluster.api::<Event>().list(&ListParams::default()).await;
    let events: Vec<_> = events.unwrap().items;
    let about = |event: &Event| event.involved_object.kind.clone().unwrap();
    let mut kinds: Vec<_> = events.iter().map(about).collect();
    kinds.sort();
    assert_eq!(kinds, ["ElastiService", "Service"]);
    for event in events {
        assert_eq!(event.type_.as_deref(), Some("Warning"));
        assert_eq!(event.reason.as_deref(), Some("EditReverted"));
        let message = event.message.unwrap();
        assert!(
            message.contains("spec.cooldownPeriod, spec.observeOnly of ElastiService shop"),
            "{message}"
        );
        assert!(message.contains("Service shop set it"), "{message}");
    }
}
