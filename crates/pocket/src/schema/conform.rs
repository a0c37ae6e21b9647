//! Reads a value as a built-in type, the way a typed decoder does.
//!
//! The reference server decodes built-in objects into structs, and what it stores is what the
//! structs hold. [`conform`] gives a JSON value the same treatment in place: a value of the wrong
//! type refuses the request, unknown fields are dropped and reported, absent is one thing whether
//! it was written as null, as an empty list or as an empty map, and quantities, times and bytes
//! take their one canonical form. Conforming twice is conforming once.

mod scalar;
mod strict;

use serde_json::{Map, Value};

pub use self::strict::{FieldValidation, strict_problem};
use super::{Node, Place, Schema, Type, builtin};
use crate::status::{ApiError, FieldError, FieldErrorKind, Problems, Result};

#[cfg(test)]
mod tests;

/// The most unknown fields that are reported; one more says nothing new.
pub const MAX_UNKNOWN: usize = 100;

/// What was found on the way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conformed {
    /// Paths of the fields that the type does not have, such as `spec.bogus`; they were dropped.
    /// At most [`MAX_UNKNOWN`].
    pub unknown: Vec<String>,
}

/// Checks `value`, which came as a whole, against a built-in type and brings it into its canonical
/// form.
///
/// A mismatch is a 400 that names the field; the value is then half-way and of no use.
pub fn conform(
    schema: Schema<'_>,
    value: &mut Value,
    kind: &str,
    api_version: &str,
) -> Result<Conformed> {
    walk(schema, value, kind).map_err(|why| unreadable(kind, api_version, &why))
}

/// As [`conform`], for an object that a patch has made: here a mismatch is a 422.
pub fn conform_patched(schema: Schema<'_>, value: &mut Value, kind: &str) -> Result<Conformed> {
    walk(schema, value, kind).map_err(|why| unreadable_patch(&why))
}

fn walk(schema: Schema<'_>, value: &mut Value, kind: &str) -> Result<Conformed, String> {
    let mut walker = Walker {
        kind,
        found: Conformed::default(),
    };
    walker.value(schema, value, Place::Root)?;
    Ok(walker.found)
}

/// 400: the body cannot be read as the kind it says it is.
pub fn unreadable(kind: &str, api_version: &str, why: &str) -> ApiError {
    let version = api_version.rsplit('/').next().unwrap_or_default();
    ApiError::bad_request(format!(
        "{kind} in version {version:?} cannot be handled as a {kind}: {why}"
    ))
}

/// 422: what the patch has made cannot be read as the kind. The reference shows the whole object
/// before the reason; it is left out, since the reason names the field.
pub fn unreadable_patch(why: &str) -> ApiError {
    let mut problems = Problems::new();
    problems.push(FieldError {
        kind: FieldErrorKind::Invalid,
        path: "patch".into(),
        value: None,
        detail: why.into(),
    });
    ApiError::invalid("", "", "", &problems)
}

struct Walker<'a> {
    kind: &'a str,
    found: Conformed,
}

impl Walker<'_> {
    fn value(
        &mut self,
        schema: Schema<'_>,
        value: &mut Value,
        at: Place<'_>,
    ) -> Result<(), String> {
        let node = schema.node();
        match (node.ty, &mut *value) {
            (Type::Any, _) => Ok(()),
            (Type::Object, _) if node.preserve_unknown => Ok(()),
            (Type::Object, Value::Object(map)) if is_map(node) => self.map(schema, map, at),
            (Type::Object, Value::Object(fields)) => self.fields(schema, fields, at),
            (Type::Array, Value::Array(items)) => self.items(schema, items, at),
            (Type::Object | Type::Array, other) => Err(self.mismatch(schema, other, at)),
            (_, scalar) => match scalar::check(schema, scalar) {
                Ok(()) => Ok(()),
                Err(scalar::Problem::Mismatch) => Err(self.mismatch(schema, value, at)),
                Err(scalar::Problem::Content(why)) => Err(format!("{at}: {why}")),
            },
        }
    }

    /// The named fields of a struct.
    fn fields(
        &mut self,
        schema: Schema<'_>,
        fields: &mut Map<String, Value>,
        at: Place<'_>,
    ) -> Result<(), String> {
        let mut problem = None;
        fields.retain(|name, value| {
            let here = Place::Field(&at, name);
            let Some(field) = schema.property(name) else {
                self.unknown(here);
                return false;
            };
            if value.is_null() || problem.is_some() {
                return false;
            }
            problem = self.value(field, value, here).err();
            !is_empty(field.node(), value) || is_required(schema.node(), name)
        });
        problem.map_or(Ok(()), Err)
    }

    /// The entries of a map: none is dropped, and null is the zero of the type.
    fn map(
        &mut self,
        schema: Schema<'_>,
        map: &mut Map<String, Value>,
        at: Place<'_>,
    ) -> Result<(), String> {
        let Some(values) = schema.additional() else {
            return Ok(());
        };
        for (key, value) in map {
            fill_null(values.node(), value);
            self.value(values, value, Place::Field(&at, key))?;
        }
        Ok(())
    }

    fn items(
        &mut self,
        schema: Schema<'_>,
        items: &mut [Value],
        at: Place<'_>,
    ) -> Result<(), String> {
        let Some(element) = schema.items() else {
            return Ok(());
        };
        for (i, item) in items.iter_mut().enumerate() {
            fill_null(element.node(), item);
            self.value(element, item, Place::Index(&at, i))?;
        }
        Ok(())
    }

    fn unknown(&mut self, at: Place<'_>) {
        if self.found.unknown.len() < MAX_UNKNOWN {
            self.found.unknown.push(at.to_string());
        }
    }

    fn mismatch(&self, schema: Schema<'_>, value: &Value, at: Place<'_>) -> String {
        let found = match value {
            Value::Null => "null".to_owned(),
            Value::Bool(_) => "bool".to_owned(),
            Value::Number(number) => match schema.node().ty {
                Type::Integer | Type::IntOrString => format!("number {number}"),
                _ => "number".to_owned(),
            },
            Value::String(_) => "string".to_owned(),
            Value::Array(_) => "array".to_owned(),
            Value::Object(_) => "object".to_owned(),
        };
        let (kind, ty) = (self.kind, type_name(schema));
        match at {
            Place::Root => format!("json: cannot unmarshal {found} into Go value of type {kind}"),
            _ => format!(
                "json: cannot unmarshal {found} into Go struct field {kind}.{at} of type {ty}"
            ),
        }
    }
}

fn is_map(node: &Node) -> bool {
    node.additional.is_some() && node.properties.is_empty()
}

fn is_required(node: &Node, name: &str) -> bool {
    node.required.iter().any(|required| **required == *name)
}

/// Empty lists and maps are absent ones. An empty struct is not: `emptyDir: {}` says something.
fn is_empty(node: &Node, value: &Value) -> bool {
    match value {
        Value::Array(items) => node.ty == Type::Array && items.is_empty(),
        Value::Object(map) => is_map(node) && map.is_empty(),
        _ => false,
    }
}

/// Null where a value cannot be absent, in a list or a map, is the zero of the type.
fn fill_null(node: &Node, value: &mut Value) {
    if !value.is_null() {
        return;
    }
    *value = match node.ty {
        Type::String if node.format.as_deref() != Some("date-time") => Value::from(""),
        Type::Integer | Type::IntOrString | Type::Number => Value::from(0),
        Type::Boolean => Value::Bool(false),
        Type::Quantity => Value::from("0"),
        Type::Object if !node.preserve_unknown => Value::Object(Map::new()),
        Type::Array => Value::Array(Vec::new()),
        _ => Value::Null,
    };
}

/// The type in the words of the decoder's messages; structs have no name here.
fn type_name(schema: Schema<'_>) -> String {
    let node = schema.node();
    let inner = |child: Option<Schema<'_>>| child.map_or_else(|| "any".to_owned(), type_name);
    match node.ty {
        Type::Object if is_map(node) => format!("map[string]{}", inner(schema.additional())),
        Type::Object => "struct".to_owned(),
        Type::Array => format!("[]{}", inner(schema.items())),
        Type::String if node.format.as_deref() == Some("byte") => "[]uint8".to_owned(),
        Type::String => "string".to_owned(),
        Type::Integer if node.format.as_deref() == Some("int32") => "int32".to_owned(),
        Type::Integer => "int64".to_owned(),
        Type::Number => "float64".to_owned(),
        Type::Boolean => "bool".to_owned(),
        Type::IntOrString => "int32 or string".to_owned(),
        Type::Quantity => "resource.Quantity".to_owned(),
        Type::Any => "any".to_owned(),
    }
}
