//! One step of a path, stored in its FieldsV1 form.
//!
//! The text form makes equality, order and encoding string operations. It requires every element to
//! be canonical: compact JSON, the keys of a `k:` element sorted.

use std::{
    cmp::Ordering,
    fmt::{self, Write as _},
};

use serde_json::{Map, Value};

use super::InvalidFieldsV1;

/// A step of a path: `f:name`, `k:{"name":"x"}`, `v:"x"` or `i:0`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Element(Box<str>);

impl Element {
    /// The field of a struct or the entry of a map.
    pub fn field(name: &str) -> Self {
        let mut text = String::with_capacity(name.len() + 2);
        text.push_str("f:");
        text.push_str(name);
        Self(text.into())
    }

    /// The member of a set.
    pub fn value(value: &Value) -> Self {
        let mut text = String::from("v:");
        match value {
            Value::String(s) => push_text(&mut text, s),
            _ => text.push_str(&value.to_string()),
        }
        Self(text.into())
    }

    /// The item of a list at a position.
    pub fn index(index: usize) -> Self {
        Self(format!("i:{index}").into())
    }

    /// The item of a keyed list; `keys` must be sorted by name.
    pub(super) fn key<'a>(keys: impl Iterator<Item = (&'a str, &'a Value)>) -> Self {
        let mut text = String::from("k:{");
        for (at, (name, value)) in keys.enumerate() {
            if at > 0 {
                text.push(',');
            }
            push_text(&mut text, name);
            text.push(':');
            match value {
                Value::String(s) => push_text(&mut text, s),
                _ => text.push_str(&value.to_string()),
            }
        }
        text.push('}');
        Self(text.into())
    }

    /// Parses a FieldsV1 element, and makes it canonical.
    pub fn parse(text: &str) -> Result<Self, InvalidFieldsV1> {
        let bad = || InvalidFieldsV1::Element(text.to_owned());
        let (kind, rest) = text.split_once(':').ok_or_else(bad)?;
        match kind {
            "f" => Ok(Self(text.into())),
            "v" => {
                let value: Value = serde_json::from_str(rest).map_err(|_| bad())?;
                Ok(Self::value(&value))
            }
            "i" => {
                let index: i64 = rest.parse().map_err(|_| bad())?;
                Ok(Self(format!("i:{index}").into()))
            }
            "k" => {
                let keys: Map<String, Value> = serde_json::from_str(rest).map_err(|_| bad())?;
                Ok(Self::key(keys.iter().map(|(k, v)| (k.as_str(), v))))
            }
            _ => Err(bad()),
        }
    }

    /// The name, if this is a field.
    pub fn as_field(&self) -> Option<&str> {
        self.0.strip_prefix("f:")
    }

    /// The written form.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn into_string(self) -> String {
        self.0.into_string()
    }

    /// Order against `Element::field(name)`, without making one.
    pub(super) fn cmp_field(&self, name: &str) -> Ordering {
        // `f:` sorts before every other kind of element.
        self.as_field()
            .map_or(Ordering::Greater, |field| field.cmp(name))
    }
}

/// Writes a JSON string; names and keys rarely need an escape.
fn push_text(out: &mut String, text: &str) {
    let plain = text.bytes().all(|b| b >= b' ' && b != b'"' && b != b'\\');
    if plain {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(&Value::from(text).to_string());
    }
}

/// The value of a key; the items of a list are separated by commas, and the fields of an object by
/// nothing.
fn shown(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(shown).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(name, value)| format!("{name}={}", shown(value)))
                .collect();
            fields.concat()
        }
        scalar => scalar.to_string(),
    }
}

/// The readable form: `.name`, `[name="x"]`, `[="x"]`, `[0]`.
impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, rest) = self.0.split_at(2);
        match kind {
            "f:" => write!(f, ".{rest}"),
            "v:" => write!(f, "[={rest}]"),
            "k:" => {
                let keys: Map<String, Value> = serde_json::from_str(rest).unwrap_or_default();
                f.write_char('[')?;
                for (at, (name, value)) in keys.iter().enumerate() {
                    let comma = if at > 0 { "," } else { "" };
                    write!(f, "{comma}{name}={}", shown(value))?;
                }
                f.write_char(']')
            }
            _ => write!(f, "[{rest}]"),
        }
    }
}
