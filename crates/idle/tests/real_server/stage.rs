//! A namespace of a real server, what runs in it, and an operator.

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
    wake::Outcome,
};
use neap_kit::{clock::Clock, key::Key};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    node,
    operator::{Home, IDLE, Operator},
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
/// In no namespace.
const WIDE: [&str; 3] = ["Namespace", "CustomResourceDefinition", "ClusterRole"];

pub(crate) struct Stage {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    pub(crate) clock: Clock,
    operator: Option<Operator>,
    /// Those that are played.
    others: JoinSet<()>,
}

/// The server as its admin sees it.
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

impl Stage {
    /// With an operator at home there, which looks at all namespaces or at this one alone.
    pub(crate) async fn open(namespace: &str, scoped: bool) -> Self {
        let mut stage = Self::connected(namespace).await;
        stage.define().await;
        let home = Home {
            namespace,
            resolver_service: "resolver",
            only: scoped.then_some(namespace),
        };
        stage.operator = Some(Operator::start(&stage.client, &home, None));
        stage
    }

    /// Without an operator.
    pub(crate) async fn connected(namespace: &str) -> Self {
        let client = Client::try_from(config().await).unwrap();
        let mut others = JoinSet::new();
        others.spawn(node::play(client.clone(), namespace.to_owned()));
        let stage = Self {
            client,
            namespace: namespace.to_owned(),
            clock: Clock::system(),
            operator: None,
            others,
        };
        let space = json!({"metadata": {"name": namespace}});
        stage.apply(NAMESPACE, space).await;
        stage
    }

    /// Pods of another namespace run, too.
    pub(crate) fn play_also(&mut self, namespace: &str) {
        let node = node::play(self.client.clone(), namespace.to_owned());
        self.others.spawn(node);
    }

    pub(crate) fn led_by(&mut self, operator: Operator) {
        self.operator = Some(operator);
    }

    /// Has the kind served.
    pub(crate) async fn define(&self) {
        let definition = serde_json::to_value(ElastiService::crd()).unwrap();
        self.apply(DEFINITION, definition).await;
        self.served().await;
    }

    pub(crate) async fn served(&self) {
        let all = ListParams::default();
        let served = async || self.api(ELASTI).list(&all).await.is_ok();
        self.until(served).await;
    }

    pub(crate) fn api(&self, kind: Kind) -> Api<DynamicObject> {
        self.api_in(&self.namespace, kind)
    }

    pub(crate) fn api_in(&self, namespace: &str, kind: Kind) -> Api<DynamicObject> {
        let resource = resource(kind);
        if WIDE.contains(&kind.1) {
            return Api::all_with(self.client.clone(), &resource);
        }
        Api::namespaced_with(self.client.clone(), namespace, &resource)
    }

    /// The same, as somebody else sees it.
    pub(crate) fn api_of(&self, client: Client, kind: Kind) -> Api<DynamicObject> {
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

    /// Nobody who looks at all namespaces comes upon what a test without an operator declared.
    pub(crate) async fn forget(&self) {
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

    /// Waits until it is so. What never comes fails the test by its limit.
    pub(crate) async fn until(&self, so: impl AsyncFn() -> bool) {
        let waiting = async {
            while !so().await {
                self.clock.sleep(Duration::from_millis(100)).await;
            }
        };
        let limit = Duration::from_mins(2);
        if self.clock.within(limit, waiting).await.is_none() {
            let all = self.api(ELASTI).list(&ListParams::default()).await;
            let all: Vec<_> = all.into_iter().flatten().map(|one| one.data).collect();
            panic!("it never was so: {}", json!(all));
        }
    }

    pub(crate) async fn replicas(&self, name: &str) -> i64 {
        let found = self.api(DEPLOYMENT).get(name).await.unwrap();
        found.data["spec"]["replicas"].as_i64().unwrap()
    }

    /// Something to put to sleep, and resolvers. `change` has `replicas` of what runs, and what else is
    /// said of its Service.
    pub(crate) async fn cast(&self, change: &Value) {
        self.workload("resolver", &json!({"ipFamilyPolicy": "PreferDualStack"}))
            .await;
        self.workload("web", change).await;
    }

    /// A Deployment, and a Service of the same name.
    pub(crate) async fn workload(&self, name: &str, change: &Value) {
        let mut spec = json!({
            "selector": {"app": name},
            "ports": [{"name": "http", "port": 80}, {"name": "grpc", "port": 9090}],
        });
        let said = change.as_object().unwrap().iter();
        for (field, value) in said.filter(|(field, _)| *field != "replicas") {
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

    /// An ElastiService that nobody asks for.
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

    /// Falls asleep, is woken as by a request, is handed back to its pods, and goes.
    pub(crate) async fn wakes_and_goes(&self) {
        self.until(async || self.is_asleep("web").await).await;
        self.wake("web").await;
        assert_eq!(self.replicas("web").await, 1);
        let slice = names::resolver_slice("web");
        let slices = self.api(SLICE);
        let served = async || slices.get_opt(&slice).await.unwrap().is_none();
        self.until(served).await;
        let serves = async || self.status("web").await["mode"] == "serve";
        self.until(serves).await;
        self.goes("web").await;
    }

    /// As a request does, and nobody can say any longer whether others come.
    pub(crate) async fn wake(&self, name: &str) {
        let busy = json!({"metadata": {"annotations": {IDLE: null}}});
        self.patch(ELASTI, name, busy).await;
        let waker = &self.operator.as_ref().unwrap().waker;
        let service = Key::new(&self.namespace, name);
        let woken = waker.wake(service).unwrap().outcome().await;
        assert!(matches!(woken, Outcome::Woken { .. }), "{woken:?}");
    }

    pub(crate) async fn status(&self, name: &str) -> Value {
        let found = self.api(ELASTI).get(name).await.unwrap();
        found.data["status"].clone()
    }

    pub(crate) async fn is_asleep(&self, name: &str) -> bool {
        self.status(name).await["asleepSince"].is_string() && self.replicas(name).await == 0
    }

    /// An ElastiService that is deleted leaves nothing.
    pub(crate) async fn goes(&self, name: &str) {
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
