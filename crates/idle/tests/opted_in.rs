//! Annotations that are added, changed and removed, under faults of the controller that maintains their
//! ElastiService: every third of the possible faults. `NEAP_IDLE_EVERY=1` plays all.

use kube::CustomResourceExt;
use neap_idle::{api::ElastiService, opt_in};
use neap_kit::{context::Context, manager::Component, watch::WatchesStopped};
use neap_trial::{UserRequest, Workload, proof};
use serde_json::{Value, json};

const SHOP: &str = "/api/v1/namespaces/default/services/shop";
const BLOG: &str = "/apis/apps/v1/namespaces/default/deployments/blog";
const ENABLED: &str = "idle.neaptide.dev/enabled";
const COOLDOWN: &str = "idle.neaptide.dev/cooldown";

fn opt_in_controller(context: &Context) -> Result<Vec<Component>, WatchesStopped> {
    Ok(vec![opt_in::component(
        context,
        "default",
        &opt_in::OptInLimits::default(),
    )?])
}

fn service(name: &str) -> UserRequest {
    UserRequest::Create(json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"app": name}, "ports": [{"name": "http", "port": 80}]},
    }))
}

fn deployment(name: &str) -> UserRequest {
    UserRequest::Create(json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "app"}]},
            },
        },
    }))
}

fn annotate(path: &'static str, annotations: &Value) -> UserRequest {
    UserRequest::Patch(path, json!({"metadata": {"annotations": annotations}}))
}

fn workload() -> Workload {
    let definition = serde_json::to_value(ElastiService::crd()).unwrap_or_default();
    let on = json!({ENABLED: "true"});
    let off = json!({ENABLED: null, COOLDOWN: null});
    Workload::new("opted in")
        .without_poison("the controller watches all namespaces")
        .actor("operator", opt_in_controller)
        .given(UserRequest::Create(definition))
        .given(service("shop"))
        .given(deployment("shop"))
        .given(service("blog"))
        .given(deployment("blog"))
        .step("a Service asks", [annotate(SHOP, &on)])
        .step("and a Deployment", [annotate(BLOG, &on)])
        .step("one changes", [annotate(SHOP, &json!({COOLDOWN: "5m"}))])
        .step("one no longer asks", [annotate(BLOG, &off)])
        .step("one goes", [UserRequest::Delete(SHOP)])
}

#[test]
fn the_annotation_opt_in_survives_faults() -> Result<(), proof::Failure> {
    let every = std::env::var("NEAP_IDLE_EVERY").ok();
    let every = every.and_then(|every| every.parse().ok()).unwrap_or(3);
    let faults = proof::every_nth_fault(&workload(), every)?;
    assert!(faults > 200 / every, "{faults} faults");
    Ok(())
}
