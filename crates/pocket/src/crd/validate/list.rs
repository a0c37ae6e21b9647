//! Lists: their length, their entries, and the uniqueness that sets and map lists promise.

use std::{collections::HashMap, hash::Hash};

use serde_json::{Map, Value};

use super::{Findings, Place, Whole, walk};
use crate::{
    schema::{Limits, ListType, Schema},
    status::FieldErrorKind,
};

pub(super) fn check(
    schema: Schema<'_>,
    items: &[Value],
    old: Option<&Value>,
    at: &Place<'_>,
    findings: &mut Findings,
) {
    let node = schema.node();
    if let Some(limits) = &node.limits {
        length(limits, items, at, findings);
    }
    match &node.list_type {
        ListType::Set => set(items, at, findings),
        ListType::Map(keys) => map(schema, keys, items, at, findings),
        ListType::Atomic => {}
    }
    let Some(schema_of_items) = schema.items() else {
        return;
    };
    let old = Old::new(schema, old);
    for (index, item) in items.iter().enumerate() {
        walk(
            schema_of_items,
            item,
            old.of(item),
            &at.index(index),
            Whole::No,
            findings,
        );
    }
}

fn length(limits: &Limits, items: &[Value], at: &Place<'_>, findings: &mut Findings) {
    let count = items.len() as u64;
    if let Some(most) = limits.max_items.filter(|&most| count > most) {
        findings.too_many(at, count, most);
    }
    if let Some(least) = limits.min_items.filter(|&least| count < least) {
        let words = format!("should have at least {least} items");
        findings.in_body(at, &Value::from(count), words);
    }
}

/// Whether an item is met for the second time. However often it comes, it is told once.
fn comes_again<K: Eq + Hash>(seen: &mut HashMap<K, usize>, item: K) -> bool {
    let times = seen.entry(item).or_default();
    *times += 1;
    *times == 2
}

fn set(items: &[Value], at: &Place<'_>, findings: &mut Findings) {
    let mut seen = HashMap::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        if comes_again(&mut seen, item) {
            let place = at.index(index);
            findings.add(
                FieldErrorKind::Duplicate,
                &place,
                Some(item.clone()),
                String::new(),
            );
        }
    }
}

fn map(
    schema: Schema<'_>,
    keys: &[Box<str>],
    items: &[Value],
    at: &Place<'_>,
    findings: &mut Findings,
) {
    let mut seen = HashMap::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        if !item.is_object() && !item.is_null() {
            let detail = "must be an object for an array of list-type map".to_owned();
            let place = at.index(index);
            findings.add(FieldErrorKind::Invalid, &place, Some(item.clone()), detail);
            continue;
        }
        let key: Vec<_> = keys.iter().map(|key| key_of(schema, key, item)).collect();
        if comes_again(&mut seen, key) {
            let shown = keys
                .iter()
                .filter_map(|key| Some((key.to_string(), item.get(&**key)?.clone())))
                .collect::<Map<_, _>>();
            let place = at.index(index);
            findings.add(
                FieldErrorKind::Duplicate,
                &place,
                Some(shown.into()),
                String::new(),
            );
        }
    }
}

/// A key that is not given counts with its default.
fn key_of<'v, 's: 'v>(schema: Schema<'s>, key: &str, item: &'v Value) -> Option<&'v Value> {
    item.get(key)
        .or_else(|| schema.items()?.property(key)?.node().default.as_ref())
}

/// The old list, by the identity of its entries. Only the entries of map lists have one; the
/// entries of other lists are correlated with nothing.
pub(crate) struct Old<'v> {
    schema: Schema<'v>,
    keys: &'v [Box<str>],
    entries: HashMap<Vec<Option<&'v Value>>, &'v Value>,
}

impl<'v> Old<'v> {
    pub(crate) fn new(schema: Schema<'v>, old: Option<&'v Value>) -> Self {
        let mut found = Self {
            schema,
            keys: &[],
            entries: HashMap::new(),
        };
        if let (ListType::Map(keys), Some(Value::Array(old))) = (&schema.node().list_type, old) {
            found.keys = keys;
            for entry in old {
                found.entries.entry(found.identity(entry)).or_insert(entry);
            }
        }
        found
    }

    fn identity<'i>(&self, item: &'i Value) -> Vec<Option<&'i Value>>
    where
        'v: 'i,
    {
        let keys = self.keys.iter();
        keys.map(|key| key_of(self.schema, key, item)).collect()
    }

    /// The old entry that `item` is a new version of.
    pub(crate) fn of(&self, item: &Value) -> Option<&'v Value> {
        if self.entries.is_empty() {
            return None;
        }
        self.entries.get(&self.identity(item)).copied()
    }
}
