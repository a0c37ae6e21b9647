//! The directives of a patch.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::JsonMap;
use crate::{
    schema::go,
    status::{ApiError, Result},
};

const PATCH: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const DELETE: &str = "$deleteFromPrimitiveList";
const ORDER: &str = "$setElementOrder";
const BAD_RETAIN: &str = "invalid patch format of retainKeys";

/// The value of `$patch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PatchDirective {
    Merge,
    Replace,
    Delete,
}

impl PatchDirective {
    /// Removes `$patch` from the map; absent, it is a merge, which may not be given explicitly.
    pub(super) fn take(patch: &mut JsonMap) -> Result<Self> {
        let mark = match patch.get(PATCH).map(Value::as_str) {
            None => Self::Merge,
            Some(Some("replace")) => Self::Replace,
            Some(Some("delete")) => Self::Delete,
            Some(_) => {
                return Err(ApiError::failure(format!(
                    "unknown patch type: {} in map: {}",
                    word(&patch[PATCH]),
                    shown_map(patch)
                )));
            }
        };
        patch.remove(PATCH);
        Ok(mark)
    }
}

/// The given value in place of a word, as kube-apiserver shows it.
fn word(given: &Value) -> String {
    match given {
        Value::Number(number) => format!("%!s(int64={number})"),
        Value::Bool(flag) => format!("%!s(bool={flag})"),
        Value::Null => "%!s(<nil>)".to_owned(),
        other => shown(other),
    }
}

/// The directives about the keys and lists of one map.
#[derive(Debug, Default)]
pub(super) struct Directives {
    /// The keys of the live map that stay, if only some do.
    pub(super) retain: Option<HashSet<String>>,
    /// Scalars to remove from the list of this name.
    pub(super) delete: Vec<(String, Vec<Value>)>,
    /// The order of the list of this name.
    pub(super) order: Vec<(String, Vec<Value>)>,
}

impl Directives {
    /// Removes the directives from the map, which then has only fields.
    pub(super) fn take(patch: &mut JsonMap) -> Result<Self> {
        let mut found = Self::default();
        if !patch.keys().any(|key| key.starts_with('$')) {
            return Ok(found);
        }
        let names: Vec<String> = patch.keys().filter(|k| is_directive(k)).cloned().collect();
        for name in names {
            let value = patch.remove(&name).unwrap_or_default();
            if name == RETAIN {
                found.retain = Some(retained(value)?);
            } else if let Some(field) = name.strip_prefix(DELETE) {
                // A directive without a field name or a list deletes nothing.
                if let (Some(field), Value::Array(items)) = (field.strip_prefix('/'), value) {
                    found.delete.push((field.to_owned(), items));
                }
            } else if let Some(field) = name.strip_prefix(ORDER) {
                found.order.push(ordered(field, value)?);
            }
        }
        Ok(found)
    }
}

fn is_directive(key: &str) -> bool {
    key == PATCH || key == RETAIN || key.starts_with(DELETE) || key.starts_with(ORDER)
}

/// Whether a map has `$retainKeys`, and no other directive.
pub(super) fn retains(patch: &Value) -> bool {
    patch.get(RETAIN).is_some() && patch.get(PATCH).is_none()
}

fn retained(value: Value) -> Result<HashSet<String>> {
    let Value::Array(keys) = value else {
        return Err(ApiError::bad_request(BAD_RETAIN));
    };
    let names = keys.into_iter().filter_map(|key| match key {
        Value::String(key) => Some(key),
        _ => None,
    });
    Ok(names.collect())
}

fn ordered(field: &str, value: Value) -> Result<(String, Vec<Value>)> {
    match (field.strip_prefix('/'), value) {
        (Some(field), Value::Array(items)) if !field.is_empty() => Ok((field.to_owned(), items)),
        (Some(field), value) if !field.is_empty() => Err(not_a_list(&value)),
        _ => Err(ApiError::bad_request(
            "invalid patch format of setElementOrder list",
        )),
    }
}

pub(super) fn not_a_list(value: &Value) -> ApiError {
    let found = match value {
        Value::Null => "%!s(<nil>)",
        other => go::type_of(other),
    };
    ApiError::failure(format!(
        "expected a []interface {{}}, but received a {found}"
    ))
}

/// Drops the keys of `live` that are not retained. Every field the patch sets must be retained, or
/// the patch contradicts itself.
pub(super) fn retain(live: &mut JsonMap, patch: &JsonMap, kept: &HashSet<String>) -> Result<()> {
    let mut set = patch.iter().filter(|(_, value)| !value.is_null());
    if set.any(|(key, _)| !kept.contains(key)) {
        return Err(ApiError::bad_request(BAD_RETAIN));
    }
    live.retain(|key, _| kept.contains(key));
    Ok(())
}

/// The value of a patch where there is no live value: without nulls in maps, and without anything
/// that has a `$patch`, whatever its value. `None` if the value itself has one. Other directives
/// are ordinary fields here, as in kube-apiserver.
pub(super) fn plain(patch: Value) -> Option<Value> {
    match patch {
        Value::Object(map) if map.get(PATCH).is_some_and(|word| !word.is_null()) => None,
        Value::Object(map) => Some(Value::Object(plain_map(map))),
        Value::Array(items) => Some(Value::Array(plain_list(items))),
        scalar => Some(scalar),
    }
}

/// As [`plain`], for a map whose `$patch` was handled already.
pub(super) fn plain_map(map: JsonMap) -> JsonMap {
    let mut fields = Map::new();
    for (key, value) in map.into_iter().filter(|(_, value)| !value.is_null()) {
        if let Some(value) = plain(value) {
            fields.insert(key, value);
        }
    }
    fields
}

/// As [`plain`], for a list.
fn plain_list(items: Vec<Value>) -> Vec<Value> {
    items.into_iter().filter_map(plain).collect()
}

/// A value in an error message, truncated so that a hostile patch does not fill the response.
pub(super) fn shown(value: &Value) -> String {
    const MAX_SHOWN_BYTES: usize = 16 * 1024;
    let mut text = go::plain(value);
    if text.len() > MAX_SHOWN_BYTES {
        let end = (0..=MAX_SHOWN_BYTES)
            .rev()
            .find(|&i| text.is_char_boundary(i));
        text.truncate(end.unwrap_or_default());
        text.push_str("...");
    }
    text
}

pub(super) fn shown_map(map: &JsonMap) -> String {
    shown(&Value::Object(map.clone()))
}
