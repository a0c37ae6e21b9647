//! Filling absent fields from a schema's defaults.
//!
//! Defaulting is idempotent. Null on a field that is not nullable counts as absent and takes the
//! default. Without a default it is dropped when an object is read, and stays where one is applied.

use serde_json::{Map, Value};

use crate::schema::Schema;

/// Fills absent fields of `value`; a default is itself completed by the defaults below it.
pub fn default(schema: Schema<'_>, value: &mut Value) {
    match value {
        Value::Object(fields) => object(schema, fields),
        Value::Array(items) => {
            let Some(schema) = schema.items() else { return };
            for item in items {
                entry(schema, item);
            }
        }
        _ => {}
    }
}

/// Removes null where it is neither allowed nor replaced by a default.
pub fn drop_nulls(schema: Schema<'_>, value: &mut Value) {
    match value {
        Value::Object(fields) => fields.retain(|name, value| {
            let Some(field) = schema.field(name) else {
                return true;
            };
            if schema.node().embedded_resource && is_object_field(name) {
                // These are handled where all whole objects are.
                return true;
            }
            let (node, schema) = (field.node(), field);
            let stays = !value.is_null() || node.nullable || node.default.is_some();
            if stays {
                drop_nulls(schema, value);
            }
            stays
        }),
        Value::Array(items) => {
            let Some(schema) = schema.items() else { return };
            for item in items {
                drop_nulls(schema, item);
            }
        }
        _ => {}
    }
}

/// Whether a field is one of every whole object, whatever its schema declares.
fn is_object_field(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

fn object(schema: Schema<'_>, fields: &mut Map<String, Value>) {
    let node = schema.node();
    for (name, &id) in &node.properties {
        let property = schema.sibling(id);
        let absent = match fields.get(&**name) {
            None => true,
            Some(Value::Null) => !property.node().nullable,
            Some(_) => false,
        };
        if !absent {
            continue;
        }
        if let Some(default) = &property.node().default {
            fields.insert(name.to_string(), default.clone());
        }
    }
    for (name, value) in fields {
        match schema.property(name) {
            Some(property) => default(property, value),
            None => {
                if let Some(additional) = schema.additional() {
                    entry(additional, value);
                }
            }
        }
    }
}

/// Defaults an item of a list. An item cannot be absent, so null stays without a default.
fn entry(schema: Schema<'_>, value: &mut Value) {
    if value.is_null()
        && !schema.node().nullable
        && let Some(default) = &schema.node().default
    {
        *value = default.clone();
    }
    default(schema, value);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::crd::compile::compile;

    fn defaulted(properties: &Value, mut value: Value) -> Value {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}});
        let compiled = compile(&schema, false);
        drop_nulls(compiled.root(), &mut value);
        default(compiled.root(), &mut value);
        value
    }

    #[test]
    fn absent_and_null_fields_take_the_default() {
        let properties = json!({
            "a": {"type": "integer", "default": 1},
            "b": {"type": "string", "default": "x"},
            "c": {"type": "string", "nullable": true, "default": "y"},
            "d": {"type": "string"},
            "e": {"type": "object", "default": {}, "properties": {"f": {"type": "boolean", "default": true}}},
            "list": {"type": "array", "items": {"type": "object", "properties": {"p": {"type": "string", "default": "TCP"}}}},
            "map": {"type": "object", "additionalProperties": {"type": "string", "default": "z"}},
        });
        for (given, expected) in [
            (
                json!({}),
                json!({"a": 1, "b": "x", "c": "y", "e": {"f": true}}),
            ),
            (
                json!({"a": 5, "b": null, "c": null, "d": null, "e": {"f": false}}),
                json!({"a": 5, "b": "x", "c": null, "e": {"f": false}}),
            ),
            (
                json!({"list": [{}, {"p": "UDP"}], "map": {"k": null}}),
                json!({"a": 1, "b": "x", "c": "y", "e": {"f": true},
                    "list": [{"p": "TCP"}, {"p": "UDP"}], "map": {"k": "z"}}),
            ),
        ] {
            let value = defaulted(&properties, json!({"spec": given}));
            assert_eq!(value, json!({"spec": expected}));
        }
    }

    #[test]
    fn null_without_a_default_stays_unless_it_is_dropped() {
        let schema = json!({"type": "object", "properties": {
            "a": {"type": "integer", "default": 1},
            "b": {"type": "string"},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
        }});
        let compiled = compile(&schema, false);
        let mut value = json!({"a": null, "b": null, "map": {"k": null, "l": "m"}, "free": null});
        let mut applied = value.clone();
        default(compiled.root(), &mut applied);
        assert_eq!(
            applied,
            json!({"a": 1, "b": null, "map": {"k": null, "l": "m"}, "free": null})
        );
        drop_nulls(compiled.root(), &mut value);
        assert_eq!(value, json!({"a": null, "map": {"l": "m"}, "free": null}));
    }

    #[test]
    fn absent_objects_are_not_invented() {
        let properties = json!({"a": {"type": "integer", "default": 1}});
        assert_eq!(defaulted(&properties, json!({})), json!({}));
    }
}
