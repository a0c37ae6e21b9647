//! Outdated endpoints of a Service: of deleted pods, duplicated, or created by a user.

use neap_trial::{
    Workload,
    generate::SeededRng,
    start_states::{StartState, StartStates},
};
use serde_json::{Value, json};

use super::parts::{happens, owner, path, pod};
use crate::world::service::web;

pub(super) fn start_states(workload: Workload) -> StartStates {
    StartStates::new(workload, make)
}

fn make(rng: &mut SeededRng) -> StartState {
    let mut declared = vec![web()];
    for number in 0..rng.below(4) {
        let address = format!("10.1.0.{number}");
        let ready = if happens(rng, 60) { "True" } else { "False" };
        let app = if happens(rng, 80) { "web" } else { "other" };
        let mut pod = pod(&format!("pod-{number}"), app, "app", None);
        pod["status"] = json!({
            "phase": "Running", "podIP": address, "podIPs": [{"ip": address}],
            "conditions": [{"type": "Ready", "status": ready}],
        });
        declared.push(pod);
    }
    let mut leftovers = Vec::new();
    for number in 0..rng.below(4) {
        leftovers.push(slice(rng, number));
    }
    if happens(rng, 50) {
        leftovers.push(endpoints(rng));
    }
    StartState {
        declared,
        leftovers,
    }
}

fn slice(rng: &mut SeededRng, number: usize) -> Value {
    let by_hand = happens(rng, 25);
    let (name, writer) = if by_hand {
        (format!("foreign-{number}"), "user")
    } else {
        (format!("web-{number}"), "endpointslice-controller.k8s.io")
    };
    let endpoints: Vec<_> = (0..rng.below(3))
        .map(|_| {
            let address = format!("10.1.0.{}", rng.below(6));
            json!({"addresses": [address], "conditions": {"ready": happens(rng, 50)}})
        })
        .collect();
    let mut slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {
            "name": name, "namespace": "default",
            "labels": {
                "kubernetes.io/service-name": "web",
                "endpointslice.kubernetes.io/managed-by": writer,
            },
        },
        "addressType": "IPv4", "endpoints": endpoints,
        "ports": [{"name": "http", "port": 8000 + rng.below(90), "protocol": "TCP"}],
    });
    if !by_hand {
        let mine = owner("v1", "Service", "web", &path("v1", "services", "web"));
        slice["metadata"]["ownerReferences"] = json!([mine]);
        slice["metadata"]["generateName"] = "web-".into();
    }
    slice
}

fn endpoints(rng: &mut SeededRng) -> Value {
    let address = format!("10.1.0.{}", rng.below(6));
    json!({
        "apiVersion": "v1", "kind": "Endpoints",
        "metadata": {"name": "web", "namespace": "default"},
        "subsets": [{"addresses": [{"ip": address}], "ports": [{"name": "http", "port": 8080}]}],
    })
}
