//! RBAC rules are neither too narrow nor too wide: on a server that enforces them, the operator exercises
//! all its functions under the rules of the manifests, and must use every right it has. The same for the
//! resolver.

mod resolver;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use http::{HeaderMap, HeaderValue, Request, header::AUTHORIZATION};
use kube::{
    ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
    client::Body,
};
use neap_idle::{
    auth::{Authenticator, TokenReviews},
    elasti_service::{
        self,
        facts::{PortRange, Timeouts},
    },
    opt_in::{self, OptInLimits},
    options::Installation,
    wake::WakeRunner,
};
use neap_kit::{
    clock::Clock,
    context::Context,
    key::Key,
    lease::{ElectionOptions as Election, Elector, Leadership, LeaseTimings},
    watch::Watches,
};
use neap_pocket::identity::{Credentials, Tokens};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::{
    stubs::{AlwaysReachable, AnnotationTriggers, VERDICT_ANNOTATION},
    *,
};

/// Group, resource and verb.
type Right = (String, String, String);

const OPERATOR: &str = "system:serviceaccount:elasti:elasti-operator-controller-manager";
/// Rights that are granted and not used here.
const UNUSED: [(&str, &str, &str); 7] = [
    // Some servers require it to create an object whose owner reference blocks deletion.
    (
        "elasti.truefoundry.com",
        "elastiservices/finalizers",
        "update",
    ),
    // The same as for Deployments, which are used here.
    ("apps", "statefulsets", "get"),
    ("argoproj.io", "rollouts", "get"),
    ("argoproj.io", "rollouts", "list"),
    ("argoproj.io", "rollouts", "watch"),
    ("argoproj.io", "rollouts/scale", "get"),
    ("argoproj.io", "rollouts/scale", "patch"),
];

/// The right that a request uses; `None` for requests that need none.
fn right(request: &Request<Body>) -> Option<Right> {
    let path = request.uri().path();
    let parts: Vec<_> = path.trim_matches('/').split('/').collect();
    let (group, mut rest) = match parts[..] {
        ["api", _, ref rest @ ..] => ("", rest),
        ["apis", group, _, ref rest @ ..] => (group, rest),
        _ => return None,
    };
    if let ["namespaces", _, resource, ..] = rest
        && *resource != "finalize"
    {
        rest = &rest[2..];
    }
    let (resource, name, part) = match rest {
        [] => return None,
        [resource] => (*resource, None, None),
        [resource, name] => (*resource, Some(name), None),
        [resource, name, part, ..] => (*resource, Some(name), Some(part)),
    };
    let watches = request
        .uri()
        .query()
        .is_some_and(|query| query.contains("watch=true"));
    let verb = match (request.method().as_str(), name) {
        ("GET", Some(_)) => "get",
        ("GET", None) if watches => "watch",
        ("GET", None) => "list",
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        _ => "delete",
    };
    let resource = part.map_or(resource.to_owned(), |part| format!("{resource}/{part}"));
    Some((group.to_owned(), resource, verb.to_owned()))
}

/// The rights that the manifests grant the operator, or the resolvers.
fn granted(resolvers: bool) -> BTreeSet<Right> {
    let roles = installed().into_iter().filter(|one| {
        let name = one["metadata"]["name"].as_str().unwrap();
        let kind = one["kind"].as_str().unwrap();
        kind.ends_with("Role") && name.contains("resolver") == resolvers
    });
    let words = |value: &Value| -> Vec<String> {
        let words = value.as_array().unwrap().iter();
        words
            .map(|word| word.as_str().unwrap().to_owned())
            .collect()
    };
    let mut rights = BTreeSet::new();
    // The aggregated role has no rules of its own.
    for rule in roles.flat_map(|role| role["rules"].as_array().cloned().unwrap_or_default()) {
        let (groups, verbs) = (words(&rule["apiGroups"]), words(&rule["verbs"]));
        for resource in words(&rule["resources"]) {
            for verb in &verbs {
                rights.insert((groups[0].clone(), resource.clone(), verb.clone()));
            }
        }
    }
    rights
}

struct RightsFixture {
    admin: Client,
    /// The client of the account whose rights are tested.
    client: Client,
    used: Arc<Mutex<BTreeSet<Right>>>,
    refused: Arc<Mutex<Vec<String>>>,
    clock: Clock,
}

impl RightsFixture {
    async fn open(pocket: &Pocket, account: &str) -> Self {
        let admin = Client::new(pocket.service(), "default");
        for object in installed() {
            create(&admin, object).await;
        }
        let mut tokens = Tokens::parse(&format!("secret,{account},1,system:serviceaccounts\n"));
        let credentials = Credentials {
            certificates: None,
            tokens: std::mem::take(tokens.as_mut().unwrap()),
        };
        let (used, refused) = (Arc::default(), Arc::new(Mutex::new(Vec::new())));
        let (noted, denied): (Arc<Mutex<BTreeSet<Right>>>, _) =
            (Arc::clone(&used), refused.clone());
        let service = pocket
            .service()
            .authenticated_by(Arc::new(credentials))
            .map_request(move |mut request: Request<Body>| {
                noted.lock().extend(right(&request));
                let token = HeaderValue::from_static("Bearer secret");
                request.headers_mut().insert(AUTHORIZATION, token);
                request
            })
            .map_response(move |response: http::Response<_>| {
                if response.status() == 403 || response.status() == 401 {
                    denied.lock().push(format!("{:?}", response.status()));
                }
                response
            });
        Self {
            admin,
            client: Client::new(service, "default"),
            used,
            refused,
            clock: Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap()),
        }
    }

    /// Asserts that all used rights are granted, and that all granted rights but `excused` were used.
    fn assert_rights(&self, granted: &BTreeSet<Right>, excused: &[(&str, &str, &str)]) {
        let used = self.used.lock().clone();
        let beyond: Vec<_> = used.difference(granted).collect();
        assert!(beyond.is_empty(), "used without being granted: {beyond:#?}");
        let unexpected: Vec<_> = self.refused.lock().clone();
        assert_eq!(unexpected, [] as [String; 0], "the server refused requests");
        let excused = |right: &&Right| {
            let (group, resource, verb) = right;
            excused.contains(&(group, resource, verb))
        };
        let idle = granted.difference(&used);
        let idle: Vec<_> = idle.filter(|right| !excused(right)).collect();
        assert!(idle.is_empty(), "granted and never used: {idle:#?}");
    }

    async fn pass(&self, seconds: u64) {
        self.clock.sleep(Duration::from_secs(seconds)).await;
    }

    fn api(&self, api_version: &str, kind: &str) -> Api<DynamicObject> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::namespaced_with(self.admin.clone(), "default", &resource)
    }

    async fn create(&self, object: Value) {
        let (version, kind) = (object["apiVersion"].as_str(), object["kind"].as_str());
        let api = self.api(version.unwrap(), kind.unwrap());
        let object = serde_json::from_value(object).unwrap();
        api.create(&PostParams::default(), &object).await.unwrap();
    }

    async fn patch(&self, version: &str, kind: &str, name: &str, change: Value) {
        let api = self.api(version, kind);
        let parameters = PatchParams::default();
        api.patch(name, &parameters, &Patch::Merge(change))
            .await
            .unwrap();
    }
}

fn service(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"name": "http", "port": 80}]},
    })
}

fn workload(kind: &str, name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name},
        "spec": {
            "replicas": 2, "serviceName": name, "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "app"}]},
            },
        },
    })
}

fn slice(name: &str, labels: &Value, ready: bool, owner: &Value) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": name, "labels": labels, "ownerReferences": owner},
        "addressType": "IPv4", "ports": [],
        "endpoints": [{"addresses": ["10.9.0.1"], "conditions": {"ready": ready}}],
    })
}

fn elasti_service(name: &str, kind: &str, autoscaler: &Value) -> Value {
    json!({
        "apiVersion": "elasti.truefoundry.com/v1alpha1", "kind": "ElastiService",
        "metadata": {"name": name, "annotations": {VERDICT_ANNOTATION: "idle"}},
        "spec": {
            "service": name, "cooldownPeriod": 60, "autoscaler": autoscaler,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": kind, "name": name},
            "triggers": [{"type": "prometheus"}],
        },
    })
}

fn keda() -> Value {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "scaledobjects.keda.sh"},
        "spec": {
            "group": "keda.sh", "scope": "Namespaced",
            "names": {"kind": "ScaledObject", "plural": "scaledobjects", "singular": "scaledobject"},
            "versions": [{"name": "v1alpha1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": any}}],
        },
    })
}

const ELASTI: (&str, &str) = ("elasti.truefoundry.com/v1alpha1", "ElastiService");

#[tokio::test(start_paused = true)]
async fn the_operator_has_the_rights_that_it_uses_and_no_others() {
    let pocket = Pocket::open(Options::new(Environment::simulated(7)))
        .await
        .unwrap();
    let fixture = RightsFixture::open(&pocket, OPERATOR).await;
    create(&fixture.admin, keda()).await;
    fixture.pass(1).await;
    run_operator(&fixture).await;
    fixture.assert_rights(&granted(false), &UNUSED);
}

/// Exercises all functions of the operator.
async fn run_operator(fixture: &RightsFixture) {
    let clock = fixture.clock;
    let election = Election {
        namespace: "elasti".to_owned(),
        name: "acf50383.truefoundry.io".to_owned(),
        identity: "one".to_owned(),
        timings: LeaseTimings::default(),
    };
    let (elector, mut leadership) = Elector::new(fixture.client.clone(), election, clock).unwrap();
    let elected = CancellationToken::new();
    let mut tasks = JoinSet::new();
    tasks.spawn(elector.run(elected.clone()));
    leadership.gained().await;
    fixture.pass(5).await;
    elected.cancel();
    let (watches, watching) = Watches::new(clock);
    let context = Context {
        client: fixture.client.clone(),
        watches,
        // An elected leader would renew its lease every other second of the simulated time.
        leadership: Leadership::without_election(clock),
        clock,
    };
    let settings = elasti_service::Settings {
        installation: Installation {
            operator_namespace: "elasti".to_owned(),
            resolver_namespace: "default".to_owned(),
            resolver_service: "resolver".to_owned(),
            ..Installation::standard()
        },
        resolver_ports: PortRange::default(),
        timeouts: Timeouts::default(),
    };
    let (waker, wakes) = WakeRunner::for_all_services(&context).unwrap();
    let operator = elasti_service::component(
        &context,
        settings,
        Arc::new(AnnotationTriggers),
        Arc::new(AlwaysReachable),
    )
    .unwrap();
    let annotations = opt_in::component(&context, "elasti", &OptInLimits::default()).unwrap();
    let stop = CancellationToken::new();
    tasks.spawn(watching.run(stop.clone()));
    tasks.spawn(wakes.run(stop.clone()));
    tasks.spawn(operator.run(stop.clone()));
    tasks.spawn(annotations.run(stop.clone()));

    services_sleep_and_wake(fixture, &waker).await;
    let reviews = Arc::new(TokenReviews::new(fixture.client.clone(), clock));
    let authenticator =
        Authenticator::for_service_accounts(reviews, [("elasti", "elasti-resolver")]);
    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, HeaderValue::from_static("Bearer unknown"));
    assert!(authenticator.check(&headers).await.is_err());
    stop.cancel();
    while tasks.join_next().await.is_some() {}
}

async fn services_sleep_and_wake(fixture: &RightsFixture, waker: &neap_idle::wake::WakeHandle) {
    fixture.create(service("resolver")).await;
    let resolver = fixture.api("v1", "Service").get("resolver").await.unwrap();
    let owner =
        json!([{"apiVersion": "v1", "kind": "Service", "name": "resolver", "uid": resolver.uid()}]);
    let labels = json!({"kubernetes.io/service-name": "resolver"});
    fixture
        .create(slice("resolvers", &labels, true, &owner))
        .await;
    let scaled = json!({
        "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "web"},
        "spec": {"scaleTargetRef": {"name": "web"}},
    });
    fixture.create(scaled).await;
    for (name, kind) in [
        ("web", "Deployment"),
        ("db", "StatefulSet"),
        ("api", "Deployment"),
    ] {
        fixture.create(workload(kind, name)).await;
        fixture.create(service(name)).await;
    }
    // As KubeElasti leaves it.
    let old = neap_idle::api::names::resolver_slice("db");
    let labels = json!({"kubernetes.io/service-name": "db"});
    fixture
        .create(slice(&old, &labels, true, &Value::Null))
        .await;
    pods_are_ready(fixture).await;
    let keda = json!({"type": "keda", "name": "web"});
    fixture
        .create(elasti_service("web", "Deployment", &keda))
        .await;
    fixture
        .create(elasti_service("db", "StatefulSet", &Value::Null))
        .await;
    fixture.pass(90).await;
    let ports =
        json!({"spec": {"ports": [{"name": "http", "port": 80}, {"name": "more", "port": 81}]}});
    fixture.patch("v1", "Service", "web", ports).await;
    fixture.pass(5).await;
    it_wakes(fixture, waker).await;
    annotations_come_and_go(fixture).await;
    // One after the other, so that ports are released twice.
    for (name, seconds) in [("web", 30), ("db", 700)] {
        let services = fixture.api(ELASTI.0, ELASTI.1);
        services
            .delete(name, &DeleteParams::default())
            .await
            .unwrap();
        fixture.pass(seconds).await;
    }
    let left = fixture
        .api(ELASTI.0, ELASTI.1)
        .list(&kube::api::ListParams::default())
        .await;
    assert_eq!(left.unwrap().items.len(), 0, "every ElastiService is gone");
}

/// Writes the slices of ready pods: a workload without a ready pod does not sleep as idle.
async fn pods_are_ready(fixture: &RightsFixture) {
    for (name, public) in [("pods", "web"), ("pods-of-db", "db")] {
        let private = neap_idle::api::names::private_service(public);
        let labels =
            json!({"idle.neaptide.dev/private": "true", "kubernetes.io/service-name": private});
        fixture
            .create(slice(name, &labels, true, &Value::Null))
            .await;
    }
}

/// Pods end, a request wakes the service, and pods become ready.
async fn it_wakes(fixture: &RightsFixture, waker: &neap_idle::wake::WakeHandle) {
    let ended = json!({"endpoints": [{"addresses": ["10.2.0.1"], "conditions": {"ready": false}}]});
    fixture
        .patch("discovery.k8s.io/v1", "EndpointSlice", "pods", ended)
        .await;
    let web = Key::new("default", "web");
    let woken = waker.wake(web).unwrap().outcome().await;
    assert!(
        matches!(woken, neap_idle::wake::WakeOutcome::Woken { .. }),
        "{woken:?}"
    );
    let awake = json!({"metadata": {"annotations": {VERDICT_ANNOTATION: null}}});
    fixture.patch(ELASTI.0, ELASTI.1, "web", awake).await;
    let ready = json!({"endpoints": [{"addresses": ["10.2.0.1"], "conditions": {"ready": true}}]});
    fixture
        .patch("discovery.k8s.io/v1", "EndpointSlice", "pods", ready)
        .await;
    fixture.pass(30).await;
}

/// An annotation is added, changed, invalid twice, and removed.
async fn annotations_come_and_go(fixture: &RightsFixture) {
    for annotations in [
        json!({"idle.neaptide.dev/enabled": "true"}),
        json!({"idle.neaptide.dev/cooldown": "1m"}),
        json!({"idle.neaptide.dev/cooldown": "soon"}),
        json!({"idle.neaptide.dev/cooldown": "1m"}),
        json!({"idle.neaptide.dev/cooldown": "soon"}),
        json!({"idle.neaptide.dev/enabled": null}),
    ] {
        let change = json!({"metadata": {"annotations": annotations}});
        fixture.patch("v1", "Service", "api", change).await;
        fixture.pass(5).await;
    }
}
