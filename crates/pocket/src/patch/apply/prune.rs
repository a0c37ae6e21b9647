//! Removes the fields that an applier no longer applies.
//!
//! A field is removed when the applier owned it, does not claim it any more, and no other manager
//! owns it. A struct is owned by the owners of its fields: when the last of them leaves, it is
//! removed with all that was defaulted into it.

use serde_json::{Map, Value};

use crate::{
    patch::managed::{
        FieldSet,
        shape::{self, Shape},
    },
    schema::Schema,
};

/// Removes from `value` what `last` owned and `kept` does not. Returns the fields that were removed
/// because nothing was left in them: managers that claimed them as such still do, and they become
/// null.
pub(super) fn prune(
    schema: Schema<'_>,
    value: &mut Value,
    last: &FieldSet,
    kept: &FieldSet,
) -> FieldSet {
    let mut emptied = FieldSet::default();
    walk(Some(schema), value, last, Some(kept), &mut emptied);
    emptied
}

/// Sets emptied fields to null, outside of lists.
pub(super) fn leave_nulls(object: &mut Value, emptied: &FieldSet) {
    let Value::Object(fields) = object else {
        return;
    };
    for (element, inside) in emptied.children() {
        let Some(name) = element.as_field() else {
            continue;
        };
        if inside.is_owned() {
            fields.entry(name).or_insert(Value::Null);
        } else if let Some(value) = fields.get_mut(name) {
            leave_nulls(value, inside);
        }
    }
}

fn walk(
    schema: Option<Schema<'_>>,
    value: &mut Value,
    last: &FieldSet,
    kept: Option<&FieldSet>,
    emptied: &mut FieldSet,
) {
    match (shape::shape(schema, value), value) {
        (Shape::Fields, Value::Object(fields)) => prune_fields(schema, fields, last, kept, emptied),
        (shape @ (Shape::Set | Shape::Keyed(_)), Value::Array(list)) => {
            let items = shape::items(schema);
            let mut at = 0;
            list.retain_mut(|item| {
                let element = shape::element_or_index(shape, items, at, item);
                at += 1;
                let Some(last) = last.child(&element) else {
                    return true;
                };
                let kept = kept.and_then(|kept| kept.child(&element));
                if last.is_owned() && !kept.is_some_and(FieldSet::is_owned) {
                    return false;
                }
                let mut below = FieldSet::default();
                walk(items, item, last, kept, &mut below);
                emptied.push(element, below);
                true
            });
            emptied.sort();
        }
        _ => {}
    }
}

fn prune_fields(
    schema: Option<Schema<'_>>,
    fields: &mut Map<String, Value>,
    last: &FieldSet,
    kept: Option<&FieldSet>,
    emptied: &mut FieldSet,
) {
    for (element, last) in last.children() {
        let Some(name) = element.as_field() else {
            continue;
        };
        let Some(value) = fields.get_mut(name) else {
            continue;
        };
        let (below, named) = shape::part(schema, name);
        let kept = kept.and_then(|kept| kept.child(element));
        let was_ours = named || last.is_owned();
        let stays = kept.is_some_and(|kept| named || kept.is_owned());
        if was_ours && !stays {
            fields.remove(name);
            continue;
        }
        let before = part_count(value);
        let mut inside = FieldSet::default();
        walk(below, value, last, kept, &mut inside);
        if before > 0 && part_count(value) == 0 {
            fields.remove(name);
            inside.own();
        }
        emptied.push(element.clone(), inside);
    }
    emptied.sort();
}

fn part_count(value: &Value) -> usize {
    match value {
        Value::Object(fields) => fields.len(),
        Value::Array(items) => items.len(),
        _ => 0,
    }
}
