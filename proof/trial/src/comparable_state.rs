//! The final state of a cluster, independent of the path that led to it.
//!
//! Two paths to the same declaration leave different histories: old ReplicaSets without pods,
//! revisions and their numbers, and field managers. These are removed before the comparison.

use std::{collections::BTreeMap, sync::Arc};

use neap_pocket::store::{Event, LocatedObject, Object};
use serde_json::Value;

use crate::{
    canonical::{self, ObjectNames},
    cluster::ClusterState,
    judge::{allowances, differ},
};

/// Labels and annotations that count changes.
const COUNTER_KEYS: [&str; 5] = [
    "deployment.kubernetes.io/revision",
    "deployment.kubernetes.io/revision-history",
    "deprecated.daemonset.template.generation",
    "pod-template-generation",
    allowances::TRIGGER,
];

pub(crate) fn comparable_state(objects: &[LocatedObject], history: &[Arc<Event>]) -> ClusterState {
    let names = ObjectNames::of(history);
    let mut state: ClusterState = BTreeMap::new();
    for (resource, path, object) in objects {
        if is_history(resource, object) {
            continue;
        }
        let (mut value, _) = canonical::canonical(object, &names, &[]);
        for map in ["labels", "annotations"] {
            forget(&mut value["metadata"], map);
        }
        if let Some(metadata) = value["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        forget_observed_generation(&mut value);
        forget_pauses(&mut value);
        let place = canonical::comparison_key(resource, path, object);
        state.entry(place).or_default().push(value);
    }
    for values in state.values_mut() {
        values.sort_by_cached_key(Value::to_string);
    }
    state
}

fn forget(metadata: &mut Value, map: &str) {
    let Some(fields) = metadata.get_mut(map).and_then(Value::as_object_mut) else {
        return;
    };
    fields.retain(|key, _| !COUNTER_KEYS.contains(&key.as_str()));
    if fields.is_empty()
        && let Some(metadata) = metadata.as_object_mut()
    {
        metadata.remove(map);
    }
}

/// A finished object is not reconciled again, whatever happens to its spec.
fn forget_observed_generation(value: &mut Value) {
    let Some(status) = value.get_mut("status").and_then(Value::as_object_mut) else {
        return;
    };
    let phase = status.get("phase").and_then(Value::as_str);
    if matches!(phase, Some("Succeeded" | "Failed" | "Cancelled")) {
        status.remove("observedGeneration");
        let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
        for condition in conditions.into_iter().flatten() {
            if let Some(fields) = condition.as_object_mut() {
                fields.remove("observedGeneration");
            }
        }
    }
}

/// A `Suspended` condition that is over is history.
fn forget_pauses(value: &mut Value) {
    let Some(status) = value.get_mut("status").and_then(Value::as_object_mut) else {
        return;
    };
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    let Some(conditions) = conditions else { return };
    conditions.retain(|one| one["type"] != "Suspended" || one["status"] != "False");
    if conditions.is_empty() {
        status.remove("conditions");
    }
}

fn is_history(resource: &str, object: &Object) -> bool {
    if allowances::NOT_COMPARED.contains(&resource) {
        return true;
    }
    match resource {
        "apps/controllerrevisions" => true,
        "apps/replicasets" => {
            let owned = !object.metadata().owner_references.is_empty();
            owned && object.value()["spec"]["replicas"] == 0
        }
        _ => false,
    }
}

/// Describes the differences between two states; none if they are equal.
pub(crate) fn difference(wanted: &ClusterState, found: &ClusterState) -> Option<String> {
    let mut places: Vec<_> = wanted.keys().chain(found.keys()).collect();
    places.sort_unstable();
    places.dedup();
    let mut words = Vec::new();
    for place in places {
        match (wanted.get(place), found.get(place)) {
            (Some(_), None) => words.push(format!("{place} is missing")),
            (None, Some(_)) => words.push(format!("{place} is there and should not be")),
            (Some(one), Some(other)) if one.len() != other.len() => {
                let (one, other) = (one.len(), other.len());
                words.push(format!("{place} is there {other} times instead of {one}"));
            }
            (Some(one), Some(other)) => {
                for (one, other) in one.iter().zip(other).filter(|(one, other)| one != other) {
                    let mut places = Vec::new();
                    differ("", one, other, &mut places);
                    words.push(format!("{place}: {}", places.join("; ")));
                }
            }
            (None, None) => {}
        }
    }
    (!words.is_empty()).then(|| words.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn seen(mut value: Value) -> Value {
        forget_observed_generation(&mut value);
        forget_pauses(&mut value);
        forget(&mut value["metadata"], "annotations");
        value
    }

    #[test]
    fn what_is_history_does_not_count_and_the_rest_does() {
        let counted = json!({"annotations": {"deployment.kubernetes.io/revision": "3"}});
        assert_eq!(seen(json!({"metadata": counted})), json!({"metadata": {}}));
        let ended = |observed: i32| {
            let status = json!({"phase": "Succeeded", "observedGeneration": observed});
            seen(json!({"metadata": {}, "status": status}))
        };
        assert_eq!(ended(0), ended(-2));
        let condition = |kind: &str, status: &str| {
            let conditions = json!([{"type": kind, "status": status}]);
            seen(json!({"metadata": {}, "status": {"conditions": conditions}}))
        };
        let none = json!({"metadata": {}, "status": {}});
        assert_eq!(condition("Suspended", "False"), none);
        assert_ne!(condition("Suspended", "True"), none);
        assert_ne!(condition("Available", "False"), none);
    }

    #[test]
    fn every_difference_is_told() {
        let state =
            |size: i32| ClusterState::from([("a/b".to_owned(), vec![json!({"size": size})])]);
        assert_eq!(difference(&state(1), &state(1)), None);
        let words = difference(&state(1), &state(2));
        assert_eq!(words.as_deref(), Some("a/b: /size is 2 and not 1"));
        let gone = difference(&state(1), &ClusterState::new());
        assert_eq!(gone.as_deref(), Some("a/b is missing"));
    }
}
