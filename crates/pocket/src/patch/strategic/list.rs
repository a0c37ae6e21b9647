//! Lists that merge element by element.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{
    JsonMap, ListRule,
    directive::{PatchDirective, plain_map, shown, shown_map},
    list_rule, merge_map, order,
};
use crate::{
    schema::Schema,
    status::{ApiError, Result},
};

/// The live list with the patch's list merged into it.
pub(super) fn merge(
    schema: Option<Schema<'_>>,
    live: Vec<Value>,
    patch: Vec<Value>,
) -> Result<Vec<Value>> {
    match list_rule(schema) {
        // The list is taken as it is: directives in it are ordinary fields.
        ListRule::Replace => Ok(patch),
        ListRule::Set => {
            check_elements(&live, &patch, false)?;
            Ok(merge_set(live, &patch))
        }
        ListRule::Keyed(key) => {
            check_elements(&live, &patch, true)?;
            merge_keyed(schema.and_then(Schema::items), key, live, patch)
        }
    }
}

/// Checks that the elements of a merged list are all maps or all scalars of one type.
fn check_elements(live: &[Value], patch: &[Value], maps: bool) -> Result<()> {
    let mut all = live.iter().chain(patch);
    let first = all.clone().next().map(std::mem::discriminant);
    let fits = |item: &Value| {
        item.is_object() == maps && !item.is_array() && Some(std::mem::discriminant(item)) == first
    };
    if all.all(fits) {
        return Ok(());
    }
    let (live, patch) = (Value::from(live), Value::from(patch));
    Err(ApiError::failure(format!(
        "list element types are not identical: [{} {}]",
        shown(&live),
        shown(&patch)
    )))
}

/// Merges scalars: those in the patch come in the patch's order; the rest stays in place.
fn merge_set(live: Vec<Value>, patch: &[Value]) -> Vec<Value> {
    let before = order::Positions::of_scalars(&live);
    let mut seen = HashSet::new();
    let all = live.into_iter().chain(patch.iter().cloned());
    let merged: Vec<Value> = all.filter(|v| seen.insert(v.clone())).collect();
    let wanted = order::Positions::of_scalars(patch);
    order::arrange(merged, &before, &wanted)
}

fn merge_keyed(
    items: Option<Schema<'_>>,
    key: &str,
    mut live: Vec<Value>,
    patch: Vec<Value>,
) -> Result<Vec<Value>> {
    let before = order::Positions::of_maps(&live, key);
    let elements = Elements::sort_out(key, patch)?;
    if elements.replaces {
        return Ok(elements.merged.into_iter().map(plain_element).collect());
    }
    if !elements.deleted.is_empty() {
        live.retain(|item| !item.get(key).is_some_and(|k| elements.deleted.contains(k)));
    }
    let keyed = check_keys(&live, key);
    let mut wanted = order::Positions::by(key);
    let mut index = first_by_key(&live, key);
    for (id, patch) in elements.merged {
        wanted.push(id.clone());
        if let Some(Value::Object(old)) = index.get(&id).and_then(|&i| live.get_mut(i)) {
            merge_map(items, old, patch)?;
        } else {
            index.insert(id, live.len());
            live.push(Value::Object(plain_map(patch)));
        }
    }
    keyed?;
    Ok(order::arrange(live, &before, &wanted))
}

/// Checks that live elements have their merge keys; without them the list cannot be ordered.
pub(super) fn check_keys(live: &[Value], key: &str) -> Result<()> {
    let mut maps = live.iter().filter_map(Value::as_object);
    match maps.find(|map| !map.contains_key(key)) {
        Some(map) => Err(no_merge_key(map, key)),
        None => Ok(()),
    }
}

fn plain_element((_, map): (Value, JsonMap)) -> Value {
    Value::Object(plain_map(map))
}

fn first_by_key(list: &[Value], key: &str) -> HashMap<Value, usize> {
    let mut index = HashMap::with_capacity(list.len());
    for (i, item) in list.iter().enumerate() {
        if let Some(id) = item.get(key) {
            index.entry(id.clone()).or_insert(i);
        }
    }
    index
}

/// The elements of a patch's list, by their `$patch`.
struct Elements {
    /// The patch's elements are the whole list.
    replaces: bool,
    /// Keys of the elements to delete.
    deleted: HashSet<Value>,
    /// Elements to merge or add, with their keys.
    merged: Vec<(Value, JsonMap)>,
}

impl Elements {
    fn sort_out(key: &str, patch: Vec<Value>) -> Result<Self> {
        let mut found = Self {
            replaces: false,
            deleted: HashSet::new(),
            merged: Vec::with_capacity(patch.len()),
        };
        for item in patch {
            let Value::Object(mut map) = item else {
                continue;
            };
            if map.get("$patch").is_some_and(|word| word == "merge") {
                let why = "merging lists cannot yet be specified in the patch";
                return Err(ApiError::failure(why));
            }
            let mark = PatchDirective::take(&mut map)?;
            match (mark, map.get(key).cloned()) {
                // An element with `$patch: replace` is only a marker.
                (PatchDirective::Replace, _) => found.replaces = true,
                (PatchDirective::Delete, Some(id)) => {
                    found.deleted.insert(id);
                }
                (PatchDirective::Merge, Some(id)) => found.merged.push((id, map)),
                (PatchDirective::Merge, None) => return Err(no_merge_key(&map, key)),
                (PatchDirective::Delete, None) => {
                    map.insert("$patch".into(), "delete".into());
                    return Err(no_merge_key(&map, key));
                }
            }
        }
        Ok(found)
    }
}

fn no_merge_key(map: &JsonMap, key: &str) -> ApiError {
    ApiError::failure(format!(
        "map: {} does not contain declared merge key: {key}",
        shown_map(map)
    ))
}

/// Removes scalars from a list.
pub(super) fn subtract(live: &mut Vec<Value>, gone: &[Value]) {
    let gone: HashSet<&Value> = gone.iter().collect();
    live.retain(|item| !gone.contains(item));
}
