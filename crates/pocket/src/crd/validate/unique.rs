//! The uniqueness that sets and map lists promise.
//!
//! It is asked of the whole object apart from everything else, wherever there are lists. On update
//! nothing is said if the old object broke any of its promises already.

use std::{collections::HashMap, hash::Hash};

use serde_json::{Map, Value};

use super::{Findings, Place};
use crate::{
    schema::{ListType, Schema},
    status::FieldErrorKind,
};

/// What comes twice in the sets and map lists of a whole object.
pub(super) fn check(schema: Schema<'_>, new: &Value, old: Option<&Value>, findings: &mut Findings) {
    let mut found = Findings::default();
    object(schema, new, &Place::Root, true, &mut found);
    if found.0.is_empty() {
        return;
    }
    let mut known = Findings::default();
    if let Some(old) = old {
        object(schema, old, &Place::Root, true, &mut known);
    }
    if known.0.is_empty() {
        findings.0.append(&mut found.0);
    }
}

fn walk(schema: Schema<'_>, value: &Value, at: &Place<'_>, findings: &mut Findings) {
    match value {
        Value::Object(_) => object(schema, value, at, false, findings),
        Value::Array(items) => list(schema, items, at, findings),
        _ => {}
    }
}

/// The fields of an object. The metadata of a whole one has rules of its own.
fn object(
    schema: Schema<'_>,
    value: &Value,
    at: &Place<'_>,
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

fn list(schema: Schema<'_>, items: &[Value], at: &Place<'_>, findings: &mut Findings) {
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

fn set(items: &[Value], at: &Place<'_>, findings: &mut Findings) {
    let mut seen = HashMap::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        if comes_again(&mut seen, item) {
            duplicate(item.clone(), &at.index(index), findings);
        }
    }
}

/// Items are told apart by the keys they have; an item that is no object is the only thing told.
fn map(keys: &[Box<str>], items: &[Value], at: &Place<'_>, findings: &mut Findings) {
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

fn duplicate(value: Value, at: &Place<'_>, findings: &mut Findings) {
    findings.add(FieldErrorKind::Duplicate, at, Some(value), String::new());
}

/// Whether an item is met for the second time. However often it comes, it is told once.
fn comes_again<K: Eq + Hash>(seen: &mut HashMap<K, usize>, item: K) -> bool {
    let times = seen.entry(item).or_default();
    *times += 1;
    *times == 2
}
