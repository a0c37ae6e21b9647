//! How server-side apply divides a value: which values are atomic, and which have parts.
//!
//! Without a schema the structure is deduced: maps have parts, lists are atomic.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::Element;
use crate::schema::{ListType, Schema, Type};

/// The structure of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape<'s> {
    /// Atomic: a scalar, an atomic list or map, or null.
    Leaf,
    /// A struct or a map.
    Fields,
    /// A list whose items are their own keys.
    Set,
    /// A list whose items are identified by these properties.
    Keyed(&'s [Box<str>]),
}

/// The shape of `value`, which `schema` describes.
pub(crate) fn shape<'s>(schema: Option<Schema<'s>>, value: &Value) -> Shape<'s> {
    let node = schema.map(Schema::node);
    match (value, node) {
        (Value::Object(_), None) => Shape::Fields,
        (Value::Object(_), Some(node)) => match node.ty {
            Type::Object | Type::Any if !node.atomic_map => Shape::Fields,
            _ => Shape::Leaf,
        },
        (Value::Array(_), Some(node)) => match &node.list_type {
            ListType::Atomic => Shape::Leaf,
            ListType::Set => Shape::Set,
            ListType::Map(keys) => Shape::Keyed(keys),
        },
        _ => Shape::Leaf,
    }
}

/// The schema of the field `name`, and whether it is a named property and not an entry of a map.
pub(crate) fn part<'s>(schema: Option<Schema<'s>>, name: &str) -> (Option<Schema<'s>>, bool) {
    let Some(schema) = schema else {
        return (None, false);
    };
    match schema.property(name) {
        Some(property) => (Some(property), true),
        None => (schema.additional(), false),
    }
}

/// The schema of the items of a list.
pub(crate) fn items(schema: Option<Schema<'_>>) -> Option<Schema<'_>> {
    schema.and_then(Schema::items)
}

/// The element of an item of a list of shape `shape`, or why it has none.
pub(crate) fn element(
    shape: Shape<'_>,
    items: Option<Schema<'_>>,
    item: &Value,
) -> Result<Element, Unkeyed> {
    match (shape, item) {
        (Shape::Keyed(keys), Value::Object(item)) => keyed(keys, items, item),
        (Shape::Keyed(_), Value::Null) => Err(Unkeyed::NoObject),
        (Shape::Keyed(_), _) => Err(Unkeyed::NotAnObject),
        (Shape::Set, Value::Null) => Err(Unkeyed::Null),
        (Shape::Set, Value::Object(_)) => Err(Unkeyed::Object),
        (Shape::Set, Value::Array(_)) => Err(Unkeyed::List),
        _ => Ok(Element::value(item)),
    }
}

/// Like [`element`], but an item without one is identified by its position.
pub(crate) fn element_or_index(
    shape: Shape<'_>,
    items: Option<Schema<'_>>,
    at: usize,
    item: &Value,
) -> Element {
    element(shape, items, item).unwrap_or_else(|_| Element::index(at))
}

/// Why an item of a list has no identity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unkeyed {
    /// Items of a keyed list are objects.
    #[error("associative list with keys may not have non-map elements")]
    NotAnObject,
    /// All keys are absent, and none has a default.
    #[error(
        "associative list with keys has an element that omits all key fields [{0}] (and doesn't have default values for any key fields)"
    )]
    NoKey(String),
    /// The item is null.
    #[error("associative list with keys may not have a null element")]
    NoObject,
    /// A set has no null.
    #[error("associative list without keys has an element that's an explicit null")]
    Null,
    /// A set has no maps.
    #[error("associative list without keys has an element that's a map type")]
    Object,
    /// A set has no lists.
    #[error("not supported: associative list with lists as elements")]
    List,
}

fn keyed(
    keys: &[Box<str>],
    items: Option<Schema<'_>>,
    item: &Map<String, Value>,
) -> Result<Element, Unkeyed> {
    let mut present: Vec<(&str, &Value)> = keys
        .iter()
        .filter_map(|key| {
            let value = item.get(&**key);
            Some((&**key, value.or_else(|| default_of(items, key))?))
        })
        .collect();
    if present.is_empty() {
        let keys: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
        return Err(Unkeyed::NoKey(keys.join(" ")));
    }
    present.sort_unstable_by_key(|(name, _)| *name);
    Ok(Element::key(present.into_iter()))
}

static TCP: LazyLock<Value> = LazyLock::new(|| Value::from("TCP"));
static EMPTY: LazyLock<Value> = LazyLock::new(|| Value::from(""));
static ZERO: LazyLock<Value> = LazyLock::new(|| Value::from(0));

/// The default of a key. Published built-in schemas leave defaults out: the protocol of a port has
/// one, and a required key is never absent, only zero.
fn default_of<'s>(items: Option<Schema<'s>>, key: &str) -> Option<&'s Value> {
    let property = items?.property(key)?;
    let node = property.node();
    if node.default.is_some() || !property.is_builtin() {
        return node.default.as_ref();
    }
    match node.ty {
        _ if key == "protocol" => Some(&TCP),
        Type::String => Some(&EMPTY),
        Type::Integer => Some(&ZERO),
        _ => None,
    }
}
