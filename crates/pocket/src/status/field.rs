//! Errors of single fields, with kube-apiserver's messages.

use std::fmt;

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

impl FieldError {
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

/// The errors of one object, in the order they were found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Problems(Vec<FieldError>);

impl Problems {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn iter(&self) -> std::slice::Iter<'_, FieldError> {
        self.0.iter()
    }

    /// Removes the errors that do not count after all.
    pub fn retain(&mut self, counts: impl FnMut(&FieldError) -> bool) {
        self.0.retain(counts);
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
        self.0.insert(place.min(self.0.len()), error);
    }

    pub fn push(&mut self, error: FieldError) {
        self.0.push(error);
    }

    fn add(
        &mut self,
        kind: FieldErrorKind,
        path: impl Into<String>,
        value: Option<Value>,
        detail: impl Into<String>,
    ) {
        self.push(FieldError {
            kind,
            path: path.into(),
            value,
            detail: detail.into(),
        });
    }

    /// `path: Required value: detail`.
    pub fn required(&mut self, path: impl Into<String>, detail: impl Into<String>) {
        self.add(FieldErrorKind::Required, path, None, detail);
    }

    /// `path: Invalid value: value: detail`.
    pub fn invalid(
        &mut self,
        path: impl Into<String>,
        value: impl Into<Value>,
        detail: impl Into<String>,
    ) {
        self.add(FieldErrorKind::Invalid, path, Some(value.into()), detail);
    }

    /// As [`Self::invalid`], for a value that is shown as `shown`.
    pub fn invalid_as(&mut self, path: impl Into<String>, shown: &str, detail: &str) {
        let detail = format!("{shown}: {detail}");
        self.add(FieldErrorKind::Invalid, path, None, detail);
    }

    /// An error with a value that is already rendered, with its fields in an order of their own.
    pub fn written(
        &mut self,
        kind: FieldErrorKind,
        path: impl Into<String>,
        value: &str,
        detail: &str,
    ) {
        self.add(kind, path, None, format!("{value}: {detail}"));
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
        self.add(
            FieldErrorKind::NotSupported,
            path,
            Some(value.into()),
            detail,
        );
    }

    /// `path: Forbidden: detail`.
    pub fn forbidden(&mut self, path: impl Into<String>, detail: impl Into<String>) {
        self.add(FieldErrorKind::Forbidden, path, None, detail);
    }

    /// `path: Duplicate value: value`.
    pub fn duplicate(&mut self, path: impl Into<String>, value: impl Into<Value>) {
        self.add(FieldErrorKind::Duplicate, path, Some(value.into()), "");
    }

    /// `path: Too long: may not be more than N bytes`.
    pub fn too_long(&mut self, path: impl Into<String>, most: usize) {
        let detail = format!("may not be more than {most} bytes");
        self.add(FieldErrorKind::TooLong, path, None, detail);
    }

    /// `path: Too many: N: must have at most M items`.
    pub fn too_many(&mut self, path: impl Into<String>, actual: usize, most: usize) {
        let detail = format!("must have at most {most} items");
        self.add(FieldErrorKind::TooMany, path, Some(actual.into()), detail);
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
        let mut said: Vec<String> = Vec::with_capacity(self.0.len());
        for error in &self.0 {
            let text = error.to_string();
            if !said.contains(&text) {
                said.push(text);
            }
        }
        match said.as_slice() {
            [one] => f.write_str(one),
            many => write!(f, "[{}]", many.join(", ")),
        }
    }
}
