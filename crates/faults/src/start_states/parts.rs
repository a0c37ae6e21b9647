//! What half-done states are made of.

use neap_trial::generate::Chance;
use serde_json::{Value, json};

/// Where a namespaced object of this kind is.
pub(super) fn path(group: &str, kinds: &str, name: &str) -> String {
    let root = if group == "v1" { "api" } else { "apis" };
    format!("/{root}/{group}/namespaces/default/{kinds}/{name}")
}

/// As a child speaks of the object at `path`, which controls it.
pub(super) fn owner(version: &str, kind: &str, name: &str, path: &str) -> Value {
    json!({
        "apiVersion": version, "kind": kind, "name": name, "uid": format!("@{path}"),
        "controller": true, "blockOwnerDeletion": true,
    })
}

/// Somebody who has nothing to do with any of it.
pub(super) fn stranger() -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "foreign", "namespace": "default"},
    })
}

/// As its children speak of it.
pub(super) fn of_stranger() -> Value {
    owner(
        "v1",
        "ConfigMap",
        "foreign",
        &path("v1", "configmaps", "foreign"),
    )
}

/// A pod with the label `app`, of that image.
pub(super) fn pod(name: &str, app: &str, image: &str, owner: Option<Value>) -> Value {
    let owners: Vec<_> = owner.into_iter().collect();
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "default", "labels": {"app": app}, "ownerReferences": owners,
        },
        "spec": {"containers": [{"name": "main", "image": image}]},
    })
}

/// On its way out, where nobody is quick.
pub(super) fn going(mut pod: Value) -> Value {
    pod["metadata"]["deletionTimestamp"] = "now".into();
    pod["spec"]["nodeName"] = "somewhere".into();
    pod
}

pub(super) fn failed(mut pod: Value) -> Value {
    pod["status"] = json!({"phase": "Failed"});
    pod
}

/// Whether `share` of a hundred.
pub(super) fn happens(chance: &mut Chance, share: usize) -> bool {
    chance.below(100) < share
}

/// Numbers that may not be so, none greater than the one before.
pub(super) fn stale(chance: &mut Chance, fields: &[&str]) -> Value {
    let mut most = 4;
    let mut status = json!({});
    for field in fields {
        most = chance.below(most + 1);
        status[*field] = most.into();
    }
    status
}

/// What is said of an object that is there.
pub(super) fn said(object: &Value, status: &Value) -> Value {
    json!({
        "apiVersion": object["apiVersion"], "kind": object["kind"],
        "metadata": object["metadata"], "status": status,
    })
}

/// A pod as a set counts it: of which image, and whether it is ready.
pub(super) fn counted(pod: &Value) -> Value {
    json!({
        "image": pod["spec"]["containers"][0]["image"],
        "ready": pod["status"]["conditions"][0]["status"],
    })
}

pub(super) fn is_failed(pod: &Value) -> bool {
    pod["status"]["phase"] == "Failed"
}

/// Whether that place is one of this kind.
pub(super) fn is(place: &str, kind: &str) -> bool {
    place.starts_with(&format!("{kind}/"))
}
