//! Lists: their length and their entries.

use std::collections::HashMap;

use serde_json::Value;

use super::{FieldPath, Findings, ObjectLevel, walk};
use crate::schema::{Limits, ListType, Schema};

pub(super) fn check(
    schema: Schema<'_>,
    items: &[Value],
    old: Option<&Value>,
    at: &FieldPath<'_>,
    findings: &mut Findings,
) {
    let node = schema.node();
    if let Some(limits) = &node.limits {
        length(limits, items, at, findings);
    }
    let Some(schema_of_items) = schema.items() else {
        return;
    };
    let old = OldItems::new(schema, old);
    for (index, item) in items.iter().enumerate() {
        walk(
            schema_of_items,
            item,
            old.of(item),
            &at.index(index),
            ObjectLevel::No,
            findings,
        );
    }
}

fn length(limits: &Limits, items: &[Value], at: &FieldPath<'_>, findings: &mut Findings) {
    let count = items.len() as u64;
    if let Some(most) = limits.max_items.filter(|&most| count > most) {
        findings.too_many(at, count, most);
    }
    if let Some(least) = limits.min_items.filter(|&least| count < least) {
        let words = format!("should have at least {least} items");
        findings.in_body(at, &Value::from(count), words);
    }
}

/// The value of a key of an item; an absent one counts with its default.
fn key_of<'v, 's: 'v>(schema: Schema<'s>, key: &str, item: &'v Value) -> Option<&'v Value> {
    item.get(key)
        .or_else(|| schema.items()?.property(key)?.node().default.as_ref())
}

/// The old list, by the identity of its items. Only items of map lists have one; the items of other
/// lists are not correlated.
pub(crate) struct OldItems<'v> {
    schema: Schema<'v>,
    keys: &'v [Box<str>],
    entries: HashMap<Vec<Option<&'v Value>>, &'v Value>,
}

impl<'v> OldItems<'v> {
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

    /// The old item that `item` is a new version of.
    pub(crate) fn of(&self, item: &Value) -> Option<&'v Value> {
        if self.entries.is_empty() {
            return None;
        }
        self.entries.get(&self.identity(item)).copied()
    }
}
