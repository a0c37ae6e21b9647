//! Pods that are bound to a node, wait for one, and make room for others.

use neap_trial::{Node, UserRequest, Workload};
use neap_world::scheduler;
use serde_json::{Value, json};

const ONE: &str = "/api/v1/nodes/one";
const ONE_STATUS: &str = "/api/v1/nodes/one/status";
const TWO: &str = "/api/v1/nodes/two";
const TWO_STATUS: &str = "/api/v1/nodes/two/status";
const FIRST: &str = "/api/v1/namespaces/default/pods/first";

pub(super) fn workload() -> Workload {
    let mut workload = Workload::new("scheduler")
        .actor("controllers", |context| {
            Ok(vec![scheduler::component(context)?])
        })
        .node(Node::default().bound());
    for request in node("one", ONE, ONE_STATUS) {
        workload = workload.given(request);
    }
    let labelled = json!({"metadata": {"labels": {"disk": "ssd"}}});
    workload
        .step("a pod comes", [pod("first", "600m", &json!({}))])
        .step("one waits for room", [pod("second", "600m", &json!({}))])
        .step("there is room", [UserRequest::Delete(FIRST)])
        .step(
            "one waits for a disk",
            [pod("third", "100m", &json!({"disk": "ssd"}))],
        )
        .step("there is a disk", [UserRequest::Patch(ONE, labelled)])
        .step("one waits for a node", [pod("fourth", "900m", &json!({}))])
        .step("a node comes", node("two", TWO, TWO_STATUS))
        .step("one that fits nowhere", [pod("fifth", "9", &json!({}))])
}

/// A node with one core, and a patch that removes the taint which a new node has.
fn node(name: &str, path: &'static str, status: &'static str) -> Vec<UserRequest> {
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
    let room = json!({"status": {"allocatable": {"cpu": "1", "pods": "10"}}});
    vec![
        UserRequest::Create(node),
        UserRequest::Patch(status, room),
        UserRequest::Patch(path, json!({"spec": {"taints": null}})),
    ]
}

fn pod(name: &str, cpu: &str, selector: &Value) -> UserRequest {
    let resources = json!({"requests": {"cpu": cpu}});
    UserRequest::Create(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "nodeSelector": selector,
            "containers": [{"name": "main", "image": "app", "resources": resources}],
        },
    }))
}
