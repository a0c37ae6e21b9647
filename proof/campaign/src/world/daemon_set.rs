//! An agent on every node with a disk: nodes come and go, it is changed and deleted.

use neap_trial::{Node, UserRequest, Workload};
use neap_world::daemon_set;
use serde_json::{Value, json};

const AGENT: &str = "/apis/apps/v1/namespaces/default/daemonsets/agent";
const ONE: &str = "/api/v1/nodes/one";
const TWO: &str = "/api/v1/nodes/two";

pub(super) fn workload() -> Workload {
    let mut workload = Workload::new("daemon-set")
        .actor("controllers", |context| {
            Ok(vec![daemon_set::component(context)?])
        })
        .node(Node::default());
    for request in node("one", ONE) {
        workload = workload.given(request);
    }
    workload
        .step("create", [UserRequest::Create(agent())])
        .step("a node comes", node("two", TWO))
        .step(
            "change the template",
            [UserRequest::Patch(AGENT, image("app:2"))],
        )
        .step(
            "a node loses its disk",
            [UserRequest::Patch(TWO, disk(None))],
        )
        .step(
            "a node gets its disk",
            [UserRequest::Patch(TWO, disk(Some("ssd")))],
        )
        .step("delete", [UserRequest::Delete(AGENT)])
}

/// A node, and a patch that removes the taint which a new node has.
fn node(name: &str, path: &'static str) -> Vec<UserRequest> {
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"disk": "ssd"}},
    });
    vec![
        UserRequest::Create(node),
        UserRequest::Patch(path, json!({"spec": {"taints": null}})),
    ]
}

pub(crate) fn agent() -> Value {
    let container = json!({"name": "main", "image": "app:1"});
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {
                "metadata": {"labels": {"app": "agent"}},
                "spec": {"nodeSelector": {"disk": "ssd"}, "containers": [container]},
            },
        },
    })
}

fn disk(disk: Option<&str>) -> Value {
    json!({"metadata": {"labels": {"disk": disk}}})
}

fn image(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}})
}
