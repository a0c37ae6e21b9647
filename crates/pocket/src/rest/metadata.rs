//! The fields of `metadata` that the server owns.

use serde_json::{Map, Value, json};

use super::{Machine, Request, Served, Verb};

/// Characters of generated name suffixes: no vowels, so that no words appear.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_LENGTH: usize = 5;
const MAX_BASE_LENGTH: usize = 58;

/// Fields of a new object that the server sets, whatever the client sends.
const CHOSEN: [&str; 6] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
];

/// Fields an update never changes, whatever the client sends.
const KEPT: [&str; 3] = ["resourceVersion", "generation", "creationTimestamp"];

/// Fields an update may leave out but not change.
const FILLED: [&str; 3] = ["uid", "name", "namespace"];

/// `metadata` as a map, made if absent.
pub(crate) fn of(value: &mut Value) -> &mut Map<String, Value> {
    part(value, "metadata")
}

/// A field as a map, made if absent.
pub(crate) fn part<'a>(value: &'a mut Value, field: &str) -> &'a mut Map<String, Value> {
    let part = &mut value[field];
    if !part.is_object() {
        *part = json!({});
    }
    part.as_object_mut().expect("made an object above")
}

/// A string of `metadata`, empty when absent.
pub(crate) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value["metadata"][field].as_str().unwrap_or_default()
}

/// Whether the object has a deletion timestamp.
pub(crate) fn is_deleting(value: &Value) -> bool {
    value["metadata"]["deletionTimestamp"].is_string()
}

/// The finalizers in order.
pub(crate) fn finalizers(value: &Value) -> Vec<&str> {
    let list = value["metadata"]["finalizers"].as_array();
    list.into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

impl Machine {
    /// Gives a new object its uid, timestamps and namespace.
    pub(crate) fn stamp(&self, served: &Served, request: &Request, value: &mut Value) {
        let generation = served.traits().generation;
        let namespace = &request.target.namespace;
        let metadata = of(value);
        // A create by an update or an apply keeps more of the client's metadata.
        let created = request.verb == Verb::Create;
        for field in CHOSEN {
            // Kinds without generations keep what the client sent.
            let kept =
                field == "generation" && !generation || field.starts_with("deletion") && !created;
            if !kept {
                metadata.remove(field);
            }
        }
        if created {
            metadata.remove("selfLink");
        }
        metadata.insert("uid".into(), json!(self.environment.uuid()));
        metadata.insert(
            "creationTimestamp".into(),
            json!(self.environment.timestamp()),
        );
        if served.resource.namespaced {
            metadata.insert("namespace".into(), json!(namespace));
        } else {
            metadata.remove("namespace");
        }
        if generation {
            metadata.insert("generation".into(), json!(1));
        }
    }

    /// A name for an object that has only `generateName`.
    pub(crate) fn generate_name(&self, base: &str) -> String {
        let mut bytes = [0; SUFFIX_LENGTH];
        self.environment.entropy.fill(&mut bytes);
        let base: String = base.chars().take(MAX_BASE_LENGTH).collect();
        let suffix = bytes
            .iter()
            .map(|b| char::from(ALPHABET[usize::from(*b) % ALPHABET.len()]));
        base.chars().chain(suffix).collect()
    }
}

/// Copies the server's fields from the stored object.
pub(crate) fn carry_over(new: &mut Value, old: &Value) {
    let old = &old["metadata"];
    let metadata = of(new);
    for field in KEPT {
        match old.get(field) {
            Some(value) => metadata.insert(field.into(), value.clone()),
            None => metadata.remove(field),
        };
    }
    for field in FILLED {
        if let Some(value) = old.get(field) {
            metadata.entry(field).or_insert_with(|| value.clone());
        }
    }
}

/// A deletion cannot be undone. The attempt is still recorded in managedFields.
pub(crate) fn keep_deleting(new: &mut Value, old: &Value) {
    let old = &old["metadata"];
    if let Some(time) = old.get("deletionTimestamp") {
        of(new).insert("deletionTimestamp".into(), time.clone());
    }
    if let Some(grace) = old.get("deletionGracePeriodSeconds") {
        let metadata = of(new);
        metadata
            .entry("deletionGracePeriodSeconds")
            .or_insert_with(|| grace.clone());
    }
}

/// Increments the generation on deletion, for kinds that have one.
pub(crate) fn count_removal(value: &mut Value) {
    if value["metadata"]["generation"].as_i64() > Some(0) {
        bump_generation(value);
    }
}

/// Increments the generation.
pub(crate) fn bump_generation(value: &mut Value) {
    let next = value["metadata"]["generation"].as_i64().unwrap_or(0) + 1;
    of(value).insert("generation".into(), json!(next));
}

/// Increments the generation for a change that is not shown, unless a visible change did.
pub(crate) fn count_hidden(new: &mut Value, old: &Value) {
    if new["metadata"]["generation"] == old["metadata"]["generation"] {
        bump_generation(new);
    }
}

/// Whether anything but metadata and status differs.
pub(crate) fn wanted_state_differs(new: &Value, old: &Value, has_status: bool) -> bool {
    let aside = |key: &str| key == "metadata" || (has_status && key == "status");
    let part = |value: &Value| -> Option<usize> {
        Some(value.as_object()?.keys().filter(|key| !aside(key)).count())
    };
    let Some(fields) = new.as_object() else {
        return true;
    };
    part(new) != part(old)
        || fields
            .iter()
            .any(|(key, value)| !aside(key) && old.get(key) != Some(value))
}

/// Whether the annotations differ; absent ones equal an empty map.
pub(crate) fn annotations_differ(new: &Value, old: &Value) -> bool {
    let [new, old] = [new, old].map(|value| value["metadata"]["annotations"].as_object());
    let count = |fields: Option<&Map<String, Value>>| fields.map_or(0, Map::len);
    count(new) != count(old) || count(new) > 0 && new != old
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_and_metadata_do_not_count_as_wanted_state() {
        let old = json!({"metadata": {"a": 1}, "spec": {"x": 1}, "status": {"y": 1}});
        let mut new = json!({"metadata": {"a": 2}, "spec": {"x": 1}, "status": {"y": 2}});
        assert!(!wanted_state_differs(&new, &old, true));
        assert!(wanted_state_differs(&new, &old, false));
        new["spec"]["x"] = json!(2);
        assert!(wanted_state_differs(&new, &old, true));
        let annotated = json!({"metadata": {"annotations": {"a": "b"}}});
        let emptied = json!({"metadata": {"annotations": {}}});
        assert!(annotations_differ(&annotated, &emptied));
        assert!(annotations_differ(&emptied, &annotated));
        assert!(!annotations_differ(&emptied, &new));
        assert!(!annotations_differ(&annotated, &annotated));
        new = json!({"metadata": {}, "status": {}});
        assert!(wanted_state_differs(&new, &old, true));
    }
}
