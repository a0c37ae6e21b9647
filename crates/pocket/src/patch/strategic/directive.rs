//! The directives of a patch: what is in it besides fields.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::super::words;
use super::Fields;
use crate::status::{ApiError, Result};

const PATCH: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const DELETE: &str = "$deleteFromPrimitiveList";
const ORDER: &str = "$setElementOrder";

/// What `$patch` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Merge,
    Replace,
    Delete,
}

impl Mark {
    /// Takes `$patch` out of the map; absent, it is `merge`.
    pub(super) fn take(patch: &mut Fields) -> Result<Self> {
        let mark = match patch.get(PATCH).map(Value::as_str) {
            None | Some(Some("merge")) => Self::Merge,
            Some(Some("replace")) => Self::Replace,
            Some(Some("delete")) => Self::Delete,
            Some(_) => {
                return Err(ApiError::failure(format!(
                    "unknown patch type: {} in map: {}",
                    shown(&patch[PATCH]),
                    shown_map(patch)
                )));
            }
        };
        patch.remove(PATCH);
        Ok(mark)
    }
}

/// The directives about the keys and lists of one map.
#[derive(Debug, Default)]
pub(super) struct Directives {
    /// The keys of the live map that stay, if only some do.
    pub(super) retain: Option<HashSet<String>>,
    /// Scalars that leave the list of this name.
    pub(super) delete: Vec<(String, Vec<Value>)>,
    /// The order of the list of this name.
    pub(super) order: Vec<(String, Vec<Value>)>,
}

impl Directives {
    /// Takes them out of the map, which then has fields alone.
    pub(super) fn take(patch: &mut Fields) -> Result<Self> {
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
                let bad = "invalid patch format of primitive list";
                found.delete.push(about_list(field, value, bad)?);
            } else if let Some(field) = name.strip_prefix(ORDER) {
                let bad = "invalid patch format of setElementOrder list";
                found.order.push(about_list(field, value, bad)?);
            }
        }
        Ok(found)
    }
}

fn is_directive(key: &str) -> bool {
    key == PATCH || key == RETAIN || key.starts_with(DELETE) || key.starts_with(ORDER)
}

fn retained(value: Value) -> Result<HashSet<String>> {
    let keys: Option<HashSet<String>> = match value {
        Value::Array(keys) => keys
            .into_iter()
            .map(|key| match key {
                Value::String(key) => Some(key),
                _ => None,
            })
            .collect(),
        _ => None,
    };
    keys.ok_or_else(|| ApiError::failure("invalid patch format of retainKeys"))
}

fn about_list(field: &str, value: Value, bad: &str) -> Result<(String, Vec<Value>)> {
    match (field.strip_prefix('/'), value) {
        (Some(field), Value::Array(items)) if !field.is_empty() => Ok((field.to_owned(), items)),
        _ => Err(ApiError::failure(bad)),
    }
}

/// Drops the keys of `live` that are not kept. Every field the patch sets must be kept, or the
/// patch contradicts itself.
pub(super) fn retain(live: &mut Fields, patch: &Fields, kept: &HashSet<String>) -> Result<()> {
    let mut set = patch.iter().filter(|(_, value)| !value.is_null());
    if let Some((key, _)) = set.find(|(key, _)| !kept.contains(*key)) {
        return Err(ApiError::failure(format!(
            "invalid patch format of retainKeys: {key:?} is set but not in the list"
        )));
    }
    live.retain(|key, _| kept.contains(key));
    Ok(())
}

/// The value that a patch means where nothing is live: no directives, no nulls in maps, no
/// elements that were to be deleted. None if the value itself was to be deleted.
pub(super) fn plain(patch: Value) -> Result<Option<Value>> {
    match patch {
        Value::Object(mut map) => {
            if Mark::take(&mut map)? == Mark::Delete {
                return Ok(None);
            }
            Ok(Some(Value::Object(plain_map(map)?)))
        }
        Value::Array(items) => Ok(Some(Value::Array(plain_list(items)?))),
        scalar => Ok(Some(scalar)),
    }
}

/// As [`plain`], for a map whose `$patch` was already looked at.
pub(super) fn plain_map(mut map: Fields) -> Result<Fields> {
    Directives::take(&mut map)?;
    let mut fields = Map::new();
    for (key, value) in map.into_iter().filter(|(_, value)| !value.is_null()) {
        if let Some(value) = plain(value)? {
            fields.insert(key, value);
        }
    }
    Ok(fields)
}

/// As [`plain`], for a list: an element marked `replace` or `delete` is a marker and no
/// element.
pub(super) fn plain_list(items: Vec<Value>) -> Result<Vec<Value>> {
    let mut list = Vec::with_capacity(items.len());
    for item in items {
        match item {
            Value::Object(mut map) if map.contains_key(PATCH) => {
                if Mark::take(&mut map)? == Mark::Merge {
                    list.push(Value::Object(plain_map(map)?));
                }
            }
            other => list.extend(plain(other)?),
        }
    }
    Ok(list)
}

/// A value in an error message, cut so that a hostile patch does not fill the answer.
pub(super) fn shown(value: &Value) -> String {
    const MOST: usize = 512;
    let mut text = words::plain(value);
    if text.len() > MOST {
        let end = (0..=MOST).rev().find(|&i| text.is_char_boundary(i));
        text.truncate(end.unwrap_or_default());
        text.push_str("...");
    }
    text
}

pub(super) fn shown_map(map: &Fields) -> String {
    shown(&Value::Object(map.clone()))
}
