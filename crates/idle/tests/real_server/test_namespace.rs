//! A namespace of a real server with its workloads, and an operator.

use std::time::Duration;

use kube::{
    Api, Client, Config, CustomResourceExt, ResourceExt,
    api::{
        ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams,
        PostParams,
    },
    config::{KubeConfigOptions, Kubeconfig},
};
use neap_idle::{
    api::{ElastiService, names},
    wake::WakeOutcome,
};
use neap_kit::{clock::Clock, key::Key};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    node,
    operator::{IDLE, Operator, OperatorPlacement},
};

/// Version and kind.
pub(crate) type Kind = (&'static str, &'static str);

pub(crate) const ELASTI: Kind = ("elasti.truefoundry.com/v1alpha1", "ElastiService");
pub(crate) const SERVICE: Kind = ("v1", "Service");
pub(crate) const DEPLOYMENT: Kind = ("apps/v1", "Deployment");
pub(crate) const SLICE: Kind = ("discovery.k8s.io/v1", "EndpointSlice");
pub(crate) const NAMESPACE: Kind = ("v1", "Namespace");
pub(crate) const ROLE: Kind = ("rbac.authorization.k8s.io/v1", "ClusterRole");
pub(crate) const DEFINITION: Kind = ("apiextensions.k8s.io/v1", "CustomResourceDefinition");
/// Cluster-scoped kinds.
const CLUSTER_SCOPED: [&str; 3] = ["Namespace", "CustomResourceDefinition", "ClusterRole"];

pub(crate) struct TestNamespace {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    pub(crate) clock: Clock,
    operator: Option<Operator>,
    /// The simulated nodes.
    others: JoinSet<()>,
}

/// The client configuration of the server's administrator.
pub(crate) async fn config() -> Config {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let file = std::env::var_os("NEAP_IDLE_SERVER").unwrap();
    let file = Kubeconfig::read_from(file).unwrap();
    let options = KubeConfigOptions::default();
    Config::from_custom_kubeconfig(file, &options)
        .await
        .unwrap()
}

fn resource((version, kind): Kind) -> ApiResource {
    let (group, number) = version.split_once('/').unwrap_or(("", version));
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, number, kind))
}

impl TestNamespace {
    /// With an operator in the namespace, which watches all namespaces or this one alone.
    pub(crate) async fn open(namespace: &str, scoped: bool) -> Self {
        let mut cluster = Self::connected(namespace).await;
        cluster.install_definition().await;
        let placement = OperatorPlacement {
            namespace,
            resolver_service: "resolver",
            only: scoped.then_some(namespace),
        };
        cluster.operator = Some(Operator::start(&cluster.client, &placement, None));
        cluster
    }

    /// Without an operator.
    pub(crate) async fn connected(namespace: &str) -> Self {
        let client = Client::try_from(config().await).unwrap();
        let mut others = JoinSet::new();
        others.spawn(node::run_pods(client.clone(), namespace.to_owned()));
        let cluster = Self {
            client,
            namespace: namespace.to_owned(),
            clock: Clock::system(),
            operator: None,
            others,
        };
        let space = json!({"metadata": {"name": namespace}});
        cluster.apply(NAMESPACE, space).await;
        cluster
    }

    /// Also runs the pods of another namespace.
    pub(crate) fn run_pods_of(&mut self, namespace: &str) {
        let node = node::run_pods(self.client.clone(), namespace.to_owned());
        self.others.spawn(node);
    }

    pub(crate) fn with_operator(&mut self, operator: Operator) {
        self.operator = Some(operator);
    }

    /// Applies the definition of ElastiServices, and waits until it is served.
    pub(crate) async fn install_definition(&self) {
        let definition = serde_json::to_value(ElastiService::crd()).unwrap();
        self.apply(DEFINITION, definition).await;
        self.wait_until_served().await;
    }

    pub(crate) async fn wait_until_served(&self) {
        let all = ListParams::default();
        let served = async || self.api(ELASTI).list(&all).await.is_ok();
        self.until(served).await;
    }

    pub(crate) fn api(&self, kind: Kind) -> Api<DynamicObject> {
        self.api_in(&self.namespace, kind)
    }

    pub(crate) fn api_in(&self, namespace: &str, kind: Kind) -> Api<DynamicObject> {
        let resource = resource(kind);
        if CLUSTER_SCOPED.contains(&kind.1) {
            return Api::all_with(self.client.clone(), &resource);
        }
        Api::namespaced_with(self.client.clone(), namespace, &resource)
    }

    /// The same with another client.
    pub(crate) fn api_with(&self, client: Client, kind: Kind) -> Api<DynamicObject> {
        Api::namespaced_with(client, &self.namespace, &resource(kind))
    }

    pub(crate) async fn apply(&self, kind: Kind, mut object: Value) {
        object["apiVersion"] = json!(kind.0);
        object["kind"] = json!(kind.1);
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let parameters = PatchParams::apply("test").force();
        let apply = Patch::Apply(object);
        let applied = self.api(kind).patch(&name, &parameters, &apply).await;
        applied.unwrap();
    }

    pub(crate) async fn try_create(
        &self,
        kind: Kind,
        mut object: Value,
    ) -> kube::Result<DynamicObject> {
        object["apiVersion"] = json!(kind.0);
        object["kind"] = json!(kind.1);
        let object = serde_json::from_value(object).unwrap();
        self.api(kind).create(&PostParams::default(), &object).await
    }

    pub(crate) async fn create(&self, kind: Kind, object: Value) -> DynamicObject {
        self.try_create(kind, object).await.unwrap()
    }

    /// Deletes the ElastiServices of a test without an operator, so that operators of other tests, which
    /// watch all namespaces, do not find them.
    pub(crate) async fn delete_elasti_services(&self) {
        let (delete, all) = (DeleteParams::default(), ListParams::default());
        let services = self.api(ELASTI);
        services.delete_collection(&delete, &all).await.unwrap();
    }

    pub(crate) async fn patch(&self, kind: Kind, name: &str, change: Value) {
        let (patch, parameters) = (Patch::Merge(change), PatchParams::default());
        let patched = self.api(kind).patch(name, &parameters, &patch).await;
        patched.unwrap();
    }

    pub(crate) async fn patch_status(&self, kind: Kind, name: &str, change: Value) {
        let (patch, parameters) = (Patch::Merge(change), PatchParams::default());
        let patched = self.api(kind).patch_status(name, &parameters, &patch).await;
        patched.unwrap();
    }

    /// Waits until `condition` holds; panics after a limit.
    pub(crate) async fn until(&self, condition: impl AsyncFn() -> bool) {
        let waiting = async {
            while !condition().await {
                self.clock.sleep(Duration::from_millis(100)).await;
            }
        };
        let limit = Duration::from_mins(2);
        if self.clock.within(limit, waiting).await.is_none() {
            let all = self.api(ELASTI).list(&ListParams::default()).await;
            let all: Vec<_> = all.into_iter().flatten().map(|one| one.data).collect();
            panic!("the condition never held: {}", json!(all));
        }
    }

    pub(crate) async fn replicas(&self, name: &str) -> i64 {
        let found = self.api(DEPLOYMENT).get(name).await.unwrap();
        found.data["spec"]["replicas"].as_i64().unwrap()
    }

    /// Creates the resolvers and the workload `web`. `change` has the `replicas` of its Deployment, and
    /// fields of its Service.
    pub(crate) async fn create_workloads(&self, change: &Value) {
        self.workload("resolver", &json!({"ipFamilyPolicy": "PreferDualStack"}))
            .await;
        self.workload("web", change).await;
    }

    /// Creates a Deployment, and a Service of the same name.
    pub(crate) async fn workload(&self, name: &str, change: &Value) {
        let mut spec = json!({
            "selector": {"app": name},
            "ports": [{"name": "http", "port": 80}, {"name": "grpc", "port": 9090}],
        });
        let fields = change.as_object().unwrap().iter();
        for (field, value) in fields.filter(|(field, _)| *field != "replicas") {
            spec[field] = value.clone();
        }
        let service = json!({"metadata": {"name": name}, "spec": spec});
        self.create(SERVICE, service).await;
        let deployment = json!({"metadata": {"name": name}, "spec": {
            "replicas": change["replicas"].as_i64().unwrap_or(2),
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "main"}]},
            },
        }});
        self.create(DEPLOYMENT, deployment).await;
    }

    /// Creates an ElastiService without requests.
    pub(crate) async fn declare(&self, name: &str) {
        let service = json!({
            "metadata": {"name": name, "annotations": {IDLE: "true"}},
            "spec": {
                "service": name, "cooldownPeriod": 1,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
                "triggers": [{"type": "prometheus"}],
            },
        });
        self.create(ELASTI, service).await;
    }

    /// Waits until `web` sleeps, wakes it as a request does, waits until its pods serve it, and deletes
    /// its ElastiService.
    pub(crate) async fn wake_and_delete(&self) {
        self.until(async || self.is_asleep("web").await).await;
        self.wake("web").await;
        assert_eq!(self.replicas("web").await, 1);
        let slice = names::resolver_slice("web");
        let slices = self.api(SLICE);
        let served = async || slices.get_opt(&slice).await.unwrap().is_none();
        self.until(served).await;
        let serves = async || self.status("web").await["mode"] == "serve";
        self.until(serves).await;
        self.delete("web").await;
    }

    /// Wakes a service as a request does, and makes its triggers unknown.
    pub(crate) async fn wake(&self, name: &str) {
        let busy = json!({"metadata": {"annotations": {IDLE: null}}});
        self.patch(ELASTI, name, busy).await;
        let waker = &self.operator.as_ref().unwrap().waker;
        let service = Key::new(&self.namespace, name);
        let woken = waker.wake(service).unwrap().outcome().await;
        assert!(matches!(woken, WakeOutcome::Woken { .. }), "{woken:?}");
    }

    pub(crate) async fn status(&self, name: &str) -> Value {
        let found = self.api(ELASTI).get(name).await.unwrap();
        found.data["status"].clone()
    }

    pub(crate) async fn is_asleep(&self, name: &str) -> bool {
        self.status(name).await["asleepSince"].is_string() && self.replicas(name).await == 0
    }

    /// Deletes an ElastiService, and waits until no object of it is left.
    pub(crate) async fn delete(&self, name: &str) {
        let services = self.api(ELASTI);
        let delete = DeleteParams::default();
        services.delete(name, &delete).await.unwrap();
        let gone = async || services.get_opt(name).await.unwrap().is_none();
        self.until(gone).await;
        let all = ListParams::default();
        let left = async || {
            let services = self.api(SERVICE).list(&all).await.unwrap();
            let slices = self.api(SLICE).list(&all).await.unwrap();
            let mut names = services.iter().chain(&slices).map(ResourceExt::name_any);
            !names.any(|left| left.starts_with(&format!("elasti-{name}-")))
        };
        self.until(left).await;
    }
}
