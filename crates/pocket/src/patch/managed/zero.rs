//! The parts a built-in object has before anybody set them.
//!
//! A Kubernetes server holds a built-in object as a struct whose inner structs are there from the
//! start (`spec`, `template`, `strategy`) unless they are optional. Those are never new, so their
//! writer does not own them as such: `f:spec: {"f:replicas"}` has no `.`, while
//! `f:rollingUpdate`, which is optional, has one. A custom object starts from nothing.

use crate::schema::{Schema, Type};

/// Inner structs that are always there although the schema does not require them, each with a
/// property of the struct it is in when the name alone is ambiguous.
const ALWAYS: &[(&str, &str)] = &[
    ("metadata", ""),
    ("spec", ""),
    ("status", ""),
    ("template", ""),
    ("strategy", ""),
    ("updateStrategy", ""),
    ("source", "involvedObject"),
    ("resources", "accessModes"),
];

/// Whether the field `name` is there wherever a struct of type `schema` is.
pub(super) fn has(schema: Option<Schema<'_>>, name: &str) -> bool {
    let Some(schema) = schema.filter(|schema| schema.is_builtin()) else {
        return false;
    };
    let Some(part) = schema.property(name) else {
        return false;
    };
    let container = matches!(part.node().ty, Type::Object | Type::Array);
    let required = schema.node().required.iter().any(|r| &**r == name);
    let always = ALWAYS.iter().any(|&(field, beside)| {
        field == name && (beside.is_empty() || schema.property(beside).is_some())
    });
    container && (required || always)
}
