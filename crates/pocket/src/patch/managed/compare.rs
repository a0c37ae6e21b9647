//! What changed between two objects, as sets of paths.
//!
//! Unlike a claim, a comparison names containers too: a map, list or struct that was not there
//! before is itself added. That is why an update that sets the first label owns `f:labels: {".",
//! "f:app"}` while an apply of the same label owns `f:labels: {"f:app"}`.

use serde_json::{Map, Value};

use super::{
    Element, FieldSet,
    shape::{self, Shape},
    zero,
};
use crate::schema::Schema;

/// The paths that differ between two objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    pub added: FieldSet,
    pub modified: FieldSet,
    pub removed: FieldSet,
}

impl Comparison {
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    /// The fields that the author of the change now owns.
    pub fn taken(&self) -> FieldSet {
        self.modified.clone().union(self.added.clone())
    }

    /// The same comparison with each set passed through `f`.
    #[must_use]
    pub fn map(self, f: impl Fn(FieldSet) -> FieldSet) -> Self {
        Self {
            added: f(self.added),
            modified: f(self.modified),
            removed: f(self.removed),
        }
    }

    /// Most fields are equal, and a changed field is rarely in two of the sets: the element is
    /// built only where it is needed.
    fn push(&mut self, element: impl Fn() -> Element, child: Self) {
        for (set, child) in [
            (&mut self.added, child.added),
            (&mut self.modified, child.modified),
            (&mut self.removed, child.removed),
        ] {
            if !child.is_empty() {
                set.push(element(), child);
            }
        }
    }

    fn sort(&mut self) {
        self.added.sort();
        self.modified.sort();
        self.removed.sort();
    }
}

/// Compares `old` and `new`; without `old`, an object without any field set and `new`.
pub fn compare(schema: Schema<'_>, old: Option<&Value>, new: &Value) -> Comparison {
    walk(
        Some(schema),
        old.map_or(OldValue::Zero, OldValue::Is),
        Some(new),
    )
}

/// The old value at a path.
#[derive(Debug, Clone, Copy)]
enum OldValue<'v> {
    Absent,
    /// A part that exists although no client set it: see [`zero`].
    Zero,
    Is(&'v Value),
}

impl<'v> OldValue<'v> {
    fn value(self) -> Option<&'v Value> {
        match self {
            Self::Is(value) => Some(value),
            _ => None,
        }
    }

    fn field(self, schema: Option<Schema<'_>>, name: &str) -> OldValue<'v> {
        let there = self.value().and_then(|value| value.get(name));
        match (there, self) {
            (Some(value), _) => OldValue::Is(value),
            (None, Self::Is(_) | Self::Zero) if zero::has(schema, name) => OldValue::Zero,
            _ => OldValue::Absent,
        }
    }
}

fn walk(schema: Option<Schema<'_>>, old: OldValue<'_>, new: Option<&Value>) -> Comparison {
    let mut out = Comparison::default();
    let before = old.value().map_or(Shape::Leaf, |v| shape::shape(schema, v));
    let after = new.map_or(Shape::Leaf, |v| shape::shape(schema, v));
    if before == Shape::Leaf && after == Shape::Leaf {
        leaf(old, new, &mut out);
        return out;
    }
    if is_leaf_value(old.value(), before) || is_leaf_value(new, after) {
        // A scalar became a structure, or the reverse: only deduced structure can do that.
        out.modified.own();
    } else if len(old.value()) == 0 && len(new) == 0 {
        leaf(old, new, &mut out);
        return out;
    } else if matches!(old, OldValue::Absent) {
        out.added.own();
    } else if new.is_none() {
        out.removed.own();
    }
    match if after == Shape::Leaf { before } else { after } {
        Shape::Fields => fields(schema, old, new.and_then(Value::as_object), &mut out),
        shape => list(schema, shape, old.value(), new, &mut out),
    }
    out.sort();
    out
}

fn leaf(old: OldValue<'_>, new: Option<&Value>, out: &mut Comparison) {
    match (old, new) {
        (OldValue::Absent, Some(_)) => out.added.own(),
        (OldValue::Is(_), None) => out.removed.own(),
        (OldValue::Is(a), Some(b)) if a != b && !counts_the_same(a, b) => out.modified.own(),
        (OldValue::Zero, Some(b)) if !b.is_null() && !is_empty_map(b) => out.modified.own(),
        _ => {}
    }
}

fn is_empty_map(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty)
}

/// Whether values differ only in that numbers are written `2` and `2.0`.
fn counts_the_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| counts_the_same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let same = |(name, a)| b.get(name).is_some_and(|b| counts_the_same(a, b));
            a.len() == b.len() && a.iter().all(same)
        }
        _ => a == b,
    }
}

/// Whether a value is a leaf. Null takes the shape of the other side.
fn is_leaf_value(value: Option<&Value>, shape: Shape<'_>) -> bool {
    shape == Shape::Leaf && value.is_some_and(|v| !v.is_null())
}

fn len(value: Option<&Value>) -> usize {
    match value {
        None | Some(Value::Null) => 0,
        Some(Value::Object(fields)) => fields.len(),
        Some(Value::Array(items)) => items.len(),
        Some(_) => 1,
    }
}

fn fields(
    schema: Option<Schema<'_>>,
    old: OldValue<'_>,
    new: Option<&Map<String, Value>>,
    out: &mut Comparison,
) {
    for (name, value) in new.into_iter().flatten() {
        let (below, _) = shape::part(schema, name);
        let child = walk(below, old.field(schema, name), Some(value));
        out.push(|| Element::field(name), child);
    }
    let gone = old.value().and_then(Value::as_object).into_iter().flatten();
    for (name, value) in gone {
        if new.is_some_and(|new| new.contains_key(name)) {
            continue;
        }
        let (below, _) = shape::part(schema, name);
        out.push(
            || Element::field(name),
            walk(below, OldValue::Is(value), None),
        );
    }
}

fn list(
    schema: Option<Schema<'_>>,
    shape: Shape<'_>,
    old: Option<&Value>,
    new: Option<&Value>,
    out: &mut Comparison,
) {
    if old == new {
        return;
    }
    let items = shape::items(schema);
    let (old, new) = (keyed(shape, items, old), keyed(shape, items, new));
    let (mut before, mut after) = (groups(&old), groups(&new));
    let (mut left, mut right) = (before.next(), after.next());
    loop {
        let element = match (left, right) {
            (None, None) => return,
            (Some(a), None) => &a[0].0,
            (None, Some(b)) => &b[0].0,
            (Some(a), Some(b)) => (&a[0].0).min(&b[0].0),
        };
        let a = left.filter(|group| group[0].0 == *element);
        let b = right.filter(|group| group[0].0 == *element);
        let child = group(items, a.unwrap_or_default(), b.unwrap_or_default());
        out.push(|| element.clone(), child);
        if a.is_some() {
            left = before.next();
        }
        if b.is_some() {
            right = after.next();
        }
    }
}

type KeyedItem<'v> = (Element, &'v Value);

/// The items of a list by element, those with equal elements in the order of the list.
fn keyed<'v>(
    shape: Shape<'_>,
    items: Option<Schema<'_>>,
    list: Option<&'v Value>,
) -> Vec<KeyedItem<'v>> {
    let list = list.and_then(Value::as_array).into_iter().flatten();
    let mut keyed: Vec<_> = list
        .enumerate()
        .map(|(at, item)| (shape::element_or_index(shape, items, at, item), item))
        .collect();
    keyed.sort_by(|(a, _), (b, _)| a.cmp(b));
    keyed
}

fn groups<'a, 'v>(items: &'a [KeyedItem<'v>]) -> impl Iterator<Item = &'a [KeyedItem<'v>]> {
    items.chunk_by(|(a, _), (b, _)| a == b)
}

/// Items that share an element are compared as one value, because they cannot be told apart. An
/// item that gains or loses duplicates counts as removed and added.
fn group(items: Option<Schema<'_>>, old: &[KeyedItem<'_>], new: &[KeyedItem<'_>]) -> Comparison {
    let mut out = Comparison::default();
    match (old, new) {
        ([], []) => {}
        ([], [(_, new)]) => return walk(items, OldValue::Absent, Some(new)),
        ([(_, old)], []) => return walk(items, OldValue::Is(old), None),
        ([(_, old)], [(_, new)]) => return walk(items, OldValue::Is(old), Some(new)),
        ([], _) => out.added.own(),
        (_, []) => out.removed.own(),
        ([(_, old)], _) => {
            out.removed = walk(items, OldValue::Is(old), None).removed;
            out.added.own();
        }
        (_, [(_, new)]) => {
            out.added = walk(items, OldValue::Absent, Some(new)).added;
            out.removed.own();
        }
        _ if old != new => out.modified.own(),
        _ => {}
    }
    out
}
