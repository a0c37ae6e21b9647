//! Embedded objects (`x-kubernetes-embedded-resource`): they have apiVersion, kind and metadata.
//!
//! Their metadata is validated where that of all objects is.

use serde_json::Value;

use crate::schema::{FieldPath, Schema, conform};

/// Normalizes the kind and metadata of each embedded object in `value`, or says why it is invalid.
/// Returns the paths of unknown metadata fields, which are dropped.
pub(super) fn read(schema: Schema<'_>, value: &mut Value) -> Result<Vec<String>, String> {
    let mut unknown = Vec::new();
    walk(schema, value, &FieldPath::Root, &mut unknown)?;
    Ok(unknown)
}

fn walk(
    schema: Schema<'_>,
    value: &mut Value,
    at: &FieldPath<'_>,
    unknown: &mut Vec<String>,
) -> Result<(), String> {
    if schema.node().embedded_resource && value.is_object() {
        let at_metadata = at.field("metadata");
        let found = read_object(value, at)?;
        unknown.extend(found.iter().map(|path| format!("{at_metadata}.{path}")));
    }
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if let Some(schema) = schema.field(name) {
                    walk(schema, value, &at.field(name), unknown)?;
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = schema.items() else {
                return Ok(());
            };
            for (index, item) in items.iter_mut().enumerate() {
                walk(schema, item, &at.index(index), unknown)?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// The embedded objects in `value`, with their paths.
pub(super) fn find<'v>(schema: Schema<'_>, value: &'v Value) -> Vec<(String, &'v Value)> {
    fn walk<'v>(
        schema: Schema<'_>,
        value: &'v Value,
        at: &FieldPath<'_>,
        found: &mut Vec<(String, &'v Value)>,
    ) {
        if schema.node().embedded_resource && value.is_object() {
            found.push((at.to_string(), value));
        }
        for (name, value) in value.as_object().into_iter().flatten() {
            if let Some(schema) = schema.field(name) {
                walk(schema, value, &at.field(name), found);
            }
        }
        if let Some((schema, items)) = schema.items().zip(value.as_array()) {
            for (index, item) in items.iter().enumerate() {
                walk(schema, item, &at.index(index), found);
            }
        }
    }
    let mut found = Vec::new();
    walk(schema, value, &FieldPath::Root, &mut found);
    found
}

fn read_object(value: &mut Value, at: &FieldPath<'_>) -> Result<Vec<String>, String> {
    for name in ["apiVersion", "kind"] {
        if let Some(other) = value.get(name).filter(|value| !value.is_string()) {
            let at = at.field(name);
            return Err(format!("{at}: Invalid value: {other}: must be a string"));
        }
    }
    let Some(metadata) = value.get_mut("metadata") else {
        return Ok(Vec::new());
    };
    let shown = metadata.to_string();
    conform::conform_object_meta(metadata)
        .map(|conformed| conformed.unknown)
        .map_err(|why| format!("{}: Invalid value: {shown}: {why}", at.field("metadata")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::crd::compile::compile;

    #[test]
    fn an_object_inside_says_what_it_is_and_has_metadata() {
        let schema = json!({"type": "object", "properties": {"t": {"type": "object",
            "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}}});
        let compiled = compile(&schema, false);
        let kind = "t.kind: Invalid value: 5: must be a string";
        let list = "t.metadata: Invalid value: []: json: cannot unmarshal array into Go value of type v1.ObjectMeta";
        let name = "t.metadata: Invalid value: {\"name\":5}: json: cannot unmarshal number into Go struct field ObjectMeta.name of type string";
        for (given, expected) in [
            (json!({"kind": 5}), Err(kind.to_owned())),
            (json!({"metadata": []}), Err(list.to_owned())),
            (json!({"metadata": {"name": 5}}), Err(name.to_owned())),
            (
                json!({"metadata": {"x": 5}}),
                Ok(vec!["t.metadata.x".to_owned()]),
            ),
            (json!({"metadata": null}), Ok(Vec::new())),
            (json!([]), Ok(Vec::new())),
        ] {
            let mut value = json!({"t": given});
            assert_eq!(read(compiled.root(), &mut value), expected);
            if expected.is_ok() && value["t"].is_object() {
                assert_eq!(value, json!({"t": {"metadata": {}}}));
            }
        }
    }
}
