//! The operator and both installs on a real control plane: `cargo xtask idle`.
//!
//! These tests need `NEAP_IDLE_SERVER`, the kubeconfig of a disposable server with the cluster's own
//! controllers. The rest is simulated: a node on which every pod runs at once, and a data plane that
//! follows the EndpointSlices. The clock is real, so cooldowns are seconds. Operators watch all namespaces,
//! so one test runs at a time.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "this is a test, and its components are processes of their own"
)]

mod account;
mod definition;
mod dual_stack;
mod installs;
mod node;
mod operator;
mod processes;
mod targets;
mod test_namespace;

use neap_idle::api::names;
use serde_json::json;
use test_namespace::{ELASTI, SLICE, TestNamespace};

#[tokio::test]
async fn a_service_sleeps_and_wakes_and_its_deletion_leaves_no_objects() {
    let cluster = TestNamespace::open("idle-cycle", false).await;
    cluster.create_workloads(&json!({})).await;
    cluster.declare("web").await;
    cluster
        .until(async || cluster.replicas("web").await == 0)
        .await;
    let slice = names::resolver_slice("web");
    let slice = cluster.api(SLICE).get(&slice).await.unwrap();
    let ports = slice.data["ports"].as_array().unwrap();
    assert_eq!(ports.len(), 2, "every port");
    cluster.wake_and_delete().await;
}

#[tokio::test]
async fn an_operator_of_one_namespace_does_the_same() {
    let cluster = TestNamespace::open("idle-scoped", true).await;
    cluster.create_workloads(&json!({})).await;
    cluster.declare("web").await;
    cluster.wake_and_delete().await;
}

#[tokio::test]
async fn an_annotation_is_enough() {
    let cluster = TestNamespace::open("idle-annotated", true).await;
    cluster.create_workloads(&json!({})).await;
    let annotated = |value: &str| {
        let value = Some(value).filter(|value| !value.is_empty());
        json!({"metadata": {"annotations": {"idle.neaptide.dev/enabled": value}}})
    };
    cluster
        .patch(test_namespace::SERVICE, "web", annotated("true"))
        .await;
    let services = cluster.api(ELASTI);
    let there = async || services.get_opt("web").await.unwrap().is_some();
    cluster.until(there).await;
    cluster
        .patch(test_namespace::SERVICE, "web", annotated(""))
        .await;
    let gone = async || services.get_opt("web").await.unwrap().is_none();
    cluster.until(gone).await;
}

/// A sleeping service as KubeElasti 0.1.30 leaves it.
#[tokio::test]
async fn a_sleeping_service_of_kubeelasti_is_adopted_in_place_and_wakes() {
    let cluster = TestNamespace::open("idle-moved", false).await;
    cluster.create_workloads(&json!({"replicas": 0})).await;
    let annotations = json!({"external-dns.alpha.kubernetes.io/hostname": "x"});
    let change = json!({"metadata": {"annotations": annotations}});
    cluster.patch(test_namespace::SERVICE, "web", change).await;
    let (slice, private) = (names::resolver_slice("web"), names::private_service("web"));
    let old = json!({
        "metadata": {"name": slice, "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4", "endpoints": [{"addresses": ["10.9.0.77"]}],
        "ports": [{"name": "http", "port": 8012, "protocol": "TCP"}],
    });
    let old = cluster.create(SLICE, old).await;
    let copy = json!({
        "metadata": {"name": private, "annotations": annotations},
        "spec": {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"name": "http", "port": 80}]},
    });
    let was = cluster.create(test_namespace::SERVICE, copy).await;
    cluster.declare("web").await;
    let proxy =
        json!({"status": {"mode": "proxy", "lastScaledUpTime": "2026-01-01T00:00:00.123456789Z"}});
    cluster.patch_status(ELASTI, "web", proxy).await;
    let taken = async || {
        let new = cluster.api(SLICE).get(&slice).await.unwrap();
        new.data["ports"][0]["port"] != 8012 && new.metadata.uid == old.metadata.uid
    };
    cluster.until(taken).await;
    let now = cluster
        .api(test_namespace::SERVICE)
        .get(&private)
        .await
        .unwrap();
    assert_eq!(now.metadata.uid, was.metadata.uid);
    assert_eq!(now.data["spec"]["type"], "ClusterIP");
    assert!(
        now.data["spec"]
            .get("allocateLoadBalancerNodePorts")
            .is_none()
    );
    assert_eq!(now.metadata.annotations.unwrap_or_default().len(), 0);
    assert_eq!(cluster.replicas("web").await, 0, "it is still asleep");
    cluster.wake_and_delete().await;
}
