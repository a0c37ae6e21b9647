//! Whether a schema is structural: its shape is known without looking inside `allOf`, `anyOf`,
//! `oneOf` and `not`, which may only add limits.

use serde_json::Value;

use super::FieldPath;
use crate::status::Problems;

#[derive(Clone, Copy, PartialEq)]
enum Level {
    Root,
    Item,
    Field,
}

pub(super) fn review(schema: &Value, at: &FieldPath<'_>, problems: &mut Problems) {
    shape(schema, Level::Root, at, problems);
    complete(schema, at, problems);
}

fn is_on(schema: &Value, word: &str) -> bool {
    schema[word] == true
}

fn shape(schema: &Value, level: Level, at: &FieldPath<'_>, problems: &mut Problems) {
    if schema["type"] == "array" && !schema["items"].is_object() {
        problems.required(at.field("items").to_string(), "must be specified");
    }
    if schema["items"].is_object() {
        shape(&schema["items"], Level::Item, &at.field("items"), problems);
    }
    let properties = at.field("properties");
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        shape(property, Level::Field, &properties.key(name), problems);
    }
    let additional = &schema["additionalProperties"];
    if !additional.is_null() && level == Level::Root {
        problems.forbidden(
            at.field("additionalProperties").to_string(),
            "must not be used at the root",
        );
    }
    if additional.is_object() {
        let place = at.field("additionalProperties");
        shape(additional, Level::Field, &place, problems);
    }
    extensions(schema, at, problems);
    junctions(schema, at, problems);
    types(schema, level, at, problems);
    object_fields(schema, level, at, problems);
}

fn extensions(schema: &Value, at: &FieldPath<'_>, problems: &mut Problems) {
    if !is_on(schema, "x-kubernetes-int-or-string") {
        return;
    }
    for word in [
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
    ] {
        if is_on(schema, word) {
            let detail = "must be false if x-kubernetes-int-or-string is true";
            problems.invalid(at.field(word).to_string(), true, detail);
        }
    }
}

fn types(schema: &Value, level: Level, at: &FieldPath<'_>, problems: &mut Problems) {
    let ty = schema["type"].as_str().unwrap_or_default();
    let path = || at.field("type").to_string();
    let embedded = is_on(schema, "x-kubernetes-embedded-resource");
    let free = is_on(schema, "x-kubernetes-int-or-string")
        || is_on(schema, "x-kubernetes-preserve-unknown-fields");
    if embedded && ty != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        if ty.is_empty() {
            problems.required(path(), detail);
        } else {
            problems.invalid(path(), ty, detail);
        }
    } else if ty.is_empty() && !free {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        problems.required(path(), detail);
    }
    if level == Level::Root && !ty.is_empty() && ty != "object" {
        problems.invalid(path(), ty, "must be object at the root");
    }
    if embedded {
        embedded_resource(schema, at, problems);
    }
}

fn embedded_resource(schema: &Value, at: &FieldPath<'_>, problems: &mut Problems) {
    if !schema["additionalProperties"].is_null() {
        problems.forbidden(
            at.field("additionalProperties").to_string(),
            "must not be used if x-kubernetes-embedded-resource is set",
        );
    }
    let preserves = is_on(schema, "x-kubernetes-preserve-unknown-fields");
    let declares = schema["properties"]
        .as_object()
        .is_some_and(|p| !p.is_empty());
    if !preserves && !declares {
        problems.required(
            at.field("properties").to_string(),
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
        );
    }
}

/// apiVersion, kind and metadata are the same in every whole object.
fn object_fields(schema: &Value, level: Level, at: &FieldPath<'_>, problems: &mut Problems) {
    if level != Level::Root && !is_on(schema, "x-kubernetes-embedded-resource") {
        return;
    }
    let properties = at.field("properties");
    for (name, ty) in [
        ("apiVersion", "string"),
        ("kind", "string"),
        ("metadata", "object"),
    ] {
        let Some(property) = schema["properties"].get(name) else {
            continue;
        };
        if property["type"] != ty {
            let place = properties.key(name);
            let detail = format!("must be {ty}");
            problems.invalid(
                place.field("type").to_string(),
                property["type"].clone(),
                detail,
            );
        }
    }
    if level == Level::Root && !plain_metadata(&schema["properties"]["metadata"]) {
        problems.forbidden(
            properties.key("metadata").to_string(),
            "must not specify anything other than name and generateName, but metadata is implicitly specified",
        );
    }
}

fn plain_metadata(metadata: &Value) -> bool {
    let Some(words) = metadata.as_object() else {
        return true;
    };
    words.iter().all(|(word, value)| match word.as_str() {
        "type" | "default" | "required" => true,
        "properties" => value
            .as_object()
            .is_some_and(|p| p.keys().all(|k| k == "name" || k == "generateName")),
        "description" => value == "",
        _ => false,
    })
}

/// `anyOf: [{type: integer}, {type: string}]` is how an int-or-string is often spelled out.
fn is_int_or_string(any_of: &Value) -> bool {
    let types = |first: &str, second: &str| {
        *any_of == serde_json::json!([{"type": first}, {"type": second}])
    };
    types("integer", "string")
}

fn junctions(schema: &Value, at: &FieldPath<'_>, problems: &mut Problems) {
    let int_or_string = is_on(schema, "x-kubernetes-int-or-string");
    for word in ["allOf", "anyOf", "oneOf"] {
        if word == "anyOf" && int_or_string && is_int_or_string(&schema[word]) {
            continue;
        }
        let place = at.field(word);
        for (index, branch) in schema[word].as_array().into_iter().flatten().enumerate() {
            let spelled = word == "allOf"
                && index == 0
                && int_or_string
                && is_int_or_string(&branch["anyOf"]);
            limits_only(branch, spelled, &place.index(index), problems);
        }
    }
    if schema["not"].is_object() {
        limits_only(&schema["not"], false, &at.field("not"), problems);
    }
}

/// Keywords that declare the shape of a value, not its limits.
const SHAPING: &[(&str, &str)] = &[
    ("type", "must be empty to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    ("externalDocs", "must be undefined to be structural"),
    (
        "x-kubernetes-preserve-unknown-fields",
        "must be false to be structural",
    ),
    (
        "x-kubernetes-embedded-resource",
        "must be false to be structural",
    ),
    (
        "x-kubernetes-int-or-string",
        "must be false to be structural",
    ),
    (
        "x-kubernetes-list-map-keys",
        "must be empty to be structural",
    ),
    (
        "x-kubernetes-list-type",
        "must be undefined to be structural",
    ),
    (
        "x-kubernetes-map-type",
        "must be undefined to be structural",
    ),
    ("x-kubernetes-validations", "must be empty to be structural"),
];

fn limits_only(schema: &Value, spelled: bool, at: &FieldPath<'_>, problems: &mut Problems) {
    for (word, detail) in SHAPING {
        let given = &schema[*word];
        let empty = given.is_null()
            || *given == false
            || given.as_str() == Some("")
            || given.as_array().is_some_and(Vec::is_empty);
        if !empty {
            problems.forbidden(at.field(word).to_string(), *detail);
        }
    }
    if schema["properties"].get("metadata").is_some() {
        let place = at.field("properties");
        problems.forbidden(
            place.key("metadata").to_string(),
            "must not be specified in a nested context",
        );
    }
    for word in ["allOf", "anyOf", "oneOf"] {
        if word == "anyOf" && spelled {
            continue;
        }
        let place = at.field(word);
        for (index, branch) in schema[word].as_array().into_iter().flatten().enumerate() {
            limits_only(branch, false, &place.index(index), problems);
        }
    }
    for word in ["not", "items"] {
        if schema[word].is_object() {
            limits_only(&schema[word], false, &at.field(word), problems);
        }
    }
    let place = at.field("properties");
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        limits_only(property, false, &place.key(name), problems);
    }
}

/// Checks that every field a limit refers to is declared outside of the limits.
fn complete(schema: &Value, at: &FieldPath<'_>, problems: &mut Problems) {
    specified(schema, schema, at, at, problems);
    if schema["items"].is_object() {
        complete(&schema["items"], &at.field("items"), problems);
    }
    if schema["additionalProperties"].is_object() {
        let place = at.field("additionalProperties");
        complete(&schema["additionalProperties"], &place, problems);
    }
    let place = at.field("properties");
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        complete(property, &place.key(name), problems);
    }
}

/// Searches the junctions of `limits` for fields that `shape` lacks.
fn specified(
    shape: &Value,
    limits: &Value,
    shape_at: &FieldPath<'_>,
    at: &FieldPath<'_>,
    problems: &mut Problems,
) {
    for word in ["allOf", "anyOf", "oneOf"] {
        let place = at.field(word);
        for (index, branch) in limits[word].as_array().into_iter().flatten().enumerate() {
            fields_of(shape, branch, shape_at, &place.index(index), problems);
        }
    }
    if limits["not"].is_object() {
        fields_of(shape, &limits["not"], shape_at, &at.field("not"), problems);
    }
}

fn fields_of(
    shape: &Value,
    branch: &Value,
    shape_at: &FieldPath<'_>,
    at: &FieldPath<'_>,
    problems: &mut Problems,
) {
    let (shape_properties, properties) = (shape_at.field("properties"), at.field("properties"));
    for (name, limits) in branch["properties"].as_object().into_iter().flatten() {
        let (shape_place, place) = (shape_properties.key(name), properties.key(name));
        match shape["properties"].get(name) {
            Some(shape) => fields_of(shape, limits, &shape_place, &place, problems),
            None => because(&shape_place, &place, problems),
        }
    }
    if branch["items"].is_object() {
        let (shape_place, place) = (shape_at.field("items"), at.field("items"));
        if shape["items"].is_object() {
            fields_of(
                &shape["items"],
                &branch["items"],
                &shape_place,
                &place,
                problems,
            );
        } else {
            because(&shape_place, &place, problems);
        }
    }
    specified(shape, branch, shape_at, at, problems);
}

fn because(shape_at: &FieldPath<'_>, at: &FieldPath<'_>, problems: &mut Problems) {
    let detail = format!("because it is defined in {at}");
    problems.required(shape_at.to_string(), detail);
}
