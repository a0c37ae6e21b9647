//! Where an object is not yet as it should be.

use serde_json::Value;

/// By these an item of a list is known, in this order, if every item has it.
const KEYS: [&str; 4] = ["name", "key", "type", "port"];

/// The paths at which `live` lacks what `wanted` says. What `wanted` does not speak of, such as
/// defaults and fields of others, is no difference.
pub fn differences(wanted: &Value, live: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare(wanted, live, &mut String::new(), &mut found);
    found
}

fn compare(wanted: &Value, live: &Value, path: &mut String, found: &mut Vec<String>) {
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(live)) => {
            for (name, wanted) in wanted {
                let inner = live.get(name).unwrap_or(&Value::Null);
                below(path, name, |path| compare(wanted, inner, path, found));
            }
        }
        (Value::Array(wanted), Value::Array(live)) => lists(wanted, live, path, found),
        // Nothing is as good as an empty map or list.
        (wanted, Value::Null) if is_empty(wanted) => {}
        _ if wanted == live => {}
        _ => found.push(path.clone()),
    }
}

fn lists(wanted: &[Value], live: &[Value], path: &mut String, found: &mut Vec<String>) {
    if wanted.len() != live.len() {
        found.push(path.clone());
        return;
    }
    let has = |items: &[Value], key: &str| items.iter().all(|item| item.get(key).is_some());
    let key = KEYS
        .into_iter()
        .find(|key| has(wanted, key) && has(live, key));
    for (at, wanted) in wanted.iter().enumerate() {
        let same = |live: &&Value| key.is_some_and(|key| live[key] == wanted[key]);
        let other = match key {
            Some(_) => live.iter().find(same),
            None => live.get(at),
        };
        let other = other.unwrap_or(&Value::Null);
        below(path, &at.to_string(), |path| {
            compare(wanted, other, path, found);
        });
    }
}

fn below(path: &mut String, name: &str, look: impl FnOnce(&mut String)) {
    let length = path.len();
    if length > 0 {
        path.push('.');
    }
    path.push_str(name);
    look(path);
    path.truncate(length);
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}
