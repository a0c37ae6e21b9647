//! Values that do not have their declared type.
//!
//! An object is validated by its schema before its rules run, so rules meet such values only in an
//! object of another kind, which is not validated that way.

use serde_json::Value;

use crate::schema::{Schema, Type};

/// Why a rule cannot read `value`. Null never fits.
pub(super) fn misfit(value: &Value, schema: Schema<'_>) -> Option<String> {
    let (fits, expected) = match schema.node().ty {
        Type::Object => (
            value.is_object(),
            "a map for the provided schema with type=object",
        ),
        Type::Array => (
            value.is_array(),
            "an array for the provided schema with type=array",
        ),
        Type::String => (value.is_string(), "string"),
        Type::Integer => (is_whole(value), "int"),
        Type::Number => (value.is_number(), "float"),
        Type::Boolean => (value.is_boolean(), "bool"),
        Type::IntOrString | Type::Quantity | Type::Any => return None,
    };
    if fits || value.is_null() {
        return None;
    }
    Some(match schema.node().ty {
        Type::Object | Type::Array => format!("invalid data, expected {expected}"),
        _ => format!("invalid data, expected {expected}, got {}", found(value)),
    })
}

/// The declared type, as rule errors name it.
pub(super) fn declared(schema: Schema<'_>) -> Option<&'static str> {
    match schema.node().ty {
        Type::Object => Some("object"),
        Type::Array => Some("array"),
        Type::String => Some("string"),
        Type::Integer => Some("integer"),
        Type::Number => Some("number"),
        Type::Boolean => Some("boolean"),
        Type::IntOrString | Type::Quantity | Type::Any => None,
    }
}

fn is_whole(value: &Value) -> bool {
    value.is_i64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

fn found(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
