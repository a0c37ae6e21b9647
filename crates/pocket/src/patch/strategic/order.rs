//! The order of a merged list.
//!
//! Elements that the client listed come in the client's order, elements that only the server has
//! keep their order, and the two are interleaved by their previous positions: an element of the
//! server stays in front of what it was in front of, and behind what is new.

use std::collections::HashMap;

use serde_json::Value;

use super::{
    JsonMap, ListRule,
    directive::{not_a_list, shown},
    list, list_rule,
};
use crate::{
    schema::Schema,
    status::{ApiError, Result},
};

/// The position of each element in a list, by its key.
#[derive(Debug)]
pub(super) struct Positions<'k> {
    /// The merge key; elements of a list of scalars are their own keys.
    key: Option<&'k str>,
    of: HashMap<Value, usize>,
}

impl<'k> Positions<'k> {
    /// No elements yet, of a list with this merge key.
    pub(super) fn by(key: &'k str) -> Self {
        Self {
            key: Some(key),
            of: HashMap::new(),
        }
    }

    pub(super) fn of_maps(list: &[Value], key: &'k str) -> Self {
        Self::of(list, Some(key))
    }

    pub(super) fn of_scalars(list: &[Value]) -> Self {
        Self::of(list, None)
    }

    fn of(list: &[Value], key: Option<&'k str>) -> Self {
        let mut positions = Self {
            key,
            of: HashMap::with_capacity(list.len()),
        };
        for (i, item) in list.iter().enumerate() {
            let id = positions.id(item).clone();
            positions.of.entry(id).or_insert(i);
        }
        positions
    }

    /// Adds an element after those that are there.
    pub(super) fn push(&mut self, id: Value) {
        let next = self.of.len();
        self.of.entry(id).or_insert(next);
    }

    /// The identity of an element. One whose key the client wrote as null has lost it.
    fn id<'v>(&self, item: &'v Value) -> &'v Value {
        static NULL: Value = Value::Null;
        self.key.map_or(item, |key| item.get(key).unwrap_or(&NULL))
    }

    fn get(&self, item: &Value) -> Option<usize> {
        self.of.get(self.id(item)).copied()
    }
}

/// Orders a merged list: `before` is the live list, `wanted` the client's order.
pub(super) fn arrange(
    merged: Vec<Value>,
    before: &Positions<'_>,
    wanted: &Positions<'_>,
) -> Vec<Value> {
    let mut client: Vec<(usize, Option<usize>, Value)> = Vec::new();
    let mut server: Vec<(Option<usize>, Value)> = Vec::new();
    for item in merged {
        match (wanted.get(&item), before.get(&item)) {
            (Some(rank), at) => client.push((rank, at, item)),
            (None, at) => server.push((at, item)),
        }
    }
    client.sort_by_key(|(rank, ..)| *rank);
    // Duplicates come together.
    server.sort_by_key(|(at, _)| at.unwrap_or(usize::MAX));
    let mut list = Vec::with_capacity(client.len() + server.len());
    let mut server = server.into_iter().peekable();
    for (_, at, item) in client {
        while let Some((_, kept)) = server.next_if(|(own, _)| stays_in_front(*own, at)) {
            list.push(kept);
        }
        list.push(item);
    }
    list.extend(server.map(|(_, item)| item));
    list
}

/// Only an element that existed before keeps a position: what the client adds comes first.
fn stays_in_front(server: Option<usize>, client: Option<usize>) -> bool {
    matches!((server, client), (Some(server), Some(client)) if server < client)
}

/// Merges a list whose order the patch sets with `$setElementOrder`.
pub(super) fn merge_ordered(
    schema: Option<Schema<'_>>,
    live: &mut JsonMap,
    name: &str,
    patch: Option<Value>,
    order: &[Value],
) -> Result<()> {
    let key = match list_rule(schema) {
        ListRule::Keyed(key) => Some(key),
        ListRule::Set | ListRule::Replace => None,
    };
    let patch = match patch {
        None => None,
        Some(Value::Array(items)) => Some(items),
        Some(other) => return Err(not_a_list(&other)),
    };
    let wanted = wanted(key, order)?;
    check(key, patch.as_deref().unwrap_or_default(), order)?;
    let had = match live.remove(name) {
        None => None,
        Some(Value::Array(items)) => Some(items),
        Some(other) => return Err(not_a_list(&other)),
    };
    let before = Positions::of(had.as_deref().unwrap_or_default(), key);
    let merged = match (had, patch) {
        (None, None) => return Ok(()),
        (Some(live), None) => {
            key.map_or(Ok(()), |key| list::check_keys(&live, key))?;
            live
        }
        (live, Some(patch)) => list::merge(schema, live.unwrap_or_default(), patch)?,
    };
    live.insert(
        name.to_owned(),
        Value::Array(arrange(merged, &before, &wanted)),
    );
    Ok(())
}

fn wanted<'k>(key: Option<&'k str>, order: &[Value]) -> Result<Positions<'k>> {
    if let Some(key) = key
        && let Some(item) = order.iter().find(|item| item.get(key).is_none())
    {
        return Err(ApiError::failure(format!(
            "map: {} does not contain declared merge key: {key}",
            shown(item)
        )));
    }
    Ok(Positions::of(order, key))
}

/// Checks that the elements of the patch are all in the order list, in that order.
fn check(key: Option<&str>, patch: &[Value], order: &[Value]) -> Result<()> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let id = |item| match key {
        Some(key) => Value::get(item, key),
        None => Some(item),
    };
    let mut rest = order.iter();
    for item in patch.iter().filter(|item| item.get("$patch").is_none()) {
        if !rest.any(|ordered| id(ordered) == id(item)) {
            return Err(ApiError::failure(format!(
                "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
                shown(&Value::Array(patch.to_vec())),
                shown(&Value::Array(order.to_vec()))
            )));
        }
    }
    Ok(())
}
