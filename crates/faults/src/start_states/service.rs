//! Endpoints of a Service that say what was so once: of pods that are gone, twice, or by hand.

use neap_trial::{
    Workload,
    generate::Chance,
    starts::{Start, Starts},
};
use serde_json::{Value, json};

use super::parts::{happens, owner, path, pod};
use crate::world::service::web;

pub(super) fn starts(workload: Workload) -> Starts {
    Starts::new(workload, make)
}

fn make(chance: &mut Chance) -> Start {
    let mut declared = vec![web()];
    for number in 0..chance.below(4) {
        let address = format!("10.1.0.{number}");
        let ready = if happens(chance, 60) { "True" } else { "False" };
        let app = if happens(chance, 80) { "web" } else { "other" };
        let mut pod = pod(&format!("pod-{number}"), app, "app", None);
        pod["status"] = json!({
            "phase": "Running", "podIP": address, "podIPs": [{"ip": address}],
            "conditions": [{"type": "Ready", "status": ready}],
        });
        declared.push(pod);
    }
    let mut remains = Vec::new();
    for number in 0..chance.below(4) {
        remains.push(slice(chance, number));
    }
    if happens(chance, 50) {
        remains.push(endpoints(chance));
    }
    Start { declared, remains }
}

fn slice(chance: &mut Chance, number: usize) -> Value {
    let by_hand = happens(chance, 25);
    let (name, writer) = if by_hand {
        (format!("foreign-{number}"), "somebody")
    } else {
        (format!("web-{number}"), "endpointslice-controller.k8s.io")
    };
    let endpoints: Vec<_> = (0..chance.below(3))
        .map(|_| {
            let address = format!("10.1.0.{}", chance.below(6));
            json!({"addresses": [address], "conditions": {"ready": happens(chance, 50)}})
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
        "ports": [{"name": "http", "port": 8000 + chance.below(90), "protocol": "TCP"}],
    });
    if !by_hand {
        let mine = owner("v1", "Service", "web", &path("v1", "services", "web"));
        slice["metadata"]["ownerReferences"] = json!([mine]);
        slice["metadata"]["generateName"] = "web-".into();
    }
    slice
}

fn endpoints(chance: &mut Chance) -> Value {
    let address = format!("10.1.0.{}", chance.below(6));
    json!({
        "apiVersion": "v1", "kind": "Endpoints",
        "metadata": {"name": "web", "namespace": "default"},
        "subsets": [{"addresses": [{"ip": address}], "ports": [{"name": "http", "port": 8080}]}],
    })
}
