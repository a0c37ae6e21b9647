//! Validation of a configuration before it is merged: declared fields, declared structure, and
//! items with unique keys.

use std::{collections::HashSet, fmt, ops::ControlFlow};

use serde_json::Value;

use crate::{
    patch::managed::{
        Element,
        shape::{self, Shape},
    },
    schema::{Schema, Type, go},
};

/// Bytes of the paths of all problems, at most; later problems have none. A key may be a megabyte
/// long, and a problem may be found in each of a hundred thousand values below it.
const MAX_PATH_BYTES: usize = 1 << 20;

/// One problem of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblem {
    /// The path, such as `.spec.ports`.
    pub path: String,
    pub message: String,
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return f.write_str(&self.message);
        }
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// All problems of `config`.
pub(super) fn check(schema: Schema<'_>, config: &Value) -> Vec<ConfigProblem> {
    let mut check = Check {
        path: Vec::new(),
        free: takes_anything(schema),
        problems: Vec::new(),
        path_bytes: 0,
    };
    check.value(Some(schema), config);
    check.problems
}

struct Check {
    path: Vec<Element>,
    /// The object accepts any fields, and so does what is declared in it.
    free: bool,
    problems: Vec<ConfigProblem>,
    path_bytes: usize,
}

impl Check {
    fn value(&mut self, schema: Option<Schema<'_>>, value: &Value) {
        if schema.is_some_and(is_deduced) {
            return;
        }
        if let Some(schema) = schema
            && let Some(expected) = mismatch(kind(schema), value)
        {
            let found = found(kind(schema), value);
            self.problem(format!("expected {expected}, got {found}"));
            return;
        }
        match value {
            Value::Object(fields) => {
                // kube-apiserver stops at the first unknown field of an object.
                let _ = fields
                    .iter()
                    .try_for_each(|(name, value)| self.field(schema, name, value));
            }
            Value::Array(list) => self.list(schema, value, list),
            _ => {}
        }
    }

    fn field(&mut self, schema: Option<Schema<'_>>, name: &str, value: &Value) -> ControlFlow<()> {
        let (below, _) = shape::part(schema, name);
        let declared = below.is_some()
            || schema.is_none_or(takes_anything)
            || (self.free && !self.in_metadata())
            || (self.path.is_empty() && matches!(name, "apiVersion" | "kind" | "metadata"));
        self.path.push(Element::field(name));
        if declared {
            self.value(below, value);
        } else {
            self.problem("field not declared in schema".into());
        }
        self.path.pop();
        if declared {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }

    fn list(&mut self, schema: Option<Schema<'_>>, value: &Value, list: &[Value]) {
        let shape = shape::shape(schema, value);
        let items = shape::items(schema);
        let mut seen: HashSet<Element> = HashSet::with_capacity(list.len());
        for (at, item) in list.iter().enumerate() {
            let element = match shape {
                Shape::Leaf | Shape::Fields => Element::index(at),
                _ => match shape::element(shape, items, item) {
                    Ok(element) => element,
                    Err(why) => {
                        self.problem(format!("element {at}: {why}"));
                        return;
                    }
                },
            };
            if seen.contains(&element) {
                self.problem(format!("duplicate entries for key {element}"));
            }
            self.path.push(element);
            self.value(items, item);
            seen.extend(self.path.pop());
        }
    }

    fn in_metadata(&self) -> bool {
        self.path.first() == Some(&Element::field("metadata"))
    }

    fn problem(&mut self, message: String) {
        let mut path = String::new();
        if self.path_bytes < MAX_PATH_BYTES {
            path.extend(self.path.iter().map(ToString::to_string));
            self.path_bytes += path.len();
        }
        self.problems.push(ConfigProblem { path, message });
    }
}

fn takes_anything(schema: Schema<'_>) -> bool {
    let node = schema.node();
    node.preserve_unknown || node.embedded_resource || node.ty == Type::Any
}

/// Whether the type is deduced: a number or text may be anything until the whole object is parsed
/// or validated.
fn is_deduced(schema: Schema<'_>) -> bool {
    schema.node().ty == Type::IntOrString
}

/// The type that a schema declares here: text that has a format may be any scalar.
fn kind(schema: Schema<'_>) -> Type {
    let node = schema.node();
    let plain = node
        .format
        .as_deref()
        .is_none_or(|format| matches!(format, "" | "byte"));
    match node.ty {
        Type::String if !plain => Type::IntOrString,
        ty => ty,
    }
}

/// The expected type, if `value` does not have it. Null fits every type.
fn mismatch(ty: Type, value: &Value) -> Option<&'static str> {
    let (fits, expected) = match ty {
        Type::Object => (value.is_object(), "map"),
        Type::Array => (value.is_array(), "list"),
        Type::String => (value.is_string(), "string"),
        Type::Integer | Type::Number => (value.is_number(), "numeric (int or float)"),
        Type::Boolean => (value.is_boolean(), "boolean"),
        Type::IntOrString | Type::Quantity => (is_scalar(value), "any scalar"),
        Type::Any => return None,
    };
    (!fits && !value.is_null()).then_some(expected)
}

/// The value found in place of `ty`, which each type's message shows differently.
fn found(ty: Type, value: &Value) -> String {
    match ty {
        Type::Integer | Type::Number => go::type_of(value).to_owned(),
        Type::Object | Type::Array | Type::Boolean | Type::IntOrString | Type::Quantity => {
            format!("&{{{}}}", go::plain(value))
        }
        _ => format!("&value.valueUnstructured{{Value:{}}}", go::syntax(value)),
    }
}

fn is_scalar(value: &Value) -> bool {
    !value.is_object() && !value.is_array()
}
