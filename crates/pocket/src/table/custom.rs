//! Columns that a custom resource declares (`additionalPrinterColumns`).

use std::fmt;

use jiff::Timestamp;
use serde_json::Value;

use super::{ColumnDefinition, age};

/// Finds a column's value in an object.
type Lookup = Box<dyn Fn(&Value) -> Option<Value> + Send + Sync>;

/// A declared column and the lookup of its value.
pub struct Column {
    pub definition: ColumnDefinition,
    /// The evaluated JSONPath of the column.
    pub path: Lookup,
}

impl Column {
    /// The cell of one object: null when the path finds nothing or something of another type.
    pub(super) fn cell(&self, object: &Value, now: Timestamp) -> Value {
        let Some(value) = (self.path)(object) else {
            return Value::Null;
        };
        match self.definition.kind.as_str() {
            "integer" => integer(&value),
            "number" if value.is_number() => value,
            "boolean" if value.is_boolean() => value,
            "date" => value
                .as_str()
                .map_or(Value::Null, |text| age::since(text, now).into()),
            "string" => match value {
                Value::String(_) | Value::Null => value,
                other => other.to_string().into(),
            },
            _ => Value::Null,
        }
    }
}

fn integer(value: &Value) -> Value {
    match value.as_i64() {
        Some(whole) => whole.into(),
        None => value.as_f64().map_or(Value::Null, |f| (f as i64).into()),
    }
}

impl fmt::Debug for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Column")
            .field("definition", &self.definition)
            .finish_non_exhaustive()
    }
}
