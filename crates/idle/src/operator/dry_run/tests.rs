use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        apps::v1::Deployment,
        autoscaling::v2::HorizontalPodAutoscaler,
        core::v1::{Pod, Service},
        discovery::v1::EndpointSlice,
    },
};
use kube::{Api, CustomResourceExt, Resource, api::PostParams};
use neap_kit::apply::Object;
use neap_pocket::{Options, Pocket, environment::Environment};
use serde_json::{Value, json};

use super::*;
use crate::{
    api::{ElastiService, FINALIZER, names},
    elasti_service::decide::Inquiry,
    opt_in::annotations::ENABLED,
    options::Installation,
};

/// An API server without an operator.
struct TestCluster {
    client: Client,
    clock: Clock,
    _pocket: Pocket,
}

impl TestCluster {
    /// With a Service, its Deployment, and a ready resolver.
    async fn open() -> Self {
        let options = Options::new(Environment::simulated(7));
        let pocket = Pocket::open(options).await.unwrap();
        let client = Client::new(pocket.service(), "default");
        let cluster = Self {
            client,
            clock: Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap()),
            _pocket: pocket,
        };
        let definitions = Api::all(cluster.client.clone());
        let definition = ElastiService::crd();
        let parameters = PostParams::default();
        definitions.create(&parameters, &definition).await.unwrap();
        cluster.clock.sleep(Duration::from_secs(1)).await;
        cluster.create::<Service>(service("web")).await;
        cluster.create::<Deployment>(deployment()).await;
        let resolvers = cluster.create::<Service>(service("resolvers")).await;
        cluster
            .create::<EndpointSlice>(json!({
                "metadata": {
                    "name": "resolvers", "labels": {"kubernetes.io/service-name": "resolvers"},
                    "ownerReferences": [resolvers.owner_ref(&())],
                },
                "addressType": "IPv4", "ports": [],
                "endpoints": [{"addresses": ["10.9.0.1"], "conditions": {"ready": true}}],
            }))
            .await;
        cluster
    }

    async fn create<K>(&self, object: Value) -> K
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        let api: Api<K> = Api::default_namespaced(self.client.clone());
        let object = serde_json::from_value(object).unwrap();
        api.create(&PostParams::default(), &object).await.unwrap()
    }

    async fn plan(&self, name: &str) -> DryRun {
        let installation = Installation {
            operator_namespace: "default".to_owned(),
            resolver_namespace: "default".to_owned(),
            resolver_service: "resolvers".to_owned(),
            ..Installation::standard()
        };
        let options = OperatorOptions::new(installation);
        let key = Key::new("default", name);
        let before = self.revision().await;
        let planned = dry_run(self.client.clone(), self.clock, &options, &key).await;
        assert_eq!(self.revision().await, before, "a dry run writes nothing");
        planned.unwrap()
    }

    /// The revision of the server, which every write increases.
    async fn revision(&self) -> Option<String> {
        let all: Api<HorizontalPodAutoscaler> = Api::all(self.client.clone());
        let listed = all.list(&kube::api::ListParams::default()).await.unwrap();
        listed.metadata.resource_version
    }
}

fn service(name: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"name": "http", "port": 80}]},
    })
}

fn deployment() -> Value {
    let labels = json!({"app": "web"});
    json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 3, "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "web", "image": "web"}]},
            },
        },
    })
}

fn elasti_service(metadata: &Value, status: &Value) -> Value {
    let mut object = json!({
        "metadata": {"name": "web"},
        "spec": {
            "service": "web", "cooldownPeriod": 600, "triggers": [{"type": "prometheus"}],
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        },
        "status": status,
    });
    for (name, value) in metadata.as_object().unwrap() {
        object["metadata"][name] = value.clone();
    }
    object
}

fn lines(run: &services::ServiceDryRun) -> Vec<String> {
    let changes = run.decision.plan.iter();
    changes.map(ToString::to_string).collect()
}

#[tokio::test(start_paused = true)]
async fn the_first_change_of_a_new_service_is_its_finalizer() {
    let cluster = TestCluster::open().await;
    let web = elasti_service(&json!({}), &Value::Null);
    cluster.create::<ElastiService>(web).await;
    let planned = cluster.plan("web").await;
    assert!(planned.annotated.is_empty());
    let service = planned.service.unwrap();
    let lines = lines(&service);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].starts_with("patch ElastiService default/web: "),
        "{lines:?}"
    );
    assert!(service.assumptions[0].starts_with("triggers: unknown; only the leading operator"));
}

#[tokio::test(start_paused = true)]
async fn a_service_that_falls_asleep_gets_its_slice_and_then_a_proof() {
    let cluster = TestCluster::open().await;
    let ports = json!([{"name": "http", "port": 80, "resolverPort": 20_000, "service": "web"}]);
    let status = json!({
        "observedGeneration": 1, "mode": "serve", "ports": ports, "replicasBefore": 3,
        "resting": {"target": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
        "lastScaledUpTime": "2025-12-31T00:00:00Z",
        "handOff": {"towards": "Resolvers", "since": "2026-01-01T00:00:00Z"},
    });
    let metadata = json!({"finalizers": [FINALIZER]});
    cluster
        .create::<ElastiService>(elasti_service(&metadata, &Value::Null))
        .await;
    let api: Api<ElastiService> = Api::default_namespaced(cluster.client.clone());
    let patch = kube::api::Patch::Merge(json!({ "status": status }));
    let parameters = kube::api::PatchParams::default();
    api.patch_status("web", &parameters, &patch).await.unwrap();
    let pod = json!({
        "metadata": {"name": "web-1", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "web"}]},
    });
    cluster.create::<Pod>(pod).await;
    let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    let pods: Api<Pod> = Api::default_namespaced(cluster.client.clone());
    let ready = kube::api::Patch::Merge(ready);
    pods.patch_status("web-1", &parameters, &ready)
        .await
        .unwrap();
    cluster.clock.sleep(Duration::from_mins(11)).await;
    let service = cluster.plan("web").await.service.unwrap();
    let (private, slice) = (names::private_service("web"), names::resolver_slice("web"));
    let expected = [
        format!(
            "create Service default/{private}: it selects the pods while the Service leads to resolvers"
        ),
        format!("create EndpointSlice default/{slice}: it adds resolvers to the Service"),
    ];
    assert_eq!(lines(&service), expected);
    assert_eq!(service.decision.reason.name, "Idle");
    // The slice has to exist before its effect can be proved.
    assert!(!matches!(service.decision.inquiry, Some(Inquiry::Proof(_))));
}

#[tokio::test(start_paused = true)]
async fn an_annotated_service_gets_an_elasti_service() {
    let cluster = TestCluster::open().await;
    let mut shop = service("shop");
    shop["spec"]["selector"] = json!({"app": "web"});
    shop["metadata"]["annotations"] = json!({ENABLED: "true"});
    cluster.create::<Service>(shop).await;
    let planned = cluster.plan("shop").await;
    assert!(planned.service.is_none());
    assert_eq!(planned.annotated.len(), 1, "{planned:?}");
    let annotated = &planned.annotated[0];
    assert_eq!(annotated.kind, "Service");
    assert_eq!(
        annotated.decision.plan.to_string(),
        "create ElastiService default/shop: the annotations enable sleep"
    );
    let content = annotated.decision.plan.changes[0].content().unwrap();
    assert_eq!(content["spec"]["scaleTargetRef"]["name"], "web");
}

#[tokio::test(start_paused = true)]
async fn there_is_nothing_to_plan_for_an_unknown_name() {
    let planned = TestCluster::open().await.plan("web").await;
    assert!(planned.annotated.is_empty() && planned.service.is_none());
}
