//! Filling absent fields from a schema's defaults.
//!
//! Defaulting is idempotent. Null on a field that is not nullable counts as absence: it takes the
//! default, and goes away where there is none.

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
        match &property.node().default {
            Some(default) => {
                fields.insert(name.to_string(), default.clone());
            }
            None => {
                fields.remove(&**name);
            }
        }
    }
    if let Some(additional) = schema.additional() {
        let node = additional.node();
        let dropped = !node.nullable && node.default.is_none();
        fields
            .retain(|name, value| !dropped || !value.is_null() || schema.property(name).is_some());
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

/// An item of a list cannot be absent, so null stays where there is no default for it.
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
        default(compile(&schema, false).root(), &mut value);
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
    fn absent_objects_are_not_invented() {
        let properties = json!({"a": {"type": "integer", "default": 1}});
        assert_eq!(defaulted(&properties, json!({})), json!({}));
    }
}
