//! Objects as bodies: what servers choose is named instead of spelled out.

use serde_json::Value;

use crate::call::capture;

/// Fields of metadata that each server has its own value for.
const OWN: [&str; 6] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "managedFields",
    "name",
];

/// Whether a server made up the end of the name. What the prefix was may have been taken out since.
fn was_generated(name: &str) -> bool {
    let suffix = name.rsplit('-').next().unwrap_or_default();
    let parts = name.split('-').count();
    parts > 3 && suffix.len() == 5
}

/// Volumes for tokens have names that servers make up.
fn name_tokens(value: &mut Value, path: &mut String, number: usize) {
    let length = path.len();
    match value {
        Value::String(text) if text.starts_with("kube-api-access-") => {
            *value = capture(number, path).into();
        }
        Value::Object(fields) => {
            for (key, item) in fields {
                path.push('/');
                path.push_str(&key.replace('~', "~0").replace('/', "~1"));
                name_tokens(item, path, number);
                path.truncate(length);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                path.push('/');
                path.push_str(&index.to_string());
                name_tokens(item, path, number);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

/// Replaces what servers choose by references to the answer `number`, which this value is.
pub(super) fn symbolic(value: &mut Value, number: usize) {
    let generated = value["metadata"]["name"]
        .as_str()
        .is_some_and(was_generated);
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        for (key, item) in metadata.iter_mut() {
            if OWN.contains(&key.as_str()) && (key != "name" || generated) {
                *item = capture(number, &format!("/metadata/{key}")).into();
            }
            if key == "ownerReferences" {
                for (place, owner) in item.as_array_mut().into_iter().flatten().enumerate() {
                    owner["uid"] =
                        capture(number, &format!("/metadata/ownerReferences/{place}/uid")).into();
                }
            }
        }
    }
    name_tokens(value, &mut String::new(), number);
    let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    for key in ["clusterIP", "clusterIPs", "healthCheckNodePort"] {
        if let Some(item) = spec.get_mut(key) {
            *item = capture(number, &format!("/spec/{key}")).into();
        }
    }
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    for (place, port) in ports.into_iter().flatten().enumerate() {
        if let Some(item) = port.get_mut("nodePort") {
            *item = capture(number, &format!("/spec/ports/{place}/nodePort")).into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_generated_if_a_server_made_up_their_end() {
        for (name, generated) in [
            ("pod-1-2-bcd45", true),
            ("pod-1-2", false),
            ("pod-1-20000", false),
            ("pod-1-2-bcd4", false),
            ("pod-1-2-bcd456", false),
            ("default", false),
            ("", false),
        ] {
            assert_eq!(was_generated(name), generated, "{name}");
        }
    }
}
