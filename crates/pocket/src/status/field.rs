//! Errors of single fields, with kube-apiserver's messages.

use std::{collections::HashSet, fmt};

use serde_json::Value;

use super::Cause;

/// The kind of a field error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldErrorKind {
    /// The field must be set.
    Required,
    /// The value is not allowed.
    Invalid,
    /// The value has the wrong JSON type.
    TypeInvalid,
    /// The value is not one of a fixed list.
    NotSupported,
    /// The field may not be set, or may not change.
    Forbidden,
    /// The value occurs twice.
    Duplicate,
    /// The value is longer than it may be.
    TooLong,
    /// The list has more entries than it may have.
    TooMany,
    /// An object that the field refers to does not exist.
    NotFound,
    /// The field could not be validated.
    Internal,
}

impl FieldErrorKind {
    /// The `reason` of the cause.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::Duplicate => "FieldValueDuplicate",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::NotFound => "FieldValueNotFound",
            Self::Internal => "InternalError",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::Duplicate => "Duplicate value",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::NotFound => "Not found",
            Self::Internal => "Internal error",
        }
    }
}

/// An error of one field. Its text is `path: Words: value: detail`.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldError {
    pub kind: FieldErrorKind,
    /// Such as `spec.template.spec.containers[0].name`.
    pub path: String,
    /// The value, for the kinds that show it.
    pub value: Option<Value>,
    pub detail: String,
}

const NO_VALUE: Option<Value> = None;

/// The approximate bytes of a value as JSON.
fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| size(item) + 1).sum::<usize>() + 2,
        Value::Object(map) => {
            let fields = map.iter().map(|(key, value)| key.len() + size(value) + 4);
            fields.sum::<usize>() + 2
        }
    }
}

impl FieldError {
    fn size(&self) -> usize {
        self.path.len() + self.detail.len() + self.value.as_ref().map_or(0, size)
    }

    /// The entry of `details.causes` for this error.
    pub fn cause(&self) -> Cause {
        Cause {
            reason: self.kind.reason().into(),
            message: self.body(),
            field: self.path.clone(),
        }
    }

    fn body(&self) -> String {
        let mut text = String::from(self.kind.words());
        if let Some(value) = &self.value {
            text.push_str(": ");
            text.push_str(&shown(value));
        }
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }
}

/// Pairs of fields that are shown in this order wherever both are present.
const ORDERED: [[&str; 2]; 3] = [
    ["matchLabels", "matchExpressions"],
    ["Type", "RollingUpdate"],
    ["MaxUnavailable", "MaxSurge"],
];

/// The value as shown: strings are quoted, null is Go's `null`, everything else is compact JSON.
/// The fields of a selector and of a strategy are shown in declaration order.
fn shown(value: &Value) -> String {
    let ordered = ORDERED.iter().find_map(|[first, second]| {
        let (one, other) = (value.get(first)?, value.get(second)?);
        Some(format!(
            "{{\"{first}\":{},\"{second}\":{}}}",
            shown(one),
            shown(other)
        ))
    });
    ordered.unwrap_or_else(|| value.to_string())
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.body())
    }
}

/// Errors that are kept of one object, at most. A body of 3 MiB can hold a million of them, and an
/// answer that names them all would take hundreds of times its size.
pub const MAX_PROBLEMS: usize = 1000;
/// Bytes of paths, values and details that are kept, at most; the error that exceeds it is the last.
const MAX_PROBLEM_BYTES: usize = 1 << 20;

/// The errors of one object, in the order they were found. Only the first ones are kept, the rest
/// is counted: the cost of an error is bounded, whatever its path and value.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Problems {
    errors: Vec<FieldError>,
    bytes: usize,
    /// Errors that were found when there was no more room.
    further: usize,
}

impl Problems {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of errors, including those that were only counted.
    pub fn len(&self) -> usize {
        self.errors.len() + self.further
    }

    /// The errors that were kept.
    pub fn iter(&self) -> std::slice::Iter<'_, FieldError> {
        self.errors.iter()
    }

    /// Whether further errors are only counted. Callers that render a whole list for each of its
    /// entries ask first.
    pub fn is_full(&self) -> bool {
        self.errors.len() >= MAX_PROBLEMS || self.bytes >= MAX_PROBLEM_BYTES
    }

    /// Removes the errors that do not count after all.
    pub fn retain(&mut self, counts: impl FnMut(&FieldError) -> bool) {
        self.errors.retain(counts);
    }

    /// Inserts an invalid value before the error at `place`.
    pub fn insert_invalid(
        &mut self,
        place: usize,
        path: &str,
        value: impl Into<Value>,
        detail: &str,
    ) {
        let error = FieldError {
            kind: FieldErrorKind::Invalid,
            path: path.into(),
            value: Some(value.into()),
            detail: detail.into(),
        };
        self.bytes += error.size();
        self.errors.insert(place.min(self.errors.len()), error);
    }

    pub fn push(&mut self, error: FieldError) {
        if self.is_full() {
            self.further += 1;
            return;
        }
        self.bytes += error.size();
        self.errors.push(error);
    }

    /// The path and the value are made only if the error is kept.
    fn add<V: Into<Value>>(
        &mut self,
        kind: FieldErrorKind,
        path: impl Into<String>,
        value: Option<V>,
        detail: impl Into<String>,
    ) {
        if self.is_full() {
            self.further += 1;
            return;
        }
        self.push(FieldError {
            kind,
            path: path.into(),
            value: value.map(Into::into),
            detail: detail.into(),
        });
    }

    /// `path: Required value: detail`.
    pub fn required(&mut self, path: impl Into<String>, detail: impl Into<String>) {
        self.add(FieldErrorKind::Required, path, NO_VALUE, detail);
    }

    /// `path: Invalid value: value: detail`.
    pub fn invalid(
        &mut self,
        path: impl Into<String>,
        value: impl Into<Value>,
        detail: impl Into<String>,
    ) {
        self.add(FieldErrorKind::Invalid, path, Some(value), detail);
    }

    /// As [`Self::invalid`], for a value that is shown as `shown`.
    pub fn invalid_as(&mut self, path: impl Into<String>, shown: &str, detail: &str) {
        self.written(FieldErrorKind::Invalid, path, shown, detail);
    }

    /// An error with a value that is already rendered, with its fields in an order of their own.
    pub fn written(
        &mut self,
        kind: FieldErrorKind,
        path: impl Into<String>,
        value: &str,
        detail: &str,
    ) {
        if self.is_full() {
            self.further += 1;
            return;
        }
        self.add(kind, path, NO_VALUE, format!("{value}: {detail}"));
    }

    /// `path: Unsupported value: value: supported values: "A", "B"`.
    pub fn not_supported(
        &mut self,
        path: impl Into<String>,
        value: impl Into<Value>,
        supported: &[&str],
    ) {
        let quoted: Vec<String> = supported.iter().map(|s| format!("\"{s}\"")).collect();
        let detail = format!("supported values: {}", quoted.join(", "));
        self.add(FieldErrorKind::NotSupported, path, Some(value), detail);
    }

    /// `path: Forbidden: detail`.
    pub fn forbidden(&mut self, path: impl Into<String>, detail: impl Into<String>) {
        self.add(FieldErrorKind::Forbidden, path, NO_VALUE, detail);
    }

    /// `path: Duplicate value: value`.
    pub fn duplicate(&mut self, path: impl Into<String>, value: impl Into<Value>) {
        self.add(FieldErrorKind::Duplicate, path, Some(value), "");
    }

    /// `path: Too long: may not be more than N bytes`.
    pub fn too_long(&mut self, path: impl Into<String>, most: usize) {
        let detail = format!("may not be more than {most} bytes");
        self.add(FieldErrorKind::TooLong, path, NO_VALUE, detail);
    }

    /// `path: Too many: N: must have at most M items`.
    pub fn too_many(&mut self, path: impl Into<String>, actual: usize, most: usize) {
        let detail = format!("must have at most {most} items");
        self.add(FieldErrorKind::TooMany, path, Some(actual), detail);
    }
}

impl<'a> IntoIterator for &'a Problems {
    type Item = &'a FieldError;
    type IntoIter = std::slice::Iter<'a, FieldError>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rules may run twice and then report twice; the message has each error once.
        let texts: Vec<String> = self.errors.iter().map(ToString::to_string).collect();
        let mut seen = HashSet::with_capacity(texts.len());
        let mut said: Vec<&str> = Vec::with_capacity(texts.len() + 1);
        said.extend(texts.iter().map(String::as_str));
        said.retain(|text| seen.insert(*text));
        let further = format!("and {} more", self.further);
        if self.further > 0 {
            said.push(&further);
        }
        match said.as_slice() {
            [one] => f.write_str(one),
            many => write!(f, "[{}]", many.join(", ")),
        }
    }
}
