//! The keywords a schema may use, whatever its structure.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::FieldPath;
use crate::{crd::pattern::pattern, status::Problems};

const NOT_SUPPORTED: &[&str] = &[
    "$ref",
    "additionalItems",
    "definitions",
    "dependencies",
    "deprecated",
    "discriminator",
    "id",
    "patternProperties",
    "readOnly",
    "writeOnly",
    "xml",
];
const TYPES: &[&str] = &["array", "boolean", "integer", "number", "object", "string"];

/// Reviews `schema` and everything below it.
pub(super) fn review(schema: &Value, at: &FieldPath<'_>, problems: &mut Problems) {
    let Some(words) = schema.as_object() else {
        let detail = "must be a schema";
        problems.invalid(at.to_string(), schema.clone(), detail);
        return;
    };
    for &word in NOT_SUPPORTED {
        if words.get(word).is_some_and(is_set) {
            let detail = format!("{word} is not supported");
            problems.forbidden(at.field(word).to_string(), detail);
        }
    }
    if words.get("uniqueItems") == Some(&Value::Bool(true)) {
        problems.forbidden(
            at.field("uniqueItems").to_string(),
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        );
    }
    types(words, at, problems);
    if let Some(source) = words.get("pattern").and_then(Value::as_str)
        && let Err(error) = pattern(source)
    {
        let detail = format!("must be a valid regular expression, but isn't: {error}");
        problems.invalid(at.field("pattern").to_string(), source, detail);
    }
    properties_or_map(words, at, problems);
    list_marks(words, at, problems);
    map_type(words, at, problems);
    below(words, at, problems);
}

fn is_set(value: &Value) -> bool {
    !value.is_null() && *value != false && value.as_str() != Some("")
}

fn types(words: &Map<String, Value>, at: &FieldPath<'_>, problems: &mut Problems) {
    let path = || at.field("type").to_string();
    match words.get("type").and_then(Value::as_str) {
        None | Some("") => {}
        Some("null") => problems.forbidden(
            path(),
            "type cannot be set to null, use nullable as an alternative",
        ),
        Some(given) if TYPES.contains(&given) => {}
        Some(given) => problems.not_supported(path(), given, TYPES),
    }
    if words.get("items").is_some_and(Value::is_array) {
        problems.forbidden(
            at.field("items").to_string(),
            "items must be a schema object and not an array",
        );
    }
}

fn properties_or_map(words: &Map<String, Value>, at: &FieldPath<'_>, problems: &mut Problems) {
    let has_properties = words
        .get("properties")
        .and_then(Value::as_object)
        .is_some_and(|properties| !properties.is_empty());
    let restricts = words
        .get("additionalProperties")
        .is_some_and(|additional| !additional.is_null() && *additional != true);
    if has_properties && restricts {
        problems.forbidden(
            at.field("additionalProperties").to_string(),
            "additionalProperties and properties are mutual exclusive",
        );
    }
}

fn map_type(words: &Map<String, Value>, at: &FieldPath<'_>, problems: &mut Problems) {
    let Some(given) = words.get("x-kubernetes-map-type").and_then(Value::as_str) else {
        return;
    };
    let place = at.field("x-kubernetes-map-type");
    if !matches!(given, "atomic" | "granular") {
        problems.not_supported(place.to_string(), given, &["atomic", "granular"]);
    }
    must_have_type(words, "object", "x-kubernetes-map-type", at, problems);
}

fn must_have_type(
    words: &Map<String, Value>,
    ty: &str,
    because: &str,
    at: &FieldPath<'_>,
    problems: &mut Problems,
) {
    let path = at.field("type").to_string();
    let detail = format!("must be {ty} if {because} is specified");
    match words.get("type").and_then(Value::as_str) {
        None | Some("") => problems.required(path, detail),
        Some(given) if given == ty => {}
        Some(given) => problems.invalid(path, given, detail),
    }
}

fn list_marks(words: &Map<String, Value>, at: &FieldPath<'_>, problems: &mut Problems) {
    let keys = words.get("x-kubernetes-list-map-keys");
    let keys = keys.and_then(Value::as_array).filter(|k| !k.is_empty());
    let place = at.field("x-kubernetes-list-map-keys");
    let given = words.get("x-kubernetes-list-type").and_then(Value::as_str);
    if keys.is_some() && given != Some("map") {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        let path = at.field("x-kubernetes-list-type").to_string();
        problems.invalid(path, given.unwrap_or_default(), detail);
    }
    let Some(given) = given else { return };
    must_have_type(words, "array", "x-kubernetes-list-type", at, problems);
    let items = words.get("items").unwrap_or(&Value::Null);
    match given {
        "atomic" => {}
        "set" => set_items(items, &at.field("items"), problems),
        "map" => match keys {
            None => problems.required(
                place.to_string(),
                "must not be empty if x-kubernetes-list-type is map",
            ),
            Some(keys) => map_keys(keys, items, at, problems),
        },
        other => problems.not_supported(
            at.field("x-kubernetes-list-type").to_string(),
            other,
            &["atomic", "map", "set"],
        ),
    }
}

/// The entries of a set are compared as a whole, so they must be atomic values.
fn set_items(items: &Value, at: &FieldPath<'_>, problems: &mut Problems) {
    if items["nullable"] == true {
        problems.forbidden(
            at.field("nullable").to_string(),
            "cannot be nullable when x-kubernetes-list-type is set",
        );
    }
    let (mark, detail) = match items["type"].as_str() {
        Some("object") => (
            "x-kubernetes-map-type",
            "must be atomic as item of a list with x-kubernetes-list-type=set",
        ),
        Some("array") => (
            "x-kubernetes-list-type",
            "must be atomic as item of a list with x-kubernetes-list-type=set",
        ),
        _ => return,
    };
    // A list without `x-kubernetes-list-type` is atomic; an object without a map type is not.
    let unmarked_list = mark == "x-kubernetes-list-type" && items.get(mark).is_none();
    if items[mark] != "atomic" && !unmarked_list {
        problems.invalid(at.field(mark).to_string(), items[mark].clone(), detail);
    }
}

fn map_keys(keys: &[Value], items: &Value, at: &FieldPath<'_>, problems: &mut Problems) {
    let place = at.field("x-kubernetes-list-map-keys");
    let of = at.field("items");
    if items["type"] != "object" {
        problems.invalid(
            of.field("type").to_string(),
            items["type"].clone(),
            "must be object if parent array's x-kubernetes-list-type is map",
        );
        return;
    }
    let mut seen = HashSet::new();
    for (index, key) in keys.iter().enumerate() {
        let name = key.as_str().unwrap_or_default();
        let path = place.index(index).to_string();
        if !seen.insert(name) {
            problems.duplicate(path, name);
            continue;
        }
        let Some(property) = items["properties"].get(name) else {
            problems.invalid(path, name, "must be the name of a property of items");
            continue;
        };
        let properties = of.field("properties");
        map_key(name, property, items, &properties.key(name), problems);
    }
}

fn map_key(
    name: &str,
    property: &Value,
    items: &Value,
    at: &FieldPath<'_>,
    problems: &mut Problems,
) {
    let scalar = property["x-kubernetes-int-or-string"] == true
        || matches!(
            property["type"].as_str(),
            Some("string" | "integer" | "number" | "boolean")
        );
    if !scalar {
        problems.invalid(
            at.field("type").to_string(),
            property["type"].clone(),
            "must be a scalar type if parent array's x-kubernetes-list-type is map",
        );
    }
    if property["nullable"] == true {
        problems.forbidden(
            at.field("nullable").to_string(),
            "cannot be nullable when x-kubernetes-list-type is map",
        );
    }
    let required = items["required"].as_array();
    let required = required.is_some_and(|required| required.iter().any(|r| r == name));
    if !required && property.get("default").is_none_or(Value::is_null) {
        problems.required(
            at.field("default").to_string(),
            "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
        );
    }
}

fn below(words: &Map<String, Value>, at: &FieldPath<'_>, problems: &mut Problems) {
    if let Some(properties) = words.get("properties").and_then(Value::as_object) {
        let place = at.field("properties");
        for (name, property) in properties {
            review(property, &place.key(name), problems);
        }
    }
    for word in ["additionalProperties", "items", "not"] {
        if let Some(schema) = words.get(word).filter(|schema| schema.is_object()) {
            review(schema, &at.field(word), problems);
        }
    }
    for word in ["allOf", "anyOf", "oneOf"] {
        let branches = words.get(word).and_then(Value::as_array);
        let place = at.field(word);
        for (index, branch) in branches.into_iter().flatten().enumerate() {
            review(branch, &place.index(index), problems);
        }
    }
}
