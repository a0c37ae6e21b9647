//! Taking away what an applier no longer applies.
//!
//! A field goes when the applier owned it, does not claim it any more, and nobody else owns it.
//! A struct counts as owned by whoever owns something in it: when its last owner leaves, it goes
//! with all that was defaulted into it.

use serde_json::{Map, Value};

use crate::{
    patch::managed::{
        FieldSet,
        shape::{self, Shape},
    },
    schema::Schema,
};

/// Takes out of `value` what `last` owned and `kept` does not. Returns the fields that went because
/// nothing was left in them: their owner did not give them up, and left null.
pub(super) fn prune(
    schema: Schema<'_>,
    value: &mut Value,
    last: &FieldSet,
    kept: &FieldSet,
) -> Vec<String> {
    let mut emptied = Vec::new();
    let at = Some(String::new());
    walk(Some(schema), value, last, Some(kept), (at, &mut emptied));
    emptied
}

/// Puts null where something was emptied.
pub(super) fn leave_nulls(object: &mut Value, emptied: &[String]) {
    for pointer in emptied {
        let Some((parent, name)) = pointer.rsplit_once('/') else {
            continue;
        };
        if let Some(Value::Object(fields)) = object.pointer_mut(parent) {
            fields.entry(unescaped(name)).or_insert(Value::Null);
        }
    }
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn unescaped(name: &str) -> String {
    name.replace("~1", "/").replace("~0", "~")
}

/// Where a value is, if no list leads there, and what was emptied so far.
type Trail<'a> = (Option<String>, &'a mut Vec<String>);

fn walk(
    schema: Option<Schema<'_>>,
    value: &mut Value,
    last: &FieldSet,
    kept: Option<&FieldSet>,
    trail: Trail<'_>,
) {
    match (shape::shape(schema, value), value) {
        (Shape::Fields, Value::Object(fields)) => prune_fields(schema, fields, last, kept, trail),
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
                walk(items, item, last, kept, (None, &mut *trail.1));
                true
            });
        }
        _ => {}
    }
}

fn prune_fields(
    schema: Option<Schema<'_>>,
    fields: &mut Map<String, Value>,
    last: &FieldSet,
    kept: Option<&FieldSet>,
    (at, emptied): Trail<'_>,
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
        let here = at.as_ref().map(|at| format!("{at}/{}", escaped(name)));
        walk(below, value, last, kept, (here.clone(), &mut *emptied));
        if before > 0 && part_count(value) == 0 {
            fields.remove(name);
            emptied.extend(here);
        }
    }
}

fn part_count(value: &Value) -> usize {
    match value {
        Value::Object(fields) => fields.len(),
        Value::Array(items) => items.len(),
        _ => 0,
    }
}
