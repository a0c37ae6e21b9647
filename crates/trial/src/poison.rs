//! Objects that nothing can be done for, beside those that all is well with.
//!
//! Whatever users make in a namespace they make in the namespace `poison` too, and change it there
//! as well. A rule with `ns=poison` sees to it that nothing can be written there: whoever works on
//! such an object fails, again and again. O11 asks that nobody else notices.

use neap_pocket::store::Object;
use serde_json::{Value, json};

use crate::{plan::Plan, run::Record};

/// Where they are.
pub const NAMESPACE: &str = "poison";

/// Whether a plan is about them: only then are they there.
pub(crate) fn is_in(plan: &Plan) -> bool {
    let spaces = plan.rules.iter().map(|rule| &rule.filter.namespace);
    spaces.flatten().any(|space| space == NAMESPACE)
}

/// The namespace itself.
pub(crate) fn namespace() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
}

/// The same request for the poisoned twin of an object, if it can have one: path and body.
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

/// Room on a node is for one or the other: who takes it is no matter of faults.
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

/// Takes what is about them out of a record: what is left is about everybody else.
pub(crate) fn strip(record: &mut Record) {
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

/// What is in their namespace, and the volumes of their claims, which are in none.
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
