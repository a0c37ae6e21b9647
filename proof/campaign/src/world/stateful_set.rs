//! A StatefulSet with volumes: rolled out in order, scaled, changed, deleted.

use neap_trial::{Node, UserRequest, Workload};
use neap_world::stateful_set;
use serde_json::{Value, json};

const STORE: &str = "/apis/apps/v1/namespaces/default/statefulsets/store";

pub(super) fn workload() -> Workload {
    Workload::new("stateful-set")
        .actor("controllers", |context| {
            Ok(vec![stateful_set::component(context)?])
        })
        .node(Node::default())
        .step("create", [UserRequest::Create(store())])
        .step("scale up", [scale(2)])
        .step(
            "change the template",
            [UserRequest::Patch(STORE, image("app:2"))],
        )
        .step("scale down", [scale(1)])
        .step("delete", [UserRequest::Delete(STORE)])
}

pub(crate) fn store() -> Value {
    let mounts = json!([{"name": "data", "mountPath": "/data"}]);
    let container = json!({"name": "main", "image": "app:1", "volumeMounts": mounts});
    let claim = json!({
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
    });
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": "store", "namespace": "default"},
        "spec": {
            "replicas": 1, "serviceName": "store",
            "persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete", "whenDeleted": "Delete"},
            "selector": {"matchLabels": {"app": "store"}},
            "template": {"metadata": {"labels": {"app": "store"}}, "spec": {"containers": [container]}},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
        },
    })
}

fn scale(replicas: u32) -> UserRequest {
    UserRequest::Patch(STORE, json!({"spec": {"replicas": replicas}}))
}

fn image(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}})
}
