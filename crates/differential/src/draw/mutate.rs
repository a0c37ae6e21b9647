//! Changes to a value: some that its type allows, some that no rule allows.

use neap_load::dice::Dice;
use serde_json::Value;

use super::value::{bad_text, chance, fitting, of_another_type, pick};
use crate::schema::Types;

/// A place in a value.
pub(super) type Path = Vec<String>;

/// Left to calls that are about them: the server fills or keeps these.
const APART: [&str; 4] = ["managedFields", "apiVersion", "kind", "ownerReferences"];

/// Every place in a value, but for what servers write themselves.
pub(super) fn places(value: &Value) -> Vec<Path> {
    fn walk(value: &Value, path: &mut Path, out: &mut Vec<Path>) {
        if !path.is_empty() {
            out.push(path.clone());
        }
        match value {
            Value::Object(fields) => {
                for (key, item) in fields {
                    if APART.contains(&key.as_str()) {
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

/// The value at a place.
pub(super) fn at<'a>(value: &'a mut Value, path: &[String]) -> Option<&'a mut Value> {
    path.iter().try_fold(value, |value, key| match value {
        Value::Object(fields) => fields.get_mut(key),
        Value::Array(items) => items.get_mut(key.parse::<usize>().ok()?),
        _ => None,
    })
}

/// Puts a value at a place, making what leads to it.
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

/// Takes away what is at a place.
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

/// A place that the type knows, and a value for it.
pub(super) fn by_type(
    types: &Types,
    root: &str,
    value: &Value,
    dice: &mut Dice,
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
            // What is there already leads deeper; half of the time it is followed.
            let there: Vec<_> = keys
                .iter()
                .filter(|key| here.is_some_and(|value| !value[key.as_str()].is_null()))
                .copied()
                .collect();
            let key = if !there.is_empty() && chance(dice, 2) {
                *pick(dice, &there)
            } else {
                *pick(dice, &keys)
            };
            schema = &schema["properties"][key.as_str()];
            here = here.and_then(|value| value.get(key));
            key.clone()
        } else if schema["items"].is_object() {
            schema = &schema["items"];
            let length = here.and_then(Value::as_array).map_or(0, Vec::len);
            let index = dice.below(length + 1);
            here = here.and_then(|value| value.get(index));
            index.to_string()
        } else if schema["additionalProperties"].is_object() {
            schema = &schema["additionalProperties"];
            here = None;
            (*pick(
                dice,
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
        if !deeper || (path.len() > 1 && chance(dice, 8)) {
            let key = path
                .iter()
                .rev()
                .find(|key| key.parse::<usize>().is_err())
                .cloned()
                .unwrap_or_default();
            return Some((path, fitting(types, schema, &key, dice, 2)));
        }
    }
}

fn skip(path: &Path, key: &str) -> bool {
    APART.contains(&key) && path.len() < 2
        || path.is_empty() && key == "status"
        || path.last().is_some_and(|last| last == "metadata")
            && path.len() == 1
            && matches!(key, "name" | "namespace")
}

/// Changes one thing.
pub(super) fn mutate(types: &Types, root: &str, value: &mut Value, dice: &mut Dice) {
    let places = places(value);
    let somewhere = |dice: &mut Dice| {
        let at = pick(dice, &places).clone();
        (at != ["metadata", "name"] && at != ["metadata"]).then_some(at)
    };
    match dice.below(20) {
        0..=10 => {
            if let Some((path, new)) = by_type(types, root, value, dice) {
                put(value, &path, new);
            }
        }
        _ if places.is_empty() => {}
        11 | 12 => {
            if let Some(path) = somewhere(dice) {
                remove(value, &path);
            }
        }
        13 => {
            if let Some(here) = somewhere(dice).and_then(|path| at(value, &path)) {
                *here = of_another_type(here, dice);
            }
        }
        14 => {
            if let Some(here) = somewhere(dice).and_then(|path| at(value, &path)) {
                *here = Value::Null;
            }
        }
        15 => unknown_field(value, &places, dice),
        16 | 17 => change_list(value, &places, dice),
        _ => {
            if let Some(here) = somewhere(dice).and_then(|path| at(value, &path)) {
                if here.is_string() {
                    *here = bad_text(dice).into();
                } else if here.is_number() {
                    *here = (*pick(dice, &[0, -1, 1, 65536, 2_147_483_648_i64])).into();
                }
            }
        }
    }
}

fn unknown_field(value: &mut Value, places: &[Path], dice: &mut Dice) {
    let path = pick(dice, places).clone();
    if let Some(Value::Object(fields)) = at(value, &path) {
        fields.insert(
            (*pick(dice, &["unknown", "Name", "zzz"])).into(),
            "x".into(),
        );
    } else {
        value["unknown"] = 1.into();
    }
}

fn change_list(value: &mut Value, places: &[Path], dice: &mut Dice) {
    let mut lists: Vec<_> = places.to_vec();
    lists.retain(|path| matches!(at(value, path), Some(Value::Array(_))));
    if lists.is_empty() {
        return;
    }
    let path = pick(dice, &lists).clone();
    let Some(Value::Array(items)) = at(value, &path) else {
        return;
    };
    match (items.len(), dice.below(4)) {
        (0, _) => items.push("x".into()),
        (_, 0) => items.push(items[0].clone()),
        (_, 1) => items.clear(),
        (_, 2) => items.reverse(),
        (length, _) => {
            let mut copy = items[dice.below(length)].clone();
            if let Some(name) = copy.get_mut("name") {
                *name = format!("n{}", dice.below(100)).into();
            }
            items.push(copy);
        }
    }
}
