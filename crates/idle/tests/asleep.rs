//! A service that sleeps and wakes under faults of the operator: every seventh of the possible faults,
//! since all of them take minutes. `NEAP_IDLE_EVERY=1` plays all.

#[path = "stand_in/stubs.rs"]
mod stubs;

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::{core::v1::Service as KubeService, discovery::v1::EndpointSlice};
use kube::{CustomResourceExt, Resource};
use neap_idle::{
    api::{ElastiService, annotations::WAKE},
    elasti_service::{
        Settings, component,
        facts::{PortRange, Timeouts},
    },
    options::Installation,
};
use neap_kit::{
    builder::ControllerBuilder, context::Context, controller::Outcome, key::Key,
    manager::Component, watch::WatchesStopped,
};
use neap_trial::{UserRequest, Workload, proof};
use serde_json::{Value, json};
use stubs::{AlwaysReachable, AnnotationTriggers, VERDICT_ANNOTATION};

const WEB: &str = "/apis/elasti.truefoundry.com/v1alpha1/namespaces/default/elastiservices/web";
const PODS: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/pods";
fn operator(context: &Context) -> Result<Vec<Component>, WatchesStopped> {
    let settings = Settings {
        installation: Installation {
            operator_namespace: "default".to_owned(),
            resolver_namespace: "default".to_owned(),
            resolver_service: "resolver".to_owned(),
            ..Installation::standard()
        },
        resolver_ports: PortRange::default(),
        timeouts: Timeouts::default(),
    };
    let operator = component(
        context,
        settings,
        Arc::new(AnnotationTriggers),
        Arc::new(AlwaysReachable),
    )?;
    Ok(vec![operator])
}

/// Simulates the EndpointSlice controller for the Service of the resolvers.
fn endpoints(context: &Context) -> Result<Vec<Component>, WatchesStopped> {
    let mut builder = ControllerBuilder::new(context, "endpoints");
    let services = builder.primary::<KubeService>()?;
    let slices = builder.cache::<EndpointSlice>()?;
    let work = (services, slices, builder.tools());
    Ok(vec![builder.build(work, |work, key| async move {
        let (services, slices, tools) = &*work;
        if slices.get(&Key::new("default", "resolvers")).is_some() {
            return Ok::<_, neap_kit::apply::Error>(Outcome::Done);
        }
        let Some(service) = services.get(&key).filter(|_| key.name() == "resolver") else {
            return Ok(Outcome::Done);
        };
        let labels = json!({"kubernetes.io/service-name": "resolver"});
        let slice = slice("resolvers", &labels, "10.9.0.1");
        let mut slice: EndpointSlice = serde_json::from_value(slice).unwrap_or_default();
        slice.metadata.owner_references =
            Some(service.controller_owner_ref(&()).into_iter().collect());
        tools.writer.create(&slice).await?;
        Ok(Outcome::RequeueAfter(Duration::from_secs(1)))
    })])
}

fn public(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"app": name}, "ports": [{"name": "http", "port": 80}]},
    })
}

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": 3, "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": "app"}]},
            },
        },
    })
}

fn slice(name: &str, labels: &Value, address: &str) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "addressType": "IPv4", "ports": [],
        "endpoints": [{"addresses": [address], "conditions": {"ready": true}}],
    })
}

fn web() -> Value {
    json!({
        "apiVersion": "elasti.truefoundry.com/v1alpha1", "kind": "ElastiService",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "service": "web", "cooldownPeriod": 60,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "triggers": [{"type": "prometheus"}],
        },
    })
}

fn says(word: &str) -> UserRequest {
    UserRequest::Patch(
        WEB,
        json!({"metadata": {"annotations": {VERDICT_ANNOTATION: word}}}),
    )
}

/// A wake annotation with a time after the service fell asleep and before this step.
fn wake() -> UserRequest {
    let annotations = json!({VERDICT_ANNOTATION: "unknown", WAKE: "2026-01-01T00:10:00Z"});
    UserRequest::Patch(WEB, json!({"metadata": {"annotations": annotations}}))
}

fn ready(ready: bool) -> UserRequest {
    let endpoints = json!([{"addresses": ["10.2.0.1"], "conditions": {"ready": ready}}]);
    UserRequest::Patch(PODS, json!({"endpoints": endpoints}))
}

fn workload() -> Workload {
    let definition = serde_json::to_value(ElastiService::crd()).unwrap_or_default();
    let private = "elasti-web-pvt-4b5e57f6eb";
    let pods = json!({"idle.neaptide.dev/private": "true", "kubernetes.io/service-name": private});
    Workload::new("asleep")
        .without_poison("all namespaces share the ports of the resolvers")
        .differs(
            "ElastiService",
            "/status/savedReplicaSeconds",
            "faults change how long a service sleeps",
        )
        .actor("operator", operator)
        .actor("cluster", endpoints)
        .given(UserRequest::Create(definition))
        .given(UserRequest::Create(public("web")))
        .given(UserRequest::Create(public("resolver")))
        .given(UserRequest::Create(deployment()))
        .given(UserRequest::Create(slice("pods", &pods, "10.2.0.1")))
        .step("declare", [UserRequest::Create(web())])
        .step("sleep", [says("idle")])
        .until(Duration::from_mins(10))
        .step("pods end", [ready(false)])
        .step("wake", [wake()])
        .step("pods come", [ready(true)])
        .step("delete", [UserRequest::Delete(WEB)])
}

#[test]
fn a_service_that_sleeps_and_wakes_survives_faults() -> Result<(), proof::Failure> {
    let every = std::env::var("NEAP_IDLE_EVERY").ok();
    let every = every.and_then(|every| every.parse().ok()).unwrap_or(7);
    let faults = proof::every_nth_fault(&workload(), every)?;
    assert!(faults > 700 / every, "{faults} faults");
    Ok(())
}
