//! A service that sleeps and wakes, and faults that strike the operator meanwhile: every seventh of
//! those that can, since all of them take minutes. `NEAP_IDLE_EVERY=1` takes all.

#[path = "stand_in/answers.rs"]
mod answers;

use std::{sync::Arc, time::Duration};

use answers::{Always, SAYS, Written};
use k8s_openapi::api::{core::v1::Service as KubeService, discovery::v1::EndpointSlice};
use kube::{CustomResourceExt, Resource};
use neap_idle::{
    api::ElastiService,
    service::{
        facts::{Patience, WAKE},
        ports::Range,
        run::{Settings, service},
    },
};
use neap_kit::{
    controller::Outcome, key::Key, manager::Service, site::Site, watch::Ended, wiring::Wiring,
};
use neap_trial::{Deed, Workload, proof};
use serde_json::{Value, json};

const WEB: &str = "/apis/elasti.truefoundry.com/v1alpha1/namespaces/default/elastiservices/web";
const PODS: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/pods";
fn operator(site: &Site) -> Result<Vec<Service>, Ended> {
    let settings = Settings {
        namespace: "default".to_owned(),
        resolver_namespace: "default".to_owned(),
        resolver_service: "resolver".to_owned(),
        range: Range::default(),
        patience: Patience::default(),
    };
    let operator = service(site, settings, Arc::new(Written), Arc::new(Always))?;
    Ok(vec![operator])
}

/// Plays the controller that says where the resolvers are.
fn endpoints(site: &Site) -> Result<Vec<Service>, Ended> {
    let mut wiring = Wiring::new(site, "endpoints");
    let services = wiring.kept::<KubeService>()?;
    let slices = wiring.read::<EndpointSlice>()?;
    let work = (services, slices, wiring.tools());
    Ok(vec![wiring.service(work, |work, key| async move {
        let (services, slices, tools) = &*work;
        if slices.get(&Key::new("default", "resolvers")).is_some() {
            return Ok(Outcome::Settled);
        }
        let Some(service) = services.get(&key).filter(|_| key.name() == "resolver") else {
            return Ok(Outcome::Settled);
        };
        let labels = json!({"kubernetes.io/service-name": "resolver"});
        let slice = slice("resolvers", &labels, "10.9.0.1");
        let mut slice: EndpointSlice = serde_json::from_value(slice).unwrap_or_default();
        slice.metadata.owner_references =
            Some(service.controller_owner_ref(&()).into_iter().collect());
        tools.hand.create(&slice).await?;
        Ok(Outcome::Again(Duration::from_secs(1)))
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

fn says(word: &str) -> Deed {
    Deed::Patch(WEB, json!({"metadata": {"annotations": {SAYS: word}}}))
}

/// At a time of the run that comes after sleep and before this is done.
fn wake() -> Deed {
    let annotations = json!({SAYS: "unknown", WAKE: "2026-01-01T00:10:00Z"});
    Deed::Patch(WEB, json!({"metadata": {"annotations": annotations}}))
}

fn ready(ready: bool) -> Deed {
    let endpoints = json!([{"addresses": ["10.2.0.1"], "conditions": {"ready": ready}}]);
    Deed::Patch(PODS, json!({"endpoints": endpoints}))
}

fn workload() -> Workload {
    let definition = serde_json::to_value(ElastiService::crd()).unwrap_or_default();
    let private = "elasti-web-pvt-4b5e57f6eb";
    let pods = json!({"idle.neaptide.dev/private": "true", "kubernetes.io/service-name": private});
    Workload::new("asleep")
        .without_poison("all namespaces share the ports of the resolvers")
        .actor("operator", operator)
        .actor("cluster", endpoints)
        .given(Deed::Create(definition))
        .given(Deed::Create(public("web")))
        .given(Deed::Create(public("resolver")))
        .given(Deed::Create(deployment()))
        .given(Deed::Create(slice("pods", &pods, "10.2.0.1")))
        .step("declare", [Deed::Create(web())])
        .step("sleep", [says("idle")])
        .until(Duration::from_mins(10))
        .step("pods end", [ready(false)])
        .step("wake", [wake()])
        .step("pods come", [ready(true)])
        .step("delete", [Deed::Delete(WEB)])
}

#[test]
fn a_service_that_sleeps_and_wakes_stands_faults() -> Result<(), proof::Failure> {
    let every = std::env::var("NEAP_IDLE_EVERY").ok();
    let every = every.and_then(|every| every.parse().ok()).unwrap_or(7);
    let faults = proof::every_nth_fault(&workload(), every)?;
    assert!(faults > 700 / every, "{faults} faults");
    Ok(())
}
