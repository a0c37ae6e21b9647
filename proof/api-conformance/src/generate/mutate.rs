//! Changes to a value: some that its type allows, some that no rule allows.

use neap_load::rng::SeededRng;
use serde_json::Value;

use super::value::{bad_text, chance, fitting, of_another_type, pick};
use crate::schema::Types;

/// A path in a value.
pub(super) type Path = Vec<String>;

/// Fields that the server sets or preserves; other calls are about them.
const EXCLUDED: [&str; 4] = ["managedFields", "apiVersion", "kind", "ownerReferences"];

/// Every path in a value, except to what servers write themselves.
pub(super) fn places(value: &Value) -> Vec<Path> {
    fn walk(value: &Value, path: &mut Path, out: &mut Vec<Path>) {
        if !path.is_empty() {
            out.push(path.clone());
        }
        match value {
            Value::Object(fields) => {
                for (key, item) in fields {
                    if EXCLUDED.contains(&key.as_str()) {
                        continue;
                    }
                    path.push(key.clone());
                    walk(item, path, out);
                    path.pop();
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    path.push(index.to_string());
                    walk(item, path, out);
                    path.pop();
                }
            }
            _ => {}
        }
    }
    let mut out = Vec::new();
    walk(value, &mut Path::new(), &mut out);
    out
}

pub(super) fn at<'a>(value: &'a mut Value, path: &[String]) -> Option<&'a mut Value> {
    path.iter().try_fold(value, |value, key| match value {
        Value::Object(fields) => fields.get_mut(key),
        Value::Array(items) => items.get_mut(key.parse::<usize>().ok()?),
        _ => None,
    })
}

/// Sets a value, creating its parents.
pub(super) fn put(value: &mut Value, path: &[String], new: Value) {
    let Some((key, rest)) = path.split_first() else {
        *value = new;
        return;
    };
    if let Value::Array(items) = value {
        let index = key.parse::<usize>().unwrap_or(0).min(items.len());
        if index == items.len() {
            items.push(Value::Null);
        }
        return put(&mut items[index], rest, new);
    }
    if !value.is_object() {
        *value = Value::Object(serde_json::Map::new());
    }
    if let Some(fields) = value.as_object_mut() {
        put(fields.entry(key.clone()).or_insert(Value::Null), rest, new);
    }
}

pub(super) fn remove(value: &mut Value, path: &[String]) {
    let Some((key, parents)) = path.split_last() else {
        return;
    };
    match at(value, parents) {
        Some(Value::Object(fields)) => drop(fields.remove(key)),
        Some(Value::Array(items)) => {
            if let Some(index) = key
                .parse::<usize>()
                .ok()
                .filter(|index| *index < items.len())
            {
                items.remove(index);
            }
        }
        _ => {}
    }
}

/// A path that the type has, and a value for it.
pub(super) fn by_type(
    types: &Types,
    root: &str,
    value: &Value,
    rng: &mut SeededRng,
) -> Option<(Path, Value)> {
    let mut schema = types.of(root);
    let mut here = Some(value);
    let mut path = Path::new();
    loop {
        schema = types.resolve(schema).1;
        let key = if schema["properties"].is_object() {
            let keys: Vec<_> = schema["properties"]
                .as_object()?
                .keys()
                .filter(|key| !skip(&path, key))
                .collect();
            if keys.is_empty() {
                return None;
            }
            // Existing fields lead deeper; half of the time one of them is taken.
            let there: Vec<_> = keys
                .iter()
                .filter(|key| here.is_some_and(|value| !value[key.as_str()].is_null()))
                .copied()
                .collect();
            let key = if !there.is_empty() && chance(rng, 2) {
                *pick(rng, &there)
            } else {
                *pick(rng, &keys)
            };
            schema = &schema["properties"][key.as_str()];
            here = here.and_then(|value| value.get(key));
            key.clone()
        } else if schema["items"].is_object() {
            schema = &schema["items"];
            let length = here.and_then(Value::as_array).map_or(0, Vec::len);
            let index = rng.below(length + 1);
            here = here.and_then(|value| value.get(index));
            index.to_string()
        } else if schema["additionalProperties"].is_object() {
            schema = &schema["additionalProperties"];
            here = None;
            (*pick(
                rng,
                &["a", "app", "example.com/x", "Bad Key", "k.l", "tier"],
            ))
            .to_owned()
        } else {
            return None;
        };
        path.push(key);
        let resolved = types.resolve(schema).1;
        let deeper = ["properties", "items", "additionalProperties"]
            .iter()
            .any(|inner| resolved[*inner].is_object());
        if !deeper || (path.len() > 1 && chance(rng, 8)) {
            let key = path
                .iter()
                .rev()
                .find(|key| key.parse::<usize>().is_err())
                .cloned()
                .unwrap_or_default();
            return Some((path, fitting(types, schema, &key, rng, 2)));
        }
    }
}

fn skip(path: &Path, key: &str) -> bool {
    EXCLUDED.contains(&key) && path.len() < 2
        || path.is_empty() && key == "status"
        || path.last().is_some_and(|last| last == "metadata")
            && path.len() == 1
            && matches!(key, "name" | "namespace")
}

/// Makes one change.
pub(super) fn mutate(types: &Types, root: &str, value: &mut Value, rng: &mut SeededRng) {
    let places = places(value);
    let somewhere = |rng: &mut SeededRng| {
        let at = pick(rng, &places).clone();
        (at != ["metadata", "name"] && at != ["metadata"]).then_some(at)
    };
    match rng.below(20) {
        0..=10 => {
            if let Some((path, new)) = by_type(types, root, value, rng) {
                put(value, &path, new);
            }
        }
        _ if places.is_empty() => {}
        11 | 12 => {
            if let Some(path) = somewhere(rng) {
                remove(value, &path);
            }
        }
        13 => {
            if let Some(here) = somewhere(rng).and_then(|path| at(value, &path)) {
                *here = of_another_type(here, rng);
            }
        }
        14 => {
            if let Some(here) = somewhere(rng).and_then(|path| at(value, &path)) {
                *here = Value::Null;
            }
        }
        15 => unknown_field(value, &places, rng),
        16 | 17 => change_list(value, &places, rng),
        _ => {
            if let Some(here) = somewhere(rng).and_then(|path| at(value, &path)) {
                if here.is_string() {
                    *here = bad_text(rng).into();
                } else if here.is_number() {
                    *here = (*pick(rng, &[0, -1, 1, 65536, 2_147_483_648_i64])).into();
                }
            }
        }
    }
}

fn unknown_field(value: &mut Value, places: &[Path], rng: &mut SeededRng) {
    let path = pick(rng, places).clone();
    if let Some(Value::Object(fields)) = at(value, &path) {
        fields.insert((*pick(rng, &["unknown", "Name", "zzz"])).into(), "x".into());
    } else {
        value["unknown"] = 1.into();
    }
}

fn change_list(value: &mut Value, places: &[Path], rng: &mut SeededRng) {
    let mut lists: Vec<_> = places.to_vec();
    lists.retain(|path| matches!(at(value, path), Some(Value::Array(_))));
    if lists.is_empty() {
        return;
    }
    let path = pick(rng, &lists).clone();
    let Some(Value::Array(items)) = at(value, &path) else {
        return;
    };
    match (items.len(), rng.below(4)) {
        (0, _) => items.push("x".into()),
        (_, 0) => items.push(items[0].clone()),
        (_, 1) => items.clear(),
        (_, 2) => items.reverse(),
        (length, _) => {
            let mut copy = items[rng.below(length)].clone();
            if let Some(name) = copy.get_mut("name") {
                *name = format!("n{}", rng.below(100)).into();
            }
            items.push(copy);
        }
    }
}
