//! Objects as bodies: values chosen by servers become references.

use serde_json::Value;

use crate::call::capture;

/// Fields of metadata with a different value on each server.
const OWN: [&str; 6] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "managedFields",
    "name",
];

/// The letters of generated names.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Whether the suffix of the name was generated. The prefix may have been removed since.
fn was_generated(name: &str) -> bool {
    let suffix = name.rsplit('-').next().unwrap_or_default();
    let parts = name.split('-').count();
    parts > 3 && suffix.len() == 5
}

/// Whether a server may have generated the name from a base: it truncates long ones, and adds five
/// letters.
pub(crate) fn made_from(base: &str, name: &str) -> bool {
    const MAX_BASE_LENGTH: usize = 58;
    let base = base.get(..MAX_BASE_LENGTH).unwrap_or(base);
    let end = name.strip_prefix(base).unwrap_or_default();
    end.len() == 5 && end.bytes().all(|letter| LETTERS.contains(&letter))
}

/// Volumes for tokens have generated names.
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

/// The label with the name of a namespace.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// Replaces values chosen by servers by references to the response `number`, which this value is. A
/// name that calls know as a reference is one of those.
pub(super) fn symbolic(value: &mut Value, number: usize, known: &str) {
    let metadata = &value["metadata"];
    let name = metadata["name"].as_str().unwrap_or_default();
    let base = metadata["generateName"].as_str().unwrap_or_default();
    let based = !base.is_empty() && made_from(base, name);
    let generated = based || was_generated(name) || known.starts_with('⟦');
    let labels = value.pointer_mut("/metadata/labels");
    if let Some(label) = labels.and_then(|labels| labels.get_mut(NAME_LABEL))
        && generated
    {
        *label = capture(number, "/metadata/labels/kubernetes.io~1metadata.name").into();
    }
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
    use serde_json::json;

    use super::*;

    #[test]
    fn what_repeats_a_generated_name_is_named_like_it() {
        let reference = capture(1, "/metadata/name");
        for (base, name, known, named) in [
            ("x1", "x1hr5rk", "secr-1-2", true),
            ("x1", "x1other", "secr-1-2", false),
            ("", "x1hr5rk", "secr-1-2", false),
            ("", "x1hr5rk", reference.as_str(), true),
        ] {
            let labels = json!({NAME_LABEL: name, "app": name});
            let mut value =
                json!({"metadata": {"name": name, "generateName": base, "labels": labels}});
            symbolic(&mut value, 7, known);
            let metadata = &value["metadata"];
            let shown = [&metadata["name"], &metadata["labels"][NAME_LABEL]];
            assert!(
                shown.iter().all(|text| (**text != name) == named),
                "{value}"
            );
            assert_eq!(metadata["labels"]["app"], name);
        }
    }

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
