//! Nodes that come, get ready, are cordoned, marked, fail and go.

use neap_trial::{Deed, Workload};
use neap_world::node_taints;
use serde_json::{Value, json};

const NODES: [&str; 2] = ["/api/v1/nodes/one", "/api/v1/nodes/two"];
const STATUSES: [&str; 2] = ["/api/v1/nodes/one/status", "/api/v1/nodes/two/status"];

pub(super) fn workload() -> Workload {
    let mark = json!({"spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}});
    Workload::new("node-taints")
        .without_poison("nodes are in no namespace")
        .actor("controllers", |site| Ok(vec![node_taints::service(site)?]))
        .step("nodes come", ["one", "two"].map(node))
        .step("they get ready", both(STATUSES, &ready("True")))
        .step("cordon them", both(NODES, &cordon(true)))
        .step("mark them, and forget the cordon", both(NODES, &mark))
        .step("they fail", both(STATUSES, &ready("Unknown")))
        .step("uncordon them", both(NODES, &cordon(false)))
        .step("they come back", both(STATUSES, &ready("True")))
        .step("cordon them again", both(NODES, &cordon(true)))
        .step("one goes", [Deed::Delete(NODES[0])])
        .step("and comes again", [node("one")])
        .step("it gets ready", [Deed::Patch(STATUSES[0], ready("True"))])
        .step("all go", NODES.map(Deed::Delete))
}

fn node(name: &str) -> Deed {
    Deed::Create(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}))
}

fn both(paths: [&'static str; 2], patch: &Value) -> [Deed; 2] {
    paths.map(|path| Deed::Patch(path, patch.clone()))
}

fn ready(status: &str) -> Value {
    json!({"status": {"conditions": [{"type": "Ready", "status": status}]}})
}

fn cordon(cordoned: bool) -> Value {
    json!({"spec": {"unschedulable": cordoned}})
}
