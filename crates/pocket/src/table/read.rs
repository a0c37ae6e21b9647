//! Reading fields for display: a missing one is shown as such and never fails.

use jiff::Timestamp;
use serde_json::Value;

use super::age::since;

pub(super) const NONE: &str = "<none>";
pub(super) const UNSET: &str = "<unset>";

/// The object's name.
pub(super) fn name(object: &Value) -> Value {
    text(object, "/metadata/name").into()
}

/// How long ago the object was created.
pub(super) fn age(object: &Value, now: Timestamp) -> Value {
    since(text(object, "/metadata/creationTimestamp"), now).into()
}

/// The string at a JSON pointer, empty if there is none.
pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The string at a JSON pointer, or `otherwise` if it is missing or empty.
pub(super) fn text_or<'a>(value: &'a Value, pointer: &str, otherwise: &'a str) -> &'a str {
    match text(value, pointer) {
        "" => otherwise,
        found => found,
    }
}

/// The number at a JSON pointer, zero if there is none.
pub(super) fn number(value: &Value, pointer: &str) -> i64 {
    number_or(value, pointer, 0)
}

/// The number at a JSON pointer, or `otherwise`.
pub(super) fn number_or(value: &Value, pointer: &str, otherwise: i64) -> i64 {
    value
        .pointer(pointer)
        .and_then(Value::as_i64)
        .unwrap_or(otherwise)
}

/// Whether the value at a JSON pointer is `true`.
pub(super) fn flag(value: &Value, pointer: &str) -> bool {
    value.pointer(pointer) == Some(&Value::Bool(true))
}

/// The list at a JSON pointer, empty if there is none.
pub(super) fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value
        .pointer(pointer)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// How many entries the map at a JSON pointer has.
pub(super) fn size(value: &Value, pointer: &str) -> usize {
    value
        .pointer(pointer)
        .and_then(Value::as_object)
        .map_or(0, serde_json::Map::len)
}

/// The condition of this type, if it exists.
pub(super) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    list(object, "/status/conditions")
        .iter()
        .find(|condition| condition["type"] == kind)
}

/// Whether the condition of this type is true.
pub(super) fn is_true(object: &Value, kind: &str) -> bool {
    condition(object, kind).is_some_and(|condition| condition["status"] == "True")
}

/// A number or string as text; `None` if it is neither.
pub(super) fn either(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Words joined by commas, or `<none>`.
pub(super) fn joined<T: AsRef<str>>(words: impl IntoIterator<Item = T>) -> String {
    let words: Vec<T> = words.into_iter().collect();
    if words.is_empty() {
        return NONE.into();
    }
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    words.join(",")
}

/// The first `limit` words joined by commas, and how many were left out.
pub(super) fn shortened(words: &[String], limit: usize) -> String {
    if words.len() <= limit {
        return joined(words);
    }
    let more = words.len() - limit;
    format!("{} + {more} more...", words[..limit].join(","))
}

/// Labels as `a=b,c=d`, or `<none>`.
pub(super) fn labels(map: Option<&Value>) -> String {
    let entries = map.and_then(Value::as_object).into_iter().flatten();
    let entries =
        entries.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    // Sorted as whole texts, so `app1=` comes before `app=`.
    let mut entries: Vec<_> = entries.collect();
    entries.sort_unstable();
    joined(entries)
}

/// A label selector as kubectl's `-l` takes it, or `<none>`.
pub(super) fn selector(selector: Option<&Value>) -> String {
    let Some(selector) = selector else {
        return NONE.into();
    };
    let equal = selector["matchLabels"].as_object().into_iter().flatten();
    let equal = equal.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    let rest = list(selector, "/matchExpressions").iter().map(requirement);
    joined(equal.chain(rest))
}

fn requirement(expression: &Value) -> String {
    let key = text(expression, "/key");
    let values = list(expression, "/values").iter().filter_map(Value::as_str);
    let mut values: Vec<_> = values.collect();
    values.sort_unstable();
    let values = values.join(",");
    match text(expression, "/operator") {
        "In" => format!("{key} in ({values})"),
        "NotIn" => format!("{key} notin ({values})"),
        "DoesNotExist" => format!("!{key}"),
        _ => key.into(),
    }
}
