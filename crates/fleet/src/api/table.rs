//! What is done with the table of a version: project, merge, overlay, compare.

use serde_json::{Map, Value};

use super::fields::{Field, Kind, Rule};

/// What a client sees of the stored object: the fields of the table, without secrets, unless they are
/// `sealed` and stay in this process.
pub fn project(fields: &[Field], stored: &Value, sealed: bool) -> Value {
    let mut object = Map::new();
    for field in fields {
        let Some(value) = stored.get(field.stored) else {
            continue;
        };
        let seen = match field.kind {
            Kind::Secret if !sealed => continue,
            Kind::Object(inner) => project(inner, value, sealed),
            Kind::List(inner) => {
                let items = value.as_array().into_iter().flatten();
                items.map(|item| project(inner, item, sealed)).collect()
            }
            Kind::Map(inner) => {
                let members = value.as_object().into_iter().flatten();
                let members =
                    members.map(|(name, value)| (name.clone(), project(inner, value, sealed)));
                Value::Object(members.collect())
            }
            _ => value.clone(),
        };
        if !seen.is_null() {
            object.insert(field.name.to_owned(), seen);
        }
    }
    Value::Object(object)
}

/// Why a body does not fit the table: the path and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// The path of the field.
    pub path: String,
    /// Why.
    pub why: String,
}

/// What a body does to fields that it does not mention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absent {
    /// They stay: a PATCH.
    Keep,
    /// Those that a client may change are cleared, all others stay: a PUT. Secrets stay as well, because
    /// no client can read them and send them again.
    Clear,
}

/// `base` with `body` over it, in the form of clients. What the provider sets stays as in `base`.
pub fn merge(
    fields: &[Field],
    base: &Value,
    body: &Value,
    absent: Absent,
) -> Result<Value, Mismatch> {
    merge_object(fields, base, body, absent, "")
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

fn merge_object(
    fields: &[Field],
    base: &Value,
    body: &Value,
    absent: Absent,
    path: &str,
) -> Result<Value, Mismatch> {
    let Some(members) = body.as_object() else {
        return Err(mismatch(path, "it must be an object"));
    };
    if let Some(unknown) = members
        .keys()
        .find(|name| !fields.iter().any(|field| field.name == name.as_str()))
    {
        return Err(mismatch(
            &join(path, unknown),
            "this API version has no such field",
        ));
    }
    let mut merged = Map::new();
    for field in fields {
        let old = base.get(field.name);
        let path = join(path, field.name);
        let new = match members.get(field.name) {
            _ if field.rule == Rule::ReadOnly => old.cloned(),
            None => match (absent, field.rule, field.kind) {
                (Absent::Clear, Rule::Mutable, kind) if kind != Kind::Secret => None,
                (Absent::Clear, _, Kind::Object(inner)) if old.is_some() => {
                    let old = old.unwrap_or(&Value::Null);
                    let nothing = Value::Object(Map::new());
                    Some(merge_object(inner, old, &nothing, absent, &path)?)
                }
                _ => old.cloned(),
            },
            Some(Value::Null) => None,
            Some(new) => Some(merge_value(field, old, new, absent, &path)?),
        };
        if let Some(new) = new {
            merged.insert(field.name.to_owned(), new);
        }
    }
    Ok(Value::Object(merged))
}

fn merge_value(
    field: &Field,
    old: Option<&Value>,
    new: &Value,
    absent: Absent,
    path: &str,
) -> Result<Value, Mismatch> {
    let nothing = Value::Null;
    let expect = |fits: bool, what: &str| {
        if fits {
            Ok(new.clone())
        } else {
            Err(mismatch(path, &format!("it must be {what}")))
        }
    };
    match field.kind {
        Kind::Text | Kind::Secret => expect(new.is_string(), "a string"),
        Kind::Integer => expect(new.is_i64(), "a whole number"),
        Kind::Boolean => expect(new.is_boolean(), "true or false"),
        Kind::TextMap => expect(
            new.as_object()
                .is_some_and(|it| it.values().all(Value::is_string)),
            "an object of strings",
        ),
        Kind::TextList => expect(
            new.as_array()
                .is_some_and(|it| it.iter().all(Value::is_string)),
            "a list of strings",
        ),
        Kind::Object(inner) => merge_object(inner, old.unwrap_or(&nothing), new, absent, path),
        Kind::List(inner) => {
            let Some(items) = new.as_array() else {
                return Err(mismatch(path, "it must be a list"));
            };
            let items = items.iter().enumerate().map(|(at, item)| {
                let old = old.and_then(|old| same_item(old, item, at));
                let old = old.unwrap_or(&nothing);
                merge_object(inner, old, item, absent, &format!("{path}[{at}]"))
            });
            items.collect()
        }
        Kind::Map(inner) => {
            let Some(members) = new.as_object() else {
                return Err(mismatch(path, "it must be an object"));
            };
            let members = members.iter().map(|(name, value)| {
                let old = old.and_then(|old| old.get(name)).unwrap_or(&nothing);
                let path = format!("{path}['{name}']");
                let value = if value.is_null() {
                    Value::Object(Map::new())
                } else {
                    value.clone()
                };
                Ok((
                    name.clone(),
                    merge_object(inner, old, &value, absent, &path)?,
                ))
            });
            Ok(Value::Object(members.collect::<Result<_, _>>()?))
        }
    }
}

/// The item of `old` that is meant by `item`: that of its name, or at its position.
fn same_item<'a>(old: &'a Value, item: &Value, at: usize) -> Option<&'a Value> {
    match item.get("name") {
        Some(name) => old
            .as_array()?
            .iter()
            .find(|old| old.get("name") == Some(name)),
        None => old.get(at),
    }
}

fn mismatch(path: &str, why: &str) -> Mismatch {
    Mismatch {
        path: path.to_owned(),
        why: why.to_owned(),
    }
}

/// The stored object with what a client sees of it replaced by `seen`. Everything that the table does
/// not mention stays, at every level.
pub fn overlay(fields: &[Field], stored: &mut Value, seen: &Value) {
    if !stored.is_object() {
        *stored = Value::Object(Map::new());
    }
    let Some(object) = stored.as_object_mut() else {
        return;
    };
    for field in fields {
        let Some(value) = seen.get(field.name) else {
            // A secret that was not shown was not taken away.
            if field.kind != Kind::Secret {
                remove_seen(field, object);
            }
            continue;
        };
        let slot = object.entry(field.stored).or_insert(Value::Null);
        match field.kind {
            Kind::Object(inner) => overlay(inner, slot, value),
            Kind::List(inner) => {
                let old = std::mem::take(slot);
                let items = value.as_array().into_iter().flatten().enumerate();
                let items = items.map(|(at, item)| {
                    let mut stored = same_item(&old, item, at).cloned().unwrap_or_default();
                    overlay(inner, &mut stored, item);
                    stored
                });
                *slot = items.collect();
            }
            Kind::Map(inner) => {
                let old = std::mem::take(slot);
                let members = value.as_object().into_iter().flatten();
                let members = members.map(|(name, value)| {
                    let mut stored = old.get(name).cloned().unwrap_or_default();
                    overlay(inner, &mut stored, value);
                    (name.clone(), stored)
                });
                *slot = Value::Object(members.collect());
            }
            _ => *slot = value.clone(),
        }
    }
}

/// Removes what the table mentions of a field that is no longer there.
fn remove_seen(field: &Field, object: &mut Map<String, Value>) {
    let Some(old) = object.get_mut(field.stored) else {
        return;
    };
    if let Kind::Object(inner) = field.kind {
        overlay(inner, old, &Value::Object(Map::new()));
        if old.as_object().is_some_and(|old| !old.is_empty()) {
            return;
        }
    }
    object.remove(field.stored);
}

/// The path of the first property that differs and may not: objects in the form of clients.
pub fn changed_property(fields: &[Field], old: &Value, new: &Value) -> Option<String> {
    changed(fields, old, new, "")
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.values().all(is_empty),
        _ => false,
    }
}

fn changed(fields: &[Field], old: &Value, new: &Value, path: &str) -> Option<String> {
    let nothing = Value::Null;
    for field in fields {
        let path = join(path, field.name);
        let old = old.get(field.name).unwrap_or(&nothing);
        let new = new.get(field.name).unwrap_or(&nothing);
        let found = match (field.rule, field.kind) {
            (Rule::Mutable | Rule::ReadOnly, _) => None,
            (_, Kind::Object(inner)) => changed(inner, old, new, &path),
            (_, Kind::List(inner)) => changed_list(inner, old, new, &path),
            (Rule::IgnoreCase, _) => {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_lowercase();
                (text(old) != text(new)).then_some(path)
            }
            // A secret that is sent again is a new value, unless it is sealed: then it is the old one.
            (_, Kind::Secret) => (new.is_string() && !is_empty(new)).then_some(path),
            _ => (!(is_empty(old) && is_empty(new)) && old != new).then_some(path),
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

fn changed_list(inner: &[Field], old: &Value, new: &Value, path: &str) -> Option<String> {
    let empty = Vec::new();
    let old = old.as_array().unwrap_or(&empty);
    let new = new.as_array().unwrap_or(&empty);
    if old.len() != new.len() {
        return Some(path.to_owned());
    }
    let mut pairs = old.iter().zip(new);
    pairs.find_map(|(old, new)| {
        let name = old.get("name").and_then(Value::as_str);
        let path = name.map_or_else(|| path.to_owned(), |name| format!("{path}['{name}']"));
        changed(inner, old, new, &path)
    })
}
