//! The operator and both installs on a real control plane: `cargo xtask idle`.
//!
//! Nothing here runs by itself. `NEAP_IDLE_SERVER` names the kubeconfig of a server that nobody
//! misses, with the cluster's own controllers. What is not there is played: a node that takes every
//! pod for running at once, and a data plane that leads where the slices say. Time passes as it does,
//! so cooldowns are seconds. Operators look at all namespaces, so one test runs at a time.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "this is a test, and its services are processes of their own"
)]

mod account;
mod definition;
mod dual_stack;
mod installs;
mod node;
mod operator;
mod processes;
mod stage;
mod targets;

use neap_idle::api::names;
use serde_json::json;
use stage::{ELASTI, SLICE, Stage};

#[tokio::test]
async fn a_service_sleeps_wakes_and_leaves_nothing_behind() {
    let stage = Stage::open("idle-cycle", false).await;
    stage.cast(&json!({})).await;
    stage.declare("web").await;
    stage.until(async || stage.replicas("web").await == 0).await;
    let slice = names::resolver_slice("web");
    let slice = stage.api(SLICE).get(&slice).await.unwrap();
    let ports = slice.data["ports"].as_array().unwrap();
    assert_eq!(ports.len(), 2, "every port");
    stage.wakes_and_goes().await;
}

#[tokio::test]
async fn an_operator_of_one_namespace_does_the_same() {
    let stage = Stage::open("idle-scoped", true).await;
    stage.cast(&json!({})).await;
    stage.declare("web").await;
    stage.wakes_and_goes().await;
}

#[tokio::test]
async fn an_annotation_is_enough() {
    let stage = Stage::open("idle-annotated", true).await;
    stage.cast(&json!({})).await;
    let annotated = |value: &str| {
        let value = Some(value).filter(|value| !value.is_empty());
        json!({"metadata": {"annotations": {"idle.neaptide.dev/enabled": value}}})
    };
    stage.patch(stage::SERVICE, "web", annotated("true")).await;
    let services = stage.api(ELASTI);
    let there = async || services.get_opt("web").await.unwrap().is_some();
    stage.until(there).await;
    stage.patch(stage::SERVICE, "web", annotated("")).await;
    let gone = async || services.get_opt("web").await.unwrap().is_none();
    stage.until(gone).await;
}

/// As KubeElasti 0.1.30 leaves a service that sleeps.
#[tokio::test]
async fn what_kubeelasti_left_asleep_is_taken_over_in_place_and_wakes() {
    let stage = Stage::open("idle-moved", false).await;
    stage.cast(&json!({"replicas": 0})).await;
    let annotations = json!({"external-dns.alpha.kubernetes.io/hostname": "x"});
    let change = json!({"metadata": {"annotations": annotations}});
    stage.patch(stage::SERVICE, "web", change).await;
    let (slice, private) = (names::resolver_slice("web"), names::private_service("web"));
    let old = json!({
        "metadata": {"name": slice, "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4", "endpoints": [{"addresses": ["10.9.0.77"]}],
        "ports": [{"name": "http", "port": 8012, "protocol": "TCP"}],
    });
    let old = stage.create(SLICE, old).await;
    let copy = json!({
        "metadata": {"name": private, "annotations": annotations},
        "spec": {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"name": "http", "port": 80}]},
    });
    let was = stage.create(stage::SERVICE, copy).await;
    stage.declare("web").await;
    let proxy =
        json!({"status": {"mode": "proxy", "lastScaledUpTime": "2026-01-01T00:00:00.123456789Z"}});
    stage.patch_status(ELASTI, "web", proxy).await;
    let taken = async || {
        let new = stage.api(SLICE).get(&slice).await.unwrap();
        new.data["ports"][0]["port"] != 8012 && new.metadata.uid == old.metadata.uid
    };
    stage.until(taken).await;
    let now = stage.api(stage::SERVICE).get(&private).await.unwrap();
    assert_eq!(now.metadata.uid, was.metadata.uid);
    assert_eq!(now.data["spec"]["type"], "ClusterIP");
    assert!(
        now.data["spec"]
            .get("allocateLoadBalancerNodePorts")
            .is_none()
    );
    assert_eq!(now.metadata.annotations.unwrap_or_default().len(), 0);
    assert_eq!(stage.replicas("web").await, 0, "and it sleeps on");
    stage.wakes_and_goes().await;
}
