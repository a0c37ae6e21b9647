//! What a configuration must be before it can be merged: of declared fields, of the declared
//! structure, and with items that can be told apart.

use std::{collections::HashSet, fmt, ops::ControlFlow};

use serde_json::Value;

use crate::{
    patch::managed::{
        Element,
        shape::{self, Shape},
    },
    schema::{Schema, Type, go},
};

/// One thing that is wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where, such as `.spec.ports`.
    pub path: String,
    /// What.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return f.write_str(&self.message);
        }
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// Everything that is wrong with `config`.
pub(super) fn check(schema: Schema<'_>, config: &Value) -> Vec<Problem> {
    let mut check = Check {
        path: Vec::new(),
        free: takes_anything(schema),
        problems: Vec::new(),
    };
    check.value(Some(schema), config);
    check.problems
}

struct Check {
    path: Vec<Element>,
    /// The object takes any fields, and so does what is declared in it.
    free: bool,
    problems: Vec<Problem>,
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
                // The reference looks no further in an object once it met what it does not know.
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
        let path = self.path.iter().map(ToString::to_string).collect();
        self.problems.push(Problem { path, message });
    }
}

fn takes_anything(schema: Schema<'_>) -> bool {
    let node = schema.node();
    node.preserve_unknown || node.embedded_resource || node.ty == Type::Any
}

/// A number or text may be anything until the object is read, or judged, as a whole.
fn is_deduced(schema: Schema<'_>) -> bool {
    schema.node().ty == Type::IntOrString
}

/// What a schema asks for here: text that has a format may be any scalar.
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

/// What was expected, if `value` is not it. Null is the absence of anything.
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

/// What was found in place of `ty`, which each type shows in its own way.
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
