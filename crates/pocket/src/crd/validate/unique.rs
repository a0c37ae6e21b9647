//! The uniqueness of items in sets and map lists.
//!
//! It is checked for the whole object, separately from everything else, wherever there are lists.
//! On update nothing is reported if the old object already violated it.

use std::{collections::HashMap, hash::Hash};

use serde_json::{Map, Value};

use super::{FieldPath, Findings};
use crate::{
    schema::{ListType, Schema},
    status::FieldErrorKind,
};

/// Reports duplicates in the sets and map lists of a whole object.
pub(super) fn check(schema: Schema<'_>, new: &Value, old: Option<&Value>, findings: &mut Findings) {
    let mut found = Findings::default();
    object(schema, new, &FieldPath::Root, true, &mut found);
    if found.0.is_empty() {
        return;
    }
    let mut known = Findings::default();
    if let Some(old) = old {
        object(schema, old, &FieldPath::Root, true, &mut known);
    }
    if known.0.is_empty() {
        findings.0.append(&mut found.0);
    }
}

fn walk(schema: Schema<'_>, value: &Value, at: &FieldPath<'_>, findings: &mut Findings) {
    match value {
        Value::Object(_) => object(schema, value, at, false, findings),
        Value::Array(items) => list(schema, items, at, findings),
        _ => {}
    }
}

/// Visits the fields of an object. The metadata of a whole object is validated elsewhere.
fn object(
    schema: Schema<'_>,
    value: &Value,
    at: &FieldPath<'_>,
    is_root: bool,
    findings: &mut Findings,
) {
    let is_whole = is_root || schema.node().embedded_resource;
    for (name, value) in value.as_object().into_iter().flatten() {
        if is_whole && name == "metadata" {
            continue;
        }
        if let Some(schema) = schema.field(name) {
            walk(schema, value, &at.field(name), findings);
        }
    }
}

fn list(schema: Schema<'_>, items: &[Value], at: &FieldPath<'_>, findings: &mut Findings) {
    match &schema.node().list_type {
        ListType::Set => set(items, at, findings),
        ListType::Map(keys) => map(keys, items, at, findings),
        ListType::Atomic => {}
    }
    let Some(schema) = schema.items() else {
        return;
    };
    for (index, item) in items.iter().enumerate() {
        walk(schema, item, &at.index(index), findings);
    }
}

fn set(items: &[Value], at: &FieldPath<'_>, findings: &mut Findings) {
    let mut seen = HashMap::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        if comes_again(&mut seen, item) {
            duplicate(item.clone(), &at.index(index), findings);
        }
    }
}

/// Items are identified by the keys they have; an item that is no object is the only one reported.
fn map(keys: &[Box<str>], items: &[Value], at: &FieldPath<'_>, findings: &mut Findings) {
    let odd = |(_, item): &(usize, &Value)| !item.is_object() && !item.is_null();
    if let Some((index, item)) = items.iter().enumerate().find(odd) {
        let detail = "must be an object for an array of list-type map".to_owned();
        let at = at.index(index);
        return findings.add(FieldErrorKind::Invalid, &at, Some(item.clone()), detail);
    }
    let mut seen = HashMap::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let key: Vec<_> = keys.iter().map(|key| item.get(&**key)).collect();
        if comes_again(&mut seen, key) {
            let shown = keys
                .iter()
                .filter_map(|key| Some((key.to_string(), item.get(&**key)?.clone())));
            let shown = shown.collect::<Map<_, _>>();
            duplicate(shown.into(), &at.index(index), findings);
        }
    }
}

fn duplicate(value: Value, at: &FieldPath<'_>, findings: &mut Findings) {
    findings.add(FieldErrorKind::Duplicate, at, Some(value), String::new());
}

/// Whether this is the second occurrence of an item, so that duplicates are reported once.
fn comes_again<K: Eq + Hash>(seen: &mut HashMap<K, usize>, item: K) -> bool {
    let times = seen.entry(item).or_default();
    *times += 1;
    *times == 2
}
