//! The paths that a value claims: what an applier owns when it applies it.
//!
//! A struct's field exists independently of its content, so naming it claims nothing by itself; an
//! entry of a map and an item of a list exist because a client added them, so they are claimed too.
//! An empty map or a null has no parts, and is claimed as such.

use serde_json::{Map, Value};

use super::{
    Element, FieldSet,
    shape::{self, Shape},
};
use crate::schema::Schema;

impl FieldSet {
    /// The paths `value` claims, read as `schema` describes it.
    pub fn of_value(schema: Schema<'_>, value: &Value) -> Self {
        claim(Some(schema), value)
    }
}

fn claim(schema: Option<Schema<'_>>, value: &Value) -> FieldSet {
    let mut set = FieldSet::default();
    match (shape::shape(schema, value), value) {
        (Shape::Fields, Value::Object(fields)) => {
            for (name, value) in fields {
                let (below, named) = shape::part(schema, name);
                let mut child = claim(below, value);
                if !named || value.as_object().is_some_and(Map::is_empty) {
                    child.own();
                }
                set.push(Element::field(name), child);
            }
        }
        (shape @ (Shape::Set | Shape::Keyed(_)), Value::Array(list)) => {
            let items = shape::items(schema);
            for (at, item) in list.iter().enumerate() {
                let mut child = claim(items, item);
                child.own();
                let element = shape::element_or_index(shape, items, at, item);
                set.push(element, child);
            }
        }
        _ => set.own(),
    }
    set.sort();
    set
}
