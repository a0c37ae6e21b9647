//! A ReplicaSet that adopts and releases a pod, is scaled both ways, changed and deleted.

use neap_trial::{Node, UserRequest, Workload};
use neap_world::replica_set;
use serde_json::{Value, json};

use super::web;

const WEB: &str = "/apis/apps/v1/namespaces/default/replicasets/web";
const STRAY: &str = "/api/v1/namespaces/default/pods/stray";

pub(super) fn workload() -> Workload {
    Workload::new("replica-set")
        .actor("controllers", |context| {
            Ok(vec![replica_set::component(context)?])
        })
        .node(Node::default())
        .given(UserRequest::Create(stray()))
        .step("create", [UserRequest::Create(web("ReplicaSet", 2))])
        .step("let one go", [UserRequest::Patch(STRAY, label("other"))])
        .step("scale up", [scale(3)])
        .step(
            "change the template",
            [UserRequest::Patch(WEB, image("app:2"))],
        )
        .step("scale down", [scale(1)])
        .step("scale up again", [scale(2)])
        .step("delete", [UserRequest::Delete(WEB)])
}

/// A pod that a user created, and that matches the selector.
fn stray() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "stray", "namespace": "default", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "app:1"}]},
    })
}

fn label(app: &str) -> Value {
    json!({"metadata": {"labels": {"app": app}}})
}

fn scale(replicas: u32) -> UserRequest {
    UserRequest::Patch(WEB, json!({"spec": {"replicas": replicas}}))
}

fn image(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}})
}
