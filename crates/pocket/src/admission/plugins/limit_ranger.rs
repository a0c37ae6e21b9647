//! LimitRanger: default requests and limits of containers, and bounds on both.

mod bounds;

use serde_json::{Map, Value, json};

pub use bounds::complaints;

/// The annotation that lists what was added to the pod.
const NOTE: &str = "kubernetes.io/limit-ranger";

/// Adds the defaults of the namespace's LimitRanges to the containers of a new pod.
pub fn fill(pod: &mut Value, ranges: &[Value]) {
    let limits = ranges
        .iter()
        .flat_map(|range| bounds::of(range, "Container"));
    let mut notes = Vec::new();
    for limit in limits {
        for (list, what) in [
            ("containers", "container"),
            ("initContainers", "init container"),
        ] {
            let containers = pod["spec"].get_mut(list).and_then(Value::as_array_mut);
            for container in containers.into_iter().flatten() {
                let name = container["name"].as_str().unwrap_or_default().to_owned();
                for (side, from, word) in [
                    ("requests", "defaultRequest", "request"),
                    ("limits", "default", "limit"),
                ] {
                    let added = fill_side(container, side, &limit[from]);
                    if !added.is_empty() {
                        notes.push(format!("{} {word} for {what} {name}", added.join(", ")));
                    }
                }
            }
        }
    }
    if !notes.is_empty() {
        let note = format!("LimitRanger plugin set: {}", notes.join("; "));
        pod["metadata"]["annotations"][NOTE] = json!(note);
    }
}

/// Adds the missing amounts and returns their names.
fn fill_side(container: &mut Value, side: &str, defaults: &Value) -> Vec<String> {
    let Some(defaults) = defaults.as_object().filter(|defaults| !defaults.is_empty()) else {
        return Vec::new();
    };
    let field = &mut container["resources"][side];
    if !field.is_object() {
        *field = Value::Object(Map::new());
    }
    let Some(amounts) = field.as_object_mut() else {
        return Vec::new();
    };
    let mut added = Vec::new();
    for (name, amount) in defaults {
        if !amounts.contains_key(name) {
            amounts.insert(name.clone(), amount.clone());
            added.push(name.clone());
        }
    }
    added
}

#[cfg(test)]
mod tests;
