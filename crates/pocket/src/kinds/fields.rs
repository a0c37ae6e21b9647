//! Reading and filling the fields of an object.
//!
//! An absent field, `null` and, for strings, `""` are the same to the API: kube-apiserver's own
//! types cannot tell them apart, so neither do the rules.

use serde_json::{Map, Value};

/// The string under `key`, empty when there is none.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The elements of the list under `key`.
pub(super) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// The entries of the map under `key`.
pub(super) fn entries<'a>(
    value: &'a Value,
    key: &str,
) -> impl Iterator<Item = (&'a String, &'a Value)> {
    value
        .get(key)
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
}

/// The whole number under `key`; absent is zero.
pub(super) fn number(value: &Value, key: &str) -> i64 {
    value.get(key).and_then(Value::as_i64).unwrap_or_default()
}

/// The flag under `key`; absent is false.
pub(super) fn flag(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool).unwrap_or_default()
}

/// Whether the field is there and not `null`.
pub(super) fn is_set(value: &Value, key: &str) -> bool {
    value.get(key).is_some_and(|field| !field.is_null())
}

/// Whether a value is equal to an absent field.
pub(super) fn is_empty(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(_) => false,
    }
}

/// Sets the field when it is absent, `null` or an empty string.
pub(super) fn fill(value: &mut Value, key: &str, default: impl Into<Value>) {
    if let Value::Object(map) = value
        && is_empty(map.get(key))
    {
        map.insert(key.to_owned(), default.into());
    }
}

/// The field as an object to fill further; an absent one becomes `{}`.
pub(super) fn filled<'a>(value: &'a mut Value, key: &str) -> Option<&'a mut Value> {
    let map = value.as_object_mut()?;
    let field = map.entry(key).or_insert(Value::Null);
    if field.is_null() {
        *field = Value::Object(Map::new());
    }
    Some(field)
}

/// The elements of the list under `key`, to be changed in place.
pub(super) fn each_mut<'a>(value: &'a mut Value, key: &str) -> impl Iterator<Item = &'a mut Value> {
    value
        .get_mut(key)
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
}

/// The object under `key` when there is one, to be changed in place.
pub(super) fn part<'a>(value: &'a mut Value, key: &str) -> Option<&'a mut Value> {
    value.get_mut(key).filter(|field| field.is_object())
}

/// Sets a field of an object; a value that is no object is left unchanged.
pub(super) fn set(value: &mut Value, key: &str, field: impl Into<Value>) {
    if let Value::Object(map) = value {
        map.insert(key.to_owned(), field.into());
    }
}

/// Removes a field from an object.
pub(super) fn take(value: &mut Value, key: &str) -> Option<Value> {
    value.as_object_mut().and_then(|map| map.remove(key))
}

/// Adds to the end of the list under `key`; an absent list is a new one.
pub(super) fn append(value: &mut Value, key: &str, items: impl IntoIterator<Item = Value>) {
    let Some(map) = value.as_object_mut() else {
        return;
    };
    let field = map.entry(key).or_insert(Value::Null);
    if field.is_null() {
        *field = Value::Array(Vec::new());
    }
    if let Value::Array(list) = field {
        list.extend(items);
    }
}
