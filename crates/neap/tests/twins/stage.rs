//! A server in a process of its own, and what users do there and see.

use std::{path::Path, sync::Arc, time::Duration};

use http::Request;
use k8s_openapi::api::{apps::v1::ReplicaSet, coordination::v1::Lease, core::v1::Pod};
use kube::{
    Api, Client, Config,
    api::ListParams,
    config::{KubeConfigOptions, Kubeconfig},
};
use neap_kit::clock::Clock;
use neap_load::server::Server;
use serde_json::{Value, json};

use crate::relay::Relay;

/// Long enough for a machine with much else to do.
const PATIENCE: Duration = Duration::from_mins(1);
/// How often one looks.
const PACE: Duration = Duration::from_millis(20);
/// A controller that is going to do what it should not has done it by then: it takes milliseconds.
const CHANGE_OF_MIND: Duration = Duration::from_secs(1);

/// The plans that the trial plays.
const PLANS: &str = concat!(
    include_str!("../../../faults/corpus.plan"),
    include_str!("../../../faults/twins.plan")
);

/// The twin is of a plan that there is.
pub(crate) fn twin_of(plan: &str) {
    let named = format!("plan {plan}\n");
    assert!(PLANS.contains(&named), "there is no plan {plan}");
}

pub(crate) struct Stage {
    client: Client,
    clock: Clock,
    _server: Server,
}

/// Plays with a server of its own.
pub(crate) fn run<F: Future<Output = ()>>(play: impl FnOnce(Arc<Stage>) -> F) {
    let server = Server::start(Path::new(env!("CARGO_BIN_EXE_neap")), None).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let file = Kubeconfig::read_from(server.kubeconfig()).unwrap();
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(file, &options).await;
        let mut config = config.unwrap();
        // The relay passes on what it is sent, once.
        config.default_retry = false;
        let stage = Stage {
            client: Client::try_from(config).unwrap(),
            clock: Clock::system(),
            _server: server,
        };
        let clock = stage.clock;
        let played = clock.within(2 * PATIENCE, play(Arc::new(stage))).await;
        assert!(played.is_some(), "something that was waited for never came");
    });
}

/// Resolves once something is so.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, is_so: impl Fn() -> F) {
    let clock = Clock::system();
    let waited = async {
        while !is_so().await {
            clock.sleep(PACE).await;
        }
    };
    let done = clock.within(PATIENCE, waited).await;
    assert!(done.is_some(), "it never came to that: {what}");
}

impl Stage {
    pub(crate) async fn relay(&self) -> Relay {
        Relay::open(self.client.clone()).await
    }

    pub(crate) async fn post(&self, path: &str, object: &Value) {
        self.send("POST", path, object).await;
    }

    async fn send(&self, method: &str, path: &str, body: &Value) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json")
            .body(body.to_string().into_bytes())
            .unwrap();
        let _: Value = self.client.request(request).await.unwrap();
    }

    pub(crate) async fn create_set(&self, namespace: &str, replicas: u32) {
        let path = format!("/apis/apps/v1/namespaces/{namespace}/replicasets");
        self.post(&path, &web("ReplicaSet", replicas)).await;
    }

    pub(crate) async fn delete_set(&self, namespace: &str) {
        let path = format!("/apis/apps/v1/namespaces/{namespace}/replicasets/web");
        self.send("DELETE", &path, &background()).await;
    }

    pub(crate) async fn create_deployment(&self, replicas: u32) {
        let path = "/apis/apps/v1/namespaces/default/deployments";
        self.post(path, &web("Deployment", replicas)).await;
    }

    pub(crate) async fn delete_deployment(&self) {
        let path = "/apis/apps/v1/namespaces/default/deployments/web";
        self.send("DELETE", path, &background()).await;
    }

    /// How many pods there are.
    pub(crate) async fn pods(&self, namespace: &str) -> usize {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let found = pods.list_metadata(&ListParams::default()).await.unwrap();
        found.items.len()
    }

    pub(crate) async fn pods_are(&self, namespace: &str, count: usize) {
        let what = format!("{count} pods");
        until(&what, || async { self.pods(namespace).await == count }).await;
    }

    /// Resolves once the set has its pods and says so.
    pub(crate) async fn settled(&self, namespace: &str, count: i32) {
        let sets: Api<ReplicaSet> = Api::namespaced(self.client.clone(), namespace);
        let what = format!("a set of {count} pods");
        until(&what, || async {
            let set = sets.get_opt("web").await.unwrap();
            let status = set.and_then(|set| set.status);
            status.is_some_and(|status| status.replicas == count)
        })
        .await;
        assert_eq!(self.pods(namespace).await, usize::try_from(count).unwrap());
    }

    pub(crate) async fn led_by(&self, who: &str) {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), "kube-system");
        until(&format!("{who} leads"), || async {
            let lease = leases.get_opt("twins").await.unwrap();
            let spec = lease.and_then(|lease| lease.spec);
            spec.and_then(|spec| spec.holder_identity).as_deref() == Some(who)
        })
        .await;
    }

    /// Time in which a controller would do what it should not.
    pub(crate) async fn change_of_mind(&self) {
        self.clock.sleep(CHANGE_OF_MIND).await;
    }
}

fn background() -> Value {
    json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"})
}

fn web(kind: &str, replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": "app:1"}]},
            },
        },
    })
}
