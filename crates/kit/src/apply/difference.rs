//! The fields in which a live object differs from the desired one.

use serde_json::Value;

/// Fields that identify the items of a list, in order of preference; used if every item has it.
const ITEM_KEYS: [&str; 4] = ["name", "key", "type", "port"];

/// The paths at which `live` differs from `desired`. Fields that `desired` does not have, such as
/// defaults and fields of other managers, are not compared.
pub fn differences(desired: &Value, live: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare(desired, live, &mut String::new(), &mut found);
    found
}

fn compare(desired: &Value, live: &Value, path: &mut String, found: &mut Vec<String>) {
    match (desired, live) {
        (Value::Object(desired), Value::Object(live)) => {
            for (name, desired) in desired {
                let inner = live.get(name).unwrap_or(&Value::Null);
                at_field(path, name, |path| compare(desired, inner, path, found));
            }
        }
        (Value::Array(desired), Value::Array(live)) => compare_lists(desired, live, path, found),
        // An absent field equals an empty map or list.
        (desired, Value::Null) if is_empty(desired) => {}
        _ if desired == live => {}
        _ => found.push(path.clone()),
    }
}

fn compare_lists(desired: &[Value], live: &[Value], path: &mut String, found: &mut Vec<String>) {
    if desired.len() != live.len() {
        found.push(path.clone());
        return;
    }
    let has = |items: &[Value], key: &str| items.iter().all(|item| item.get(key).is_some());
    let key = ITEM_KEYS
        .into_iter()
        .find(|key| has(desired, key) && has(live, key));
    for (at, desired) in desired.iter().enumerate() {
        let same = |live: &&Value| key.is_some_and(|key| is_same_item(key, desired, live));
        let other = match key {
            Some(_) => live.iter().find(same),
            None => live.get(at),
        };
        let other = other.unwrap_or(&Value::Null);
        at_field(path, &at.to_string(), |path| {
            compare(desired, other, path, found);
        });
    }
}

/// A port number is used by several protocols at a time, such as that of DNS.
fn is_same_item(key: &str, desired: &Value, live: &Value) -> bool {
    let protocol = |item: &Value| item["protocol"].as_str().unwrap_or("TCP").to_owned();
    live[key] == desired[key] && (key != "port" || protocol(live) == protocol(desired))
}

fn at_field(path: &mut String, name: &str, visit: impl FnOnce(&mut String)) {
    let length = path.len();
    if length > 0 {
        path.push('.');
    }
    path.push_str(name);
    visit(path);
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
