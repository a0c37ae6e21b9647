//! FieldsV1: a set of paths as JSON.
//!
//! A node is an object whose keys are elements. An empty object is a member with nothing below
//! it; a member with something below it carries `"."`.

use serde_json::{Map, Value};

use super::{Element, FieldSet};

/// Why a FieldsV1 document is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidFieldsV1 {
    /// The key of a node is none of `.`, `f:`, `k:`, `v:` and `i:`, or what follows is malformed.
    #[error("{0:?} is not a path element")]
    Element(String),
    /// The value of a node is not an object.
    #[error("the value below {0:?} is not an object")]
    Node(String),
}

impl FieldSet {
    /// The set as FieldsV1.
    pub fn into_fields_v1(self) -> Value {
        let mut node = Map::new();
        for (element, child) in self.into_children() {
            node.insert(element.into_string(), child.into_node());
        }
        Value::Object(node)
    }

    fn into_node(self) -> Value {
        let dot = self.is_owned() && self.children().next().is_some();
        let mut node = self.into_fields_v1();
        if dot && let Value::Object(node) = &mut node {
            node.insert(".".into(), Value::Object(Map::new()));
        }
        node
    }

    /// Parses FieldsV1. Absent fields (`null`) are an empty set.
    pub fn from_fields_v1(value: &Value) -> Result<Self, InvalidFieldsV1> {
        match value {
            Value::Null => Ok(Self::default()),
            Value::Object(node) => read(node),
            _ => Err(InvalidFieldsV1::Node(String::new())),
        }
    }
}

fn read(node: &Map<String, Value>) -> Result<FieldSet, InvalidFieldsV1> {
    let mut set = FieldSet::default();
    for (key, value) in node {
        let Value::Object(below) = value else {
            return Err(InvalidFieldsV1::Node(key.clone()));
        };
        if key == "." {
            // At the root a dot would be the whole object, which has no owner; below it, the caller
            // has handled it.
            continue;
        }
        let mut child = read(below)?;
        if below.is_empty() || below.contains_key(".") {
            child.own();
        }
        set.push(Element::parse(key)?, child);
    }
    set.sort();
    Ok(set)
}
