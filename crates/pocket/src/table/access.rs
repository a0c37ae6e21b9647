//! Rows of ConfigMaps, Secrets, RBAC bindings and webhook configurations.

use jiff::Timestamp;
use serde_json::Value;

use super::read::{self, list, size, text};

pub(super) fn config_map(object: &Value, now: Timestamp) -> Vec<Value> {
    let entries = size(object, "/data") + size(object, "/binaryData");
    vec![read::name(object), entries.into(), read::age(object, now)]
}

pub(super) fn secret(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        read::name(object),
        text(object, "/type").into(),
        size(object, "/data").into(),
        read::age(object, now),
    ]
}

/// Role bindings of a namespace and of the cluster.
pub(super) fn binding(object: &Value, now: Timestamp) -> Vec<Value> {
    let role = object.get("roleRef").unwrap_or(&Value::Null);
    let subjects = |kind: &str, namespaced: bool| {
        let wanted = list(object, "/subjects")
            .iter()
            .filter(|s| s["kind"] == kind);
        let shown = wanted.map(|subject| match text(subject, "/namespace") {
            namespace if namespaced => format!("{namespace}/{}", text(subject, "/name")),
            _ => text(subject, "/name").into(),
        });
        Value::from(shown.collect::<Vec<_>>().join(", "))
    };
    vec![
        read::name(object),
        format!("{}/{}", text(role, "/kind"), text(role, "/name")).into(),
        read::age(object, now),
        subjects("User", false),
        subjects("Group", false),
        subjects("ServiceAccount", true),
    ]
}

/// Webhook configurations of both kinds.
pub(super) fn webhooks(object: &Value, now: Timestamp) -> Vec<Value> {
    let count = list(object, "/webhooks").len();
    vec![read::name(object), count.into(), read::age(object, now)]
}
