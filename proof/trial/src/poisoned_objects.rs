//! Poisoned objects, which no write succeeds for, next to healthy ones.
//!
//! Whatever users create or change in a namespace, they also create or change in the namespace
//! `poison`. A rule with `ns=poison` makes every write there fail, so each reconcile of such an
//! object fails, again and again. O11 requires that no other object is affected.

use neap_pocket::store::Object;
use serde_json::{Value, json};

use crate::{plan::Plan, run::RunRecord};

pub const NAMESPACE: &str = "poison";

/// Whether the plan has a rule for poisoned objects; only then do they exist.
pub(crate) fn is_in(plan: &Plan) -> bool {
    let spaces = plan.rules.iter().map(|rule| &rule.filter.namespace);
    spaces.flatten().any(|space| space == NAMESPACE)
}

pub(crate) fn namespace() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
}

/// Path and body of the same request for the poisoned twin of the object; none for a cluster-scoped
/// object.
pub(crate) fn twin(path: &str, body: &Value) -> Option<(String, Value)> {
    let (root, rest) = path.split_once("/namespaces/")?;
    let (_, rest) = rest.split_once('/')?;
    let mut body = body.clone();
    if body["metadata"]["namespace"].is_string() {
        body["metadata"]["namespace"] = NAMESPACE.into();
    }
    ask_for_nothing(&mut body);
    Some((format!("{root}/namespaces/{NAMESPACE}/{rest}"), body))
}

/// Twins request no resources: competition for room on a node is not a fault.
fn ask_for_nothing(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if fields.contains_key("image") {
                fields.remove("resources");
            }
            fields
                .iter_mut()
                .for_each(|(_, field)| ask_for_nothing(field));
        }
        Value::Array(items) => items.iter_mut().for_each(ask_for_nothing),
        _ => {}
    }
}

/// Removes the poisoned objects from a record, so that the oracles judge all others.
pub(crate) fn strip(record: &mut RunRecord) {
    for state in &mut record.states {
        state.retain(|(resource, path, object)| !is_theirs(resource, path, object));
    }
    record
        .history
        .retain(|event| !is_theirs(&event.resource, &event.path, &event.object));
    record
        .entries
        .retain(|entry| entry.call.namespace != NAMESPACE);
    record.poisoned = true;
}

/// Objects in the namespace, and the volumes of its claims, which are cluster-scoped.
fn is_theirs(resource: &str, path: &str, object: &Object) -> bool {
    if resource == "/persistentvolumes" {
        return object.value()["spec"]["claimRef"]["namespace"] == NAMESPACE;
    }
    path.split_once('/')
        .is_some_and(|(space, _)| space == NAMESPACE)
        || (resource == "/namespaces" && path == NAMESPACE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_in_a_namespace_has_a_twin() {
        let map = json!({"metadata": {"name": "a", "namespace": "default"}});
        let (path, body) = twin("/api/v1/namespaces/default/configmaps", &map).unwrap();
        assert_eq!(path, "/api/v1/namespaces/poison/configmaps");
        assert_eq!(body["metadata"]["namespace"], NAMESPACE);
        let patch = json!({"data": {}});
        let (path, body) = twin("/apis/apps/v1/namespaces/x/deployments/web", &patch).unwrap();
        assert_eq!(path, "/apis/apps/v1/namespaces/poison/deployments/web");
        assert_eq!(body, patch);
        assert_eq!(twin("/api/v1/nodes/one", &patch), None);
        assert_eq!(twin("/api/v1/namespaces/default", &patch), None);
    }
}
