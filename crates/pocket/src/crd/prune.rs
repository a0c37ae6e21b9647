//! Dropping fields that a schema does not declare.
//!
//! Pruning is idempotent and never touches a field that the schema declares. It runs before
//! defaulting and validation, so that neither sees an unknown field.

use serde_json::Value;

use crate::schema::{FieldPath, Schema};

/// Removes unknown fields from `value` and returns their paths, in the order of the object.
pub fn prune(schema: Schema<'_>, value: &mut Value) -> Vec<String> {
    let mut dropped = Vec::new();
    walk(schema, value, &FieldPath::Root, &mut dropped);
    dropped
}

fn walk(schema: Schema<'_>, value: &mut Value, at: &FieldPath<'_>, dropped: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            let keeps = schema.node().preserve_unknown;
            fields.retain(|name, value| match schema.field(name) {
                Some(field) => {
                    walk(field, value, &at.field(name), dropped);
                    true
                }
                None if keeps => true,
                None => {
                    dropped.push(at.field(name).to_string());
                    false
                }
            });
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                match schema.items() {
                    Some(schema) => walk(schema, item, &at.index(index), dropped),
                    None if schema.node().preserve_unknown => {}
                    None => empty(item, &at.index(index), dropped),
                }
            }
        }
        _ => {}
    }
}

/// Prunes a list where none is expected: its items have no declared fields, so they lose all of
/// them.
fn empty(value: &mut Value, at: &FieldPath<'_>, dropped: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            dropped.extend(fields.keys().map(|name| at.field(name).to_string()));
            fields.clear();
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                empty(item, &at.index(index), dropped);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::crd::compile::compile;

    fn pruned(schema: &Value, mut value: Value) -> (Value, Vec<String>) {
        let compiled = compile(schema, false);
        let dropped = prune(compiled.root(), &mut value);
        (value, dropped)
    }

    #[test]
    fn unknown_fields_are_dropped_and_named() {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "size": {"type": "integer"},
            "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
            "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"b": {"type": "string"}}}},
        }}}});
        let (value, dropped) = pruned(
            &schema,
            json!({"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "x", "bogus": 1}, "extra": true,
                "spec": {"size": 1, "bogus": 2, "list": [{"a": "1", "c": 3}], "map": {"k": {"b": "1", "d": 4}}}}),
        );
        assert_eq!(
            value,
            json!({"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "x"},
                "spec": {"size": 1, "list": [{"a": "1"}], "map": {"k": {"b": "1"}}}})
        );
        let mut dropped = dropped;
        dropped.sort();
        assert_eq!(
            dropped,
            [
                "extra",
                "metadata.bogus",
                "spec.bogus",
                "spec.list[0].c",
                "spec.map.k.d"
            ]
        );
    }

    #[test]
    fn items_of_a_list_that_is_not_expected_lose_all_fields() {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "size": {"type": "integer"},
            "ports": {"type": "array", "items": {"type": "object", "properties": {"port": {"type": "integer"}}}},
        }}}});
        let (value, dropped) = pruned(
            &schema,
            json!({"spec": {"size": [{"a": 1}], "ports": [{"port": 1}, [{"port": 2}]]}}),
        );
        assert_eq!(
            value,
            json!({"spec": {"size": [{}], "ports": [{"port": 1}, [{}]]}})
        );
        assert_eq!(dropped, ["spec.ports[1][0].port", "spec.size[0].a"]);
    }

    #[test]
    fn preserved_objects_keep_unknown_fields_but_prune_below_known_ones() {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object",
            "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"known": {"type": "object", "properties": {"a": {"type": "string"}}}}}}});
        let (value, dropped) = pruned(
            &schema,
            json!({"spec": {"free": {"x": [1]}, "known": {"a": "1", "b": 2}}}),
        );
        assert_eq!(
            value,
            json!({"spec": {"free": {"x": [1]}, "known": {"a": "1"}}})
        );
        assert_eq!(dropped, ["spec.known.b"]);
    }

    #[test]
    fn an_embedded_resource_keeps_its_object_fields() {
        let schema = json!({"type": "object", "properties": {"template": {"type": "object",
            "x-kubernetes-embedded-resource": true,
            "properties": {"spec": {"type": "object"}}}}});
        let object = json!({"template": {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "a", "labels": {"x": "y"}}, "spec": {}}});
        let (value, dropped) = pruned(&schema, object.clone());
        assert_eq!(value, object);
        assert!(dropped.is_empty());
    }
}
