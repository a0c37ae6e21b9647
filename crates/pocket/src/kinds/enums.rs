//! `Unsupported value` for every field whose schema lists its values.
//!
//! It works on any kind, so that no kind repeats the lists. `metadata` and `status` are left out:
//! the first is validated elsewhere, the second is written by controllers that may be newer.

use serde_json::Value;

use super::{check::JUDGED_BY_KINDS, path::Path};
use crate::{schema::Schema, status::Problems};

/// Reports each value that its field's schema does not list.
pub fn check_enums(object: &Value, schema: Schema<'_>, problems: &mut Problems) {
    let Some(map) = object.as_object() else {
        return;
    };
    for (key, value) in map {
        if key != "metadata"
            && key != "status"
            && let Some(field) = schema.field(key)
        {
            walk(value, field, &Path::Root.field(key), problems);
        }
    }
}

fn walk(value: &Value, schema: Schema<'_>, path: &Path<'_>, problems: &mut Problems) {
    match value {
        Value::String(text) => check(text, schema, path, problems),
        Value::Array(items) => {
            let Some(schema) = schema.items() else { return };
            for (index, item) in items.iter().enumerate() {
                walk(item, schema, &path.index(index), problems);
            }
        }
        Value::Object(map) => {
            let judged = |key: &str| !JUDGED_BY_KINDS.contains(&key);
            for (key, value) in map.iter().filter(|(key, _)| judged(key)) {
                if let Some(field) = schema.property(key) {
                    walk(value, field, &path.field(key), problems);
                } else if let Some(field) = schema.additional() {
                    walk(value, field, &path.key(key), problems);
                }
            }
        }
        _ => {}
    }
}

fn check(text: &str, schema: Schema<'_>, path: &Path<'_>, problems: &mut Problems) {
    let listed = &schema.node().enumeration;
    // An empty string is an absent field.
    if listed.is_empty() || text.is_empty() || listed.iter().any(|value| value == text) {
        return;
    }
    let supported: Vec<&str> = listed
        .iter()
        .filter_map(Value::as_str)
        .filter(|value| !value.is_empty())
        .collect();
    problems.not_supported(path, text, &supported);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::builtin;

    fn problems(object: &Value) -> String {
        let mut problems = Problems::new();
        let schema = builtin().named("io.k8s.api.core.v1.Pod").unwrap();
        check_enums(object, schema, &mut problems);
        problems.to_string()
    }

    #[test]
    fn a_value_off_the_list_is_unsupported() {
        let pod = json!({"spec": {
            "os": {"name": "linux"},
            "containers": [{"ports": [{"protocol": "TCP"}, {"protocol": "tcp"}]}],
        }});
        let errors = problems(&pod);
        let port = r#"spec.containers[0].ports[1].protocol: Unsupported value: "tcp": supported values: "SCTP", "TCP", "UDP""#;
        assert!(errors.contains(port), "{errors}");
    }

    #[test]
    fn listed_empty_and_status_values_pass() {
        let pod = json!({
            "spec": {"restartPolicy": "", "dnsPolicy": "Default",
                     "volumes": [{"name": "v", "hostPath": {"path": "/", "type": ""}}]},
            "status": {"phase": "Resting"},
        });
        assert_eq!(problems(&pod), Problems::new().to_string());
    }
}
