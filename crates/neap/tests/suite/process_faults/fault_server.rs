//! A server in a separate process, and the requests of its users.

use std::{path::Path, sync::Arc, time::Duration};

use http::Request;
use k8s_openapi::api::{apps::v1::ReplicaSet, coordination::v1::Lease, core::v1::Pod};
use kube::{Api, Client, api::ListParams};
use neap_kit::clock::Clock;
use neap_load::server::Server;
use serde_json::{Value, json};

use super::fault_proxy::FaultProxy;
use crate::kube_client;

/// Bounds every wait; generous for a busy machine.
const WAIT_TIMEOUT: Duration = Duration::from_mins(1);
/// Pause between two polls.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Time in which a controller would make a wrong write, which takes milliseconds.
const SETTLE_TIME: Duration = Duration::from_secs(1);

/// The plans of the campaign.
const PLANS: &str = concat!(
    include_str!("../../../../../proof/campaign/corpus.plan"),
    include_str!("../../../../../proof/campaign/twins.plan")
);

/// Asserts that the plan exists.
pub(crate) fn matches_plan(plan: &str) {
    let named = format!("plan {plan}\n");
    assert!(PLANS.contains(&named), "there is no plan {plan}");
}

/// A server, and a client for it.
pub(crate) struct FaultServer {
    client: Client,
    clock: Clock,
    _server: Server,
}

/// Runs a test with a server of its own.
pub(crate) fn run<F: Future<Output = ()>>(test: impl FnOnce(Arc<FaultServer>) -> F) {
    let server = Server::start(Path::new(env!("CARGO_BIN_EXE_neap")), None).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let mut config = kube_client::config(server.kubeconfig()).await;
        // The proxy forwards each request once.
        config.default_retry = false;
        let fault_server = FaultServer {
            client: Client::try_from(config).unwrap(),
            clock: Clock::system(),
            _server: server,
        };
        let clock = fault_server.clock;
        let finished = clock
            .within(2 * WAIT_TIMEOUT, test(Arc::new(fault_server)))
            .await;
        assert!(finished.is_some(), "the test timed out");
    });
}

/// Waits until the condition holds.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, condition: impl Fn() -> F) {
    let clock = Clock::system();
    let waited = async {
        while !condition().await {
            clock.sleep(POLL_INTERVAL).await;
        }
    };
    let done = clock.within(WAIT_TIMEOUT, waited).await;
    assert!(done.is_some(), "never reached: {what}");
}

impl FaultServer {
    pub(crate) async fn proxy(&self) -> FaultProxy {
        FaultProxy::open(self.client.clone()).await
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

    /// The number of pods.
    pub(crate) async fn pods(&self, namespace: &str) -> usize {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let found = pods.list_metadata(&ListParams::default()).await.unwrap();
        found.items.len()
    }

    pub(crate) async fn pods_are(&self, namespace: &str, count: usize) {
        let what = format!("{count} pods");
        until(&what, || async { self.pods(namespace).await == count }).await;
    }

    /// Waits until the ReplicaSet has its pods and its status says so.
    pub(crate) async fn reconciled(&self, namespace: &str, count: i32) {
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

    /// Waits long enough for a wrong write of a controller to happen.
    pub(crate) async fn settle(&self) {
        self.clock.sleep(SETTLE_TIME).await;
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
