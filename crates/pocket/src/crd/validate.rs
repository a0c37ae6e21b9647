//! Validation of a custom object by its schema.

mod format;
mod junction;
mod list;
mod scalar;
#[cfg(test)]
mod tests;
mod unique;
mod uri;

use serde_json::{Map, Value};

use crate::{
    schema::{FieldPath, Limits, Schema, Type},
    status::{FieldError, FieldErrorKind, MAX_PROBLEMS, Problems},
};

/// Bytes of the paths of the problems that are kept, at most.
const MAX_PATH_BYTES: usize = 1 << 20;

pub(crate) use format::{date_time, go_duration, is_valid as has_format};
pub(crate) use list::OldItems;

/// Reports what in `new` breaks `schema`; `old` is the stored object on update.
pub fn validate(schema: Schema<'_>, new: &Value, old: Option<&Value>, problems: &mut Problems) {
    let mut findings = Findings::default();
    let at = FieldPath::Root;
    walk(schema, new, old, &at, ObjectLevel::Root, &mut findings);
    unique::check(schema, new, old, &mut findings);
    for error in findings.0 {
        problems.push(error);
    }
}

/// As [`validate`], for an object of which only the sets and map lists are known.
pub(crate) fn validate_unique(
    schema: Schema<'_>,
    new: &Value,
    old: Option<&Value>,
    problems: &mut Problems,
) {
    let mut findings = Findings::default();
    unique::check(schema, new, old, &mut findings);
    for error in findings.0 {
        problems.push(error);
    }
}

/// Checks that embedded objects have apiVersion and kind.
pub(crate) fn validate_embedded(objects: &[(String, &Value)], problems: &mut Problems) {
    let mut findings = Findings::default();
    for (at, object) in objects {
        if let Value::Object(fields) = object {
            embedded(fields, &FieldPath::At(at), &mut findings);
        }
    }
    for error in findings.0 {
        problems.push(error);
    }
}

/// As [`validate`], for a value that is not a whole object, such as a default.
pub(crate) fn validate_part(schema: Schema<'_>, value: &Value, problems: &mut Problems) {
    let mut findings = Findings::default();
    walk(
        schema,
        value,
        None,
        &FieldPath::Root,
        ObjectLevel::No,
        &mut findings,
    );
    for error in findings.0 {
        problems.push(error);
    }
}

/// Whether a value is a whole object, whose metadata is validated elsewhere.
#[derive(Clone, Copy, PartialEq)]
enum ObjectLevel {
    Root,
    No,
}

/// Problems that ratcheting may still drop.
#[derive(Default)]
struct Findings(Vec<FieldError>);

impl Findings {
    /// Whether further problems would change nothing. What ratcheting drops is removed before the
    /// next value is looked at, so that a refusal always keeps a problem.
    fn is_full(&self) -> bool {
        let bytes = || self.0.iter().map(|error| error.path.len()).sum::<usize>();
        self.0.len() >= MAX_PROBLEMS || bytes() >= MAX_PATH_BYTES
    }

    fn add(
        &mut self,
        kind: FieldErrorKind,
        at: &FieldPath<'_>,
        value: Option<Value>,
        detail: String,
    ) {
        if self.is_full() {
            return;
        }
        self.0.push(FieldError {
            kind,
            path: at.to_string(),
            value,
            detail,
        });
    }

    /// `spec.size: Invalid value: 0: spec.size in body <words>`.
    fn in_body(&mut self, at: &FieldPath<'_>, value: &Value, words: impl std::fmt::Display) {
        if self.is_full() {
            return;
        }
        let detail = format!("{at} in body {words}");
        self.add(FieldErrorKind::Invalid, at, Some(shown(value)), detail);
    }

    /// `spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"`.
    fn wrong_type(&mut self, at: &FieldPath<'_>, value: &Value, expected: &str) {
        self.wrong_type_named(at, type_name(value), expected);
    }

    fn wrong_type_named(&mut self, at: &FieldPath<'_>, found: &str, expected: &str) {
        if self.is_full() {
            return;
        }
        let detail = format!("{at} in body must be of type {expected}: \"{found}\"");
        self.add(FieldErrorKind::TypeInvalid, at, Some(found.into()), detail);
    }

    fn required(&mut self, at: &FieldPath<'_>) {
        self.add(FieldErrorKind::Required, at, None, String::new());
    }

    fn too_many(&mut self, at: &FieldPath<'_>, count: u64, most: u64) {
        let items = if most == 1 { "item" } else { "items" };
        let detail = format!("must have at most {most} {items}");
        self.add(FieldErrorKind::TooMany, at, Some(count.into()), detail);
    }
}

/// The value as shown: a number without a fraction is written without one.
fn shown(value: &Value) -> Value {
    match value
        .as_f64()
        .filter(|n| value.is_f64() && is_integer(value) && *n != 0.0)
    {
        Some(whole) => Value::from(whole as i64),
        None => value.clone(),
    }
}

fn walk(
    schema: Schema<'_>,
    new: &Value,
    old: Option<&Value>,
    at: &FieldPath<'_>,
    whole: ObjectLevel,
    findings: &mut Findings,
) {
    let before = findings.0.len();
    if new.is_null() && schema.node().nullable {
        return;
    }
    if has_type(schema, new, at, findings) {
        enumeration(schema, new, at, findings);
        if let Some(limits) = &schema.node().limits {
            scalar::check(limits, new, at, findings);
            junction::check(schema, limits, new, at, findings);
        }
        match new {
            Value::Object(fields) => object(schema, fields, old, at, whole, findings),
            Value::Array(items) => list::check(schema, items, old, at, findings),
            Value::String(text) => {
                if let Some(format) = &schema.node().format {
                    format::check(format, text, at, findings);
                }
            }
            _ => {}
        }
    } else {
        // A value of another type is still checked against the enumeration, and a number against
        // the range.
        enumeration(schema, new, at, findings);
        if let (Value::Number(_), Some(limits)) = (new, &schema.node().limits) {
            scalar::check(limits, new, at, findings);
        }
        if let Some(limits) = schema.node().limits.as_ref().filter(|_| !new.is_null()) {
            junction::check(schema, limits, new, at, findings);
        }
    }
    if findings.0.len() > before && old == Some(new) {
        findings.0.truncate(before);
    }
}

fn has_type(
    schema: Schema<'_>,
    value: &Value,
    at: &FieldPath<'_>,
    findings: &mut Findings,
) -> bool {
    let (fits, expected) = match schema.node().ty {
        Type::Object => (value.is_object(), "object"),
        Type::Array => (value.is_array(), "array"),
        Type::String => (value.is_string(), "string"),
        Type::Integer => (is_integer(value), "integer"),
        Type::Number => (value.is_number(), "number"),
        Type::Boolean => (value.is_boolean(), "boolean"),
        Type::IntOrString => (value.is_string() || is_integer(value), "integer,string"),
        Type::Quantity => (value.is_string() || value.is_number(), "string"),
        Type::Any => (true, ""),
    };
    let format = schema.node().format.as_deref();
    let numeric = matches!(schema.node().ty, Type::Integer | Type::Number);
    match (value, format.filter(|format| !format.is_empty())) {
        _ if fits => {}
        // kube-apiserver accepts text and lists for any non-numeric type with a format, and reports
        // every other value as having another format.
        (Value::String(_) | Value::Array(_), Some(_)) if !numeric => {}
        (Value::Number(number), Some(format)) => {
            let found = if number.is_i64() { "int64" } else { "float64" };
            findings.wrong_type_named(at, found, format);
        }
        (Value::Bool(_) | Value::Object(_), Some(format)) => {
            findings.wrong_type_named(at, "", format);
        }
        _ => findings.wrong_type(at, value, expected),
    }
    if let Value::Number(number) = value {
        scalar::check_format(schema.node().ty, format, number, at, findings);
    }
    fits
}

/// Whether a value is an integer. `2.0` is one, as for the API server, as long as a float
/// represents it exactly.
fn is_integer(value: &Value) -> bool {
    const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_991.0;
    let float = value.as_f64().filter(|_| value.is_f64());
    value.is_i64() || float.is_some_and(|n| n.fract() == 0.0 && n.abs() <= MAX_EXACT_INTEGER)
}

pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) if is_integer(value) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn enumeration(schema: Schema<'_>, value: &Value, at: &FieldPath<'_>, findings: &mut Findings) {
    let allowed = &schema.node().enumeration;
    if allowed.is_empty() || allowed.contains(value) {
        return;
    }
    let shown: Vec<String> = allowed
        .iter()
        .map(|value| match value {
            Value::String(text) => format!("\"{text}\""),
            other => format!("\"{other}\""),
        })
        .collect();
    let detail = format!("supported values: {}", shown.join(", "));
    findings.add(
        FieldErrorKind::NotSupported,
        at,
        Some(value.clone()),
        detail,
    );
}

fn object(
    schema: Schema<'_>,
    fields: &Map<String, Value>,
    old: Option<&Value>,
    at: &FieldPath<'_>,
    whole: ObjectLevel,
    findings: &mut Findings,
) {
    let node = schema.node();
    for name in &node.required {
        if !fields.contains_key(&**name) {
            findings.required(&at.field(name));
        }
    }
    if let Some(limits) = &node.limits {
        property_count(limits, fields, at, findings);
    }
    if node.embedded_resource {
        embedded(fields, at, findings);
    }
    let is_object = whole == ObjectLevel::Root || node.embedded_resource;
    for (name, value) in fields {
        let Some(field) = schema.field(name) else {
            continue;
        };
        let place = at.field(name);
        if is_object && name == "metadata" {
            metadata(field, value, &place, findings);
            continue;
        }
        let old = old.and_then(|old| old.get(name));
        walk(field, value, old, &place, ObjectLevel::No, findings);
    }
}

fn property_count(
    limits: &Limits,
    fields: &Map<String, Value>,
    at: &FieldPath<'_>,
    findings: &mut Findings,
) {
    let count = fields.len() as u64;
    if let Some(most) = limits.max_properties.filter(|&most| count > most) {
        findings.too_many(at, count, most);
    }
    if let Some(least) = limits.min_properties.filter(|&least| count < least) {
        let words = format!("should have at least {least} properties");
        findings.in_body(at, &Value::from(count), words);
    }
}

/// Validates the schema's limits on metadata; the rest of metadata is validated in `kinds`, for all
/// kinds alike.
fn metadata(schema: Schema<'_>, value: &Value, at: &FieldPath<'_>, findings: &mut Findings) {
    for name in ["name", "generateName"] {
        if let (Some(schema), Some(value)) = (schema.property(name), value.get(name)) {
            walk(
                schema,
                value,
                None,
                &at.field(name),
                ObjectLevel::No,
                findings,
            );
        }
    }
    for name in &schema.node().required {
        if value.get(&**name).is_none() {
            findings.required(&at.field(name));
        }
    }
}

fn embedded(fields: &Map<String, Value>, at: &FieldPath<'_>, findings: &mut Findings) {
    for name in ["apiVersion", "kind"] {
        match fields.get(name) {
            Some(Value::String(text)) if text.is_empty() => {
                let (at, empty) = (at.field(name), Some("".into()));
                let detail = "must not be empty".into();
                findings.add(FieldErrorKind::Invalid, &at, empty, detail);
            }
            None => findings.required(&at.field(name)),
            Some(_) => {}
        }
    }
}
