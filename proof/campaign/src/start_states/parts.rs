//! Building blocks of start states.

use neap_trial::generate::SeededRng;
use serde_json::{Value, json};

/// The path of an object in the default namespace.
pub(super) fn path(group: &str, kinds: &str, name: &str) -> String {
    let root = if group == "v1" { "api" } else { "apis" };
    format!("/{root}/{group}/namespaces/default/{kinds}/{name}")
}

/// A controller reference to the object at `path`.
pub(super) fn owner(version: &str, kind: &str, name: &str, path: &str) -> Value {
    json!({
        "apiVersion": version, "kind": kind, "name": name, "uid": format!("@{path}"),
        "controller": true, "blockOwnerDeletion": true,
    })
}

/// An owner that no controller under test manages.
pub(super) fn foreign_owner() -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "foreign", "namespace": "default"},
    })
}

/// A controller reference to the [`foreign_owner`].
pub(super) fn foreign_owner_ref() -> Value {
    owner(
        "v1",
        "ConfigMap",
        "foreign",
        &path("v1", "configmaps", "foreign"),
    )
}

/// A pod with the label `app` and this image.
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

/// A pod that is being deleted, on a node that does not confirm it.
pub(super) fn deleting(mut pod: Value) -> Value {
    pod["metadata"]["deletionTimestamp"] = "now".into();
    pod["spec"]["nodeName"] = "somewhere".into();
    pod
}

pub(super) fn failed(mut pod: Value) -> Value {
    pod["status"] = json!({"phase": "Failed"});
    pod
}

/// True with a probability of `share` percent.
pub(super) fn happens(rng: &mut SeededRng, share: usize) -> bool {
    rng.below(100) < share
}

/// Outdated counts, none greater than the one before.
pub(super) fn stale(rng: &mut SeededRng, fields: &[&str]) -> Value {
    let mut most = 4;
    let mut status = json!({});
    for field in fields {
        most = rng.below(most + 1);
        status[*field] = most.into();
    }
    status
}

/// A status for an existing object.
pub(super) fn with_status(object: &Value, status: &Value) -> Value {
    json!({
        "apiVersion": object["apiVersion"], "kind": object["kind"],
        "metadata": object["metadata"], "status": status,
    })
}

/// The properties of a pod that count: its image, and whether it is ready.
pub(super) fn compared_pod(pod: &Value) -> Value {
    json!({
        "image": pod["spec"]["containers"][0]["image"],
        "ready": pod["status"]["conditions"][0]["status"],
    })
}

pub(super) fn is_failed(pod: &Value) -> bool {
    pod["status"]["phase"] == "Failed"
}

/// Whether the comparison key is one of this kind.
pub(super) fn is_kind(place: &str, kind: &str) -> bool {
    place.starts_with(&format!("{kind}/"))
}
