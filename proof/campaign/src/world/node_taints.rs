//! Nodes that join, become ready, are cordoned, tainted, fail and leave.

use neap_trial::{UserRequest, Workload};
use neap_world::node_taints;
use serde_json::{Value, json};

const NODES: [&str; 2] = ["/api/v1/nodes/one", "/api/v1/nodes/two"];
const STATUSES: [&str; 2] = ["/api/v1/nodes/one/status", "/api/v1/nodes/two/status"];

pub(super) fn workload() -> Workload {
    let mark = json!({"spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}});
    Workload::new("node-taints")
        .without_poison("nodes are in no namespace")
        .actor("controllers", |context| {
            Ok(vec![node_taints::component(context)?])
        })
        .step("nodes come", ["one", "two"].map(node))
        .step("they get ready", both(STATUSES, &ready("True")))
        .step("cordon them", both(NODES, &cordon(true)))
        .step("mark them, and forget the cordon", both(NODES, &mark))
        .step("they fail", both(STATUSES, &ready("Unknown")))
        .step("uncordon them", both(NODES, &cordon(false)))
        .step("they come back", both(STATUSES, &ready("True")))
        .step("cordon them again", both(NODES, &cordon(true)))
        .step("one goes", [UserRequest::Delete(NODES[0])])
        .step("and comes again", [node("one")])
        .step(
            "it gets ready",
            [UserRequest::Patch(STATUSES[0], ready("True"))],
        )
        .step("all go", NODES.map(UserRequest::Delete))
}

fn node(name: &str) -> UserRequest {
    UserRequest::Create(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}))
}

fn both(paths: [&'static str; 2], patch: &Value) -> [UserRequest; 2] {
    paths.map(|path| UserRequest::Patch(path, patch.clone()))
}

fn ready(status: &str) -> Value {
    json!({"status": {"conditions": [{"type": "Ready", "status": status}]}})
}

fn cordon(cordoned: bool) -> Value {
    json!({"spec": {"unschedulable": cordoned}})
}
