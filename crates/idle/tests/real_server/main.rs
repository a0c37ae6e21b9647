//! The operator and both installs on a real kube-apiserver: `cargo xtask idle`.
//!
//! Nothing here runs by itself. `NEAP_IDLE_SERVER` names the kubeconfig of a server that nobody
//! misses. Time passes as it does, so cooldowns are seconds. The controllers of the cluster are played
//! by hand, where a test says so.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "this is a test, and its services are processes of their own"
)]

use std::{path::Path, process::Command, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use kube::{
    Api, Client, Config, CustomResourceExt, ResourceExt,
    api::{
        ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
    },
    config::{KubeConfigOptions, Kubeconfig},
};
use neap_idle::{
    api::{ElastiService, Mode, names},
    opt_in,
    service::{
        facts::Patience,
        ports::Range,
        prove::{Prover, Search},
        run::{Settings, service},
        verdict::{Because, Verdict, Verdicts},
    },
};
use neap_kit::{
    clock::Clock, controller::Trigger, key::Key, lease::Leadership, site::Site, watch::Watches,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// Says what is written on the object.
#[derive(Debug)]
struct Written;

impl Verdicts for Written {
    fn of(&self, service: &ElastiService) -> Verdict {
        if service.annotations().contains_key("test/idle") {
            Verdict::Idle(Because::new("Idle", "nobody asks"))
        } else {
            Verdict::Busy(Because::new("Busy", "somebody asks"))
        }
    }

    fn anew<'a>(&'a self, service: &'a ElastiService) -> BoxFuture<'a, Verdict> {
        Box::pin(async { self.of(service) })
    }

    fn tell(&self, _: Trigger<Key>) {}
}

#[derive(Debug)]
struct Always;

impl Prover for Always {
    fn prove<'a>(&'a self, _: &'a Search) -> BoxFuture<'a, bool> {
        Box::pin(async { true })
    }
}

struct Stage {
    client: Client,
    namespace: String,
    clock: Clock,
    stop: CancellationToken,
}

impl Stage {
    async fn open(namespace: &str, scoped: bool) -> Self {
        let stage = Self::connected(namespace).await;
        let space =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        stage.apply("v1", "Namespace", space).await;
        let definition = serde_json::to_value(ElastiService::crd()).unwrap();
        stage
            .apply(
                "apiextensions.k8s.io/v1",
                "CustomResourceDefinition",
                definition,
            )
            .await;
        let served = async || {
            stage
                .api("elasti.truefoundry.com/v1alpha1", "ElastiService")
                .list(&kube::api::ListParams::default())
                .await
                .is_ok()
        };
        stage.until(served).await;
        stage.start(scoped);
        stage
    }

    async fn connected(namespace: &str) -> Self {
        let file = std::env::var_os("NEAP_IDLE_SERVER").unwrap();
        let file = Kubeconfig::read_from(file).unwrap();
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(file, &options)
            .await
            .unwrap();
        Self {
            client: Client::try_from(config).unwrap(),
            namespace: namespace.to_owned(),
            clock: Clock::system(),
            stop: CancellationToken::new(),
        }
    }

    fn start(&self, scoped: bool) {
        let (watches, watching) = Watches::new(self.clock);
        let only = scoped.then(|| self.namespace.clone());
        let site = Site {
            client: self.client.clone(),
            watches: watches.within(only),
            leadership: Leadership::alone(self.clock),
            clock: self.clock,
        };
        let settings = Settings {
            namespace: self.namespace.clone(),
            resolver_namespace: self.namespace.clone(),
            resolver_service: "resolver".to_owned(),
            range: Range::default(),
            patience: Patience {
                grace: Duration::from_millis(200),
                ..Patience::default()
            },
        };
        let operator = service(&site, settings, Arc::new(Written), Arc::new(Always)).unwrap();
        tokio::spawn(operator.run(self.stop.clone()));
        tokio::spawn(
            opt_in::service(&site, &self.namespace)
                .unwrap()
                .run(self.stop.clone()),
        );
        tokio::spawn(watching.run(self.stop.clone()));
    }

    fn api(&self, version: &str, kind: &str) -> Api<DynamicObject> {
        let (group, number) = version.split_once('/').unwrap_or(("", version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, number, kind));
        if ["Namespace", "CustomResourceDefinition"].contains(&kind) {
            return Api::all_with(self.client.clone(), &resource);
        }
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
    }

    async fn apply(&self, version: &str, kind: &str, object: Value) -> DynamicObject {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let (api, apply) = (self.api(version, kind), Patch::Apply(object));
        let parameters = PatchParams::apply("test").force();
        api.patch(&name, &parameters, &apply).await.unwrap()
    }

    async fn create(&self, version: &str, kind: &str, mut object: Value) -> DynamicObject {
        object["apiVersion"] = json!(version);
        object["kind"] = json!(kind);
        let object = serde_json::from_value(object).unwrap();
        let api = self.api(version, kind);
        api.create(&PostParams::default(), &object).await.unwrap()
    }

    async fn patch(&self, version: &str, kind: &str, name: &str, change: Value) {
        let patch = Patch::Merge(change);
        let parameters = PatchParams::default();
        let patched = self
            .api(version, kind)
            .patch(name, &parameters, &patch)
            .await;
        patched.unwrap();
    }

    /// Waits until it is so. What never comes fails the test by its limit.
    async fn until(&self, so: impl AsyncFn() -> bool) {
        let waiting = async {
            while !so().await {
                self.clock.sleep(Duration::from_millis(100)).await;
            }
        };
        let limit = Duration::from_mins(2);
        self.clock.within(limit, waiting).await.unwrap();
    }

    async fn web(&self) -> ElastiService {
        let services: Api<ElastiService> = Api::namespaced(self.client.clone(), &self.namespace);
        services.get("web").await.unwrap()
    }

    async fn replicas(&self) -> i64 {
        let web = self.api("apps/v1", "Deployment").get("web").await.unwrap();
        web.data["spec"]["replicas"].as_i64().unwrap()
    }

    /// A Service with resolvers, one with pods that are ready, and what runs.
    async fn cast(&self, families: Option<&str>) {
        let mut web = json!({"metadata": {"name": "web"}, "spec": {
            "selector": {"app": "web"},
            "ports": [{"name": "http", "port": 80}, {"name": "grpc", "port": 9090}],
        }});
        if let Some(policy) = families {
            web["spec"]["ipFamilyPolicy"] = json!(policy);
        }
        self.create("v1", "Service", web).await;
        let resolver = json!({"metadata": {"name": "resolver"}, "spec": {
            "selector": {"app": "resolver"}, "ports": [{"name": "http", "port": 8012}],
        }});
        let resolver = self.create("v1", "Service", resolver).await;
        let owner = json!([{
            "apiVersion": "v1", "kind": "Service", "name": "resolver", "uid": resolver.uid(),
        }]);
        let labels = json!({"kubernetes.io/service-name": "resolver"});
        self.slice("resolvers", &labels, &owner, "IPv4", "10.9.0.1")
            .await;
        self.slice("resolvers-v6", &labels, &owner, "IPv6", "fd00::9")
            .await;
        let private = names::private_service("web");
        let labels =
            json!({"idle.neaptide.dev/private": "true", "kubernetes.io/service-name": private});
        self.slice("pods", &labels, &Value::Null, "IPv4", "10.2.0.1")
            .await;
        let deployment = json!({"metadata": {"name": "web"}, "spec": {
            "replicas": 3, "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "web"}]},
            },
        }});
        self.create("apps/v1", "Deployment", deployment).await;
    }

    async fn slice(&self, name: &str, labels: &Value, owner: &Value, family: &str, address: &str) {
        let slice = json!({
            "metadata": {"name": name, "labels": labels, "ownerReferences": owner},
            "addressType": family, "ports": [],
            "endpoints": [{"addresses": [address], "conditions": {"ready": true}}],
        });
        self.create("discovery.k8s.io/v1", "EndpointSlice", slice)
            .await;
    }

    async fn declare(&self) {
        let service = json!({
            "metadata": {"name": "web", "annotations": {"test/idle": "true"}},
            "spec": {
                "service": "web", "cooldownPeriod": 1,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                "triggers": [{"type": "prometheus"}],
            },
        });
        self.create("elasti.truefoundry.com/v1alpha1", "ElastiService", service)
            .await;
    }

    async fn sleeps_wakes_and_goes(&self) {
        self.until(async || self.replicas().await == 0).await;
        let busy = json!({"metadata": {"annotations": {"test/idle": null}}});
        self.patch(
            "elasti.truefoundry.com/v1alpha1",
            "ElastiService",
            "web",
            busy,
        )
        .await;
        self.until(async || self.replicas().await == 1).await;
        let served = async || self.web().await.status.unwrap().mode == Some(Mode::Serve);
        self.until(served).await;
        let services = self.api("elasti.truefoundry.com/v1alpha1", "ElastiService");
        services
            .delete("web", &DeleteParams::default())
            .await
            .unwrap();
        let gone = async || services.get_opt("web").await.unwrap().is_none();
        self.until(gone).await;
        let private = names::private_service("web");
        let left = self.api("v1", "Service").get_opt(&private).await.unwrap();
        assert!(left.is_none_or(|left| left.metadata.deletion_timestamp.is_some()));
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

#[tokio::test]
async fn a_service_sleeps_wakes_and_leaves_nothing_behind() {
    let stage = Stage::open("idle-cycle", false).await;
    stage.cast(None).await;
    stage.declare().await;
    let asleep = async || stage.replicas().await == 0;
    stage.until(asleep).await;
    let slice = names::resolver_slice("web");
    let slice = stage
        .api("discovery.k8s.io/v1", "EndpointSlice")
        .get(&slice)
        .await
        .unwrap();
    assert_eq!(
        slice.data["ports"].as_array().unwrap().len(),
        2,
        "every port"
    );
    stage.sleeps_wakes_and_goes().await;
}

#[tokio::test]
async fn an_operator_of_one_namespace_does_the_same() {
    let stage = Stage::open("idle-scoped", true).await;
    stage.cast(None).await;
    stage.declare().await;
    stage.sleeps_wakes_and_goes().await;
}

#[tokio::test]
async fn an_annotation_is_enough() {
    let stage = Stage::open("idle-annotated", true).await;
    stage.cast(None).await;
    let enabled = json!({"metadata": {"annotations": {"idle.neaptide.dev/enabled": "true"}}});
    stage.patch("v1", "Service", "web", enabled).await;
    let services = stage.api("elasti.truefoundry.com/v1alpha1", "ElastiService");
    let there = async || services.get_opt("web").await.unwrap().is_some();
    stage.until(there).await;
    let disabled = json!({"metadata": {"annotations": {"idle.neaptide.dev/enabled": null}}});
    stage.patch("v1", "Service", "web", disabled).await;
    let gone = async || services.get_opt("web").await.unwrap().is_none();
    stage.until(gone).await;
}

/// Only on a server with a range of addresses for each family.
#[tokio::test]
async fn dual_stack_services_have_a_slice_for_each_family() {
    let stage = Stage::open("idle-dual", false).await;
    stage.cast(Some("RequireDualStack")).await;
    stage.declare().await;
    stage.until(async || stage.replicas().await == 0).await;
    let slices = stage.api("discovery.k8s.io/v1", "EndpointSlice");
    for (name, family, address) in [
        (names::resolver_slice("web"), "IPv4", "10.9.0.1"),
        (names::resolver_slice_v6("web"), "IPv6", "fd00::9"),
    ] {
        let slice = slices.get(&name).await.unwrap();
        assert_eq!(slice.data["addressType"], family);
        assert_eq!(slice.data["endpoints"][0]["addresses"], json!([address]));
    }
    let private = names::private_service("web");
    let private = stage.api("v1", "Service").get(&private).await.unwrap();
    assert_eq!(
        private.data["spec"]["ipFamilies"].as_array().unwrap().len(),
        2
    );
    stage.sleeps_wakes_and_goes().await;
}

/// Both installs, as their users apply them.
#[tokio::test]
async fn both_installs_are_taken() {
    let stage = Stage::connected("elasti").await;
    let kubeconfig = std::env::var_os("NEAP_IDLE_SERVER").unwrap();
    let kubectl = std::env::var_os("NEAP_KUBECTL").unwrap_or_else(|| "kubectl".into());
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/idle");
    let done = Command::new(kubectl)
        .env("KUBECONFIG", &kubeconfig)
        .args(["apply", "-k"])
        .arg(deploy.join("kustomize"))
        .status();
    assert!(done.unwrap().success());
    let resolver = stage
        .api("apps/v1", "Deployment")
        .get("elasti-resolver")
        .await;
    assert_eq!(resolver.unwrap().data["spec"]["replicas"], 2);
    let helm = std::env::var_os("NEAP_HELM").unwrap_or_else(|| "helm".into());
    let done = Command::new(helm)
        .env("KUBECONFIG", &kubeconfig)
        .args(["install", "rest"])
        .arg(deploy.join("chart"))
        .args([
            "--namespace",
            "rest",
            "--create-namespace",
            "--set",
            "global.installCRD=false",
        ])
        .status();
    assert!(done.unwrap().success());
}
