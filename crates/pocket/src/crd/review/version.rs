//! The versions of a definition, and the paths that lead into their schemas.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{FieldPath, defaults, names, structural, words};
use crate::{
    crd::{cel::CompiledRules, compile::compile, path::JsonPath},
    schema::{Schema, Type},
    status::Problems,
};

const COLUMN_TYPES: &[&str] = &["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: &[&str] = &[
    "byte",
    "date",
    "date-time",
    "double",
    "float",
    "int32",
    "int64",
    "password",
];
const MAX_SELECTABLE_FIELDS: usize = 8;
const MAX_WARNING_BYTES: usize = 256;

pub(super) fn versions(spec: &Value, at: &FieldPath<'_>, problems: &mut Problems) {
    let versions = list(&spec["versions"]);
    let mut seen = HashSet::new();
    let unique = versions
        .iter()
        .all(|version| seen.insert(version["name"].as_str()));
    let names = || -> Value { versions.iter().map(|v| v["name"].clone()).collect() };
    if !unique {
        let detail = "must contain unique version names";
        problems.invalid(at.to_string(), names(), detail);
    }
    if versions.iter().filter(|v| v["storage"] == true).count() != 1 {
        let detail = "must have exactly one version marked as storage version";
        problems.invalid(at.to_string(), names(), detail);
    }
    // A schema shared by all versions is checked once, as if it stood beside them.
    let schema = |version: &Value| version["schema"].clone();
    let shared = versions
        .iter()
        .all(|version| schema(version) == schema(&versions[0]));
    for (index, version) in versions.iter().enumerate() {
        review(version, &at.index(index), shared.then_some(index), problems);
    }
}

fn review(version: &Value, at: &FieldPath<'_>, shared: Option<usize>, problems: &mut Problems) {
    let name = version["name"].as_str().unwrap_or_default();
    names::label(name, &at.field("name"), problems);
    deprecation(version, at, problems);
    columns(version, &at.field("additionalPrinterColumns"), problems);
    scale(&version["subresources"]["scale"], at, problems);
    let place = at.field("schema");
    let place = place.field("openAPIV3Schema");
    let Some(schema) = version["schema"]["openAPIV3Schema"].as_object() else {
        problems.required(place.to_string(), "");
        return;
    };
    let place = match shared {
        Some(0) => FieldPath::At("spec.validation.openAPIV3Schema"),
        Some(_) => return,
        None => place,
    };
    let before = problems.len();
    if version["subresources"].get("status").is_some() {
        root_fields(schema, &place, problems);
    }
    let schema = &version["schema"]["openAPIV3Schema"];
    words::review(schema, &place, problems);
    if problems.len() > before {
        return;
    }
    structural::review(schema, &place, problems);
    if problems.len() > before {
        return;
    }
    let compiled = compile(schema, false);
    let rules = CompiledRules::compile(compiled.root(), &place.to_string(), problems);
    defaults::review(compiled.root(), &rules, &place, problems);
    selectable(
        version,
        compiled.root(),
        &at.field("selectableFields"),
        problems,
    );
}

fn deprecation(version: &Value, at: &FieldPath<'_>, problems: &mut Problems) {
    let Some(warning) = version["deprecationWarning"].as_str() else {
        return;
    };
    let path = at.field("deprecationWarning").to_string();
    if version["deprecated"] != true {
        problems.invalid(path, warning, "can only be set for deprecated versions");
    } else if warning.len() > MAX_WARNING_BYTES {
        problems.too_long(path, MAX_WARNING_BYTES);
    } else if warning.is_empty() || warning.chars().any(char::is_control) {
        let detail = "must be non-empty and contain printable characters only";
        problems.invalid(path, warning, detail);
    }
}

/// With a status subresource the object is split in two, so no rule may apply to the root as a
/// whole.
fn root_fields(schema: &Map<String, Value>, at: &FieldPath<'_>, problems: &mut Problems) {
    const SPLITTING: &[&str] = &[
        "additionalProperties",
        "allOf",
        "anyOf",
        "default",
        "enum",
        "maxProperties",
        "minProperties",
        "not",
        "nullable",
        "oneOf",
    ];
    for name in SPLITTING {
        if schema
            .get(*name)
            .is_some_and(|v| !v.is_null() && *v != false)
        {
            problems.forbidden(
                at.field(name).to_string(),
                "must not be used at the root of the schema if the status subresource is enabled",
            );
        }
    }
}

fn columns(version: &Value, at: &FieldPath<'_>, problems: &mut Problems) {
    for (index, column) in list(&version["additionalPrinterColumns"])
        .iter()
        .enumerate()
    {
        let place = at.index(index);
        let text = |name: &str| column[name].as_str().unwrap_or_default();
        if text("name").is_empty() {
            problems.required(place.field("name").to_string(), "");
        }
        let path = place.field("type").to_string();
        match text("type") {
            "" => problems.required(
                path,
                "must be one of boolean, date, integer, number, string",
            ),
            given if COLUMN_TYPES.contains(&given) => {}
            given => problems.not_supported(path, given, COLUMN_TYPES),
        }
        match text("format") {
            "" => {}
            given if COLUMN_FORMATS.contains(&given) => {}
            given => {
                problems.not_supported(place.field("format").to_string(), given, COLUMN_FORMATS);
            }
        }
        match text("jsonPath") {
            "" => problems.required(place.field("jsonPath").to_string(), ""),
            given => {
                readable(given, &place.field("jsonPath"), problems);
            }
        }
    }
}

fn readable(given: &str, at: &FieldPath<'_>, problems: &mut Problems) -> Option<JsonPath> {
    match JsonPath::parse(given) {
        Ok(path) => Some(path),
        Err(why) => {
            let detail = format!("is an invalid path: {why}");
            problems.invalid(at.to_string(), given, detail);
            None
        }
    }
}

fn scale(scale: &Value, at: &FieldPath<'_>, problems: &mut Problems) {
    if !scale.is_object() {
        return;
    }
    let at = at.field("subresources");
    let at = at.field("scale");
    for (name, roots, needed) in [
        ("specReplicasPath", &["spec"][..], true),
        ("statusReplicasPath", &["status"][..], true),
        ("labelSelectorPath", &["spec", "status"][..], false),
    ] {
        let place = at.field(name);
        match scale[name].as_str().unwrap_or_default() {
            "" if needed => problems.required(place.to_string(), ""),
            "" => {}
            given => scale_path(given, roots, &place, problems),
        }
    }
}

fn scale_path(given: &str, roots: &[&str], at: &FieldPath<'_>, problems: &mut Problems) {
    let Some(path) = readable(given, at, problems) else {
        return;
    };
    let leads = path
        .fields()
        .is_some_and(|fields| fields.len() > 1 && roots.contains(&fields[0]));
    if !leads {
        let roots: Vec<String> = roots.iter().map(|root| format!(".{root}")).collect();
        let detail = format!(
            "should be a json path of fields under {}",
            roots.join(" or ")
        );
        problems.invalid(at.to_string(), given, detail);
    }
}

fn selectable(version: &Value, root: Schema<'_>, at: &FieldPath<'_>, problems: &mut Problems) {
    let fields = list(&version["selectableFields"]);
    if fields.len() > MAX_SELECTABLE_FIELDS {
        problems.too_many(at.to_string(), fields.len(), MAX_SELECTABLE_FIELDS);
    }
    let mut seen = HashSet::new();
    for (index, field) in fields.iter().enumerate() {
        let place = at.index(index);
        let place = place.field("jsonPath");
        let given = field["jsonPath"].as_str().unwrap_or_default();
        if given.is_empty() {
            problems.required(place.to_string(), "");
        } else if !seen.insert(given) {
            problems.duplicate(place.to_string(), given);
        } else if let Some(path) = readable(given, &place, problems)
            && let Some(why) = unselectable(&path, root)
        {
            problems.invalid(place.to_string(), given, why);
        }
    }
}

fn unselectable(path: &JsonPath, root: Schema<'_>) -> Option<&'static str> {
    let Some(fields) = path.fields() else {
        return Some("is an invalid path: must lead through fields alone");
    };
    if fields.first() == Some(&"metadata") {
        return Some("must not point to fields in metadata");
    }
    let mut schema = root;
    for field in fields {
        match schema.property(field) {
            Some(property) => schema = property,
            None => return Some("is an invalid path: does not refer to a valid field"),
        }
    }
    match schema.node().ty {
        Type::String | Type::Integer | Type::Boolean => None,
        _ => Some("must point to a field of type string, boolean or integer"),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}
