//! A set of pods that takes one in and lets it go, is scaled both ways, changed and deleted.

use neap_trial::{Deed, Node, Workload};
use neap_world::replica_set;
use serde_json::{Value, json};

use super::web;

const WEB: &str = "/apis/apps/v1/namespaces/default/replicasets/web";
const STRAY: &str = "/api/v1/namespaces/default/pods/stray";

pub(super) fn workload() -> Workload {
    Workload::new("replica-set")
        .actor("controllers", |site| Ok(vec![replica_set::service(site)?]))
        .node(Node::default())
        .given(Deed::Create(stray()))
        .step("create", [Deed::Create(web("ReplicaSet", 2))])
        .step("let one go", [Deed::Patch(STRAY, label("other"))])
        .step("scale up", [scale(3)])
        .step("change the template", [Deed::Patch(WEB, image("app:2"))])
        .step("scale down", [scale(1)])
        .step("scale up again", [scale(2)])
        .step("delete", [Deed::Delete(WEB)])
}

/// Somebody made it by hand, and it is as the set wants its pods.
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

fn scale(replicas: u32) -> Deed {
    Deed::Patch(WEB, json!({"spec": {"replicas": replicas}}))
}

fn image(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}})
}
