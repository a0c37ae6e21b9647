//! `Required value` for every field that a schema marks required.
//!
//! It works on any kind. Absent, `null`, `""` and, for lists, `[]` are the same to the API. An
//! absent number is a zero and an absent flag is false, so those are left to the kinds' rules,
//! which report the value. `metadata` and `status` are left out, as in
//! [`check_enums`](super::enums::check_enums).

use serde_json::Value;

use super::{check::JUDGED_BY_KINDS, fields::is_empty, path::Path};
use crate::{
    schema::{Schema, Type},
    status::Problems,
};

/// Required strings that may be empty, by the names of the property and of one beside it.
const MAY_BE_EMPTY: [(&str, &str); 1] = [("value", "name")];

/// Required lists that may be empty (of a LimitRange and of a CSINode), or whose kind has its own
/// message (of a role).
const MAY_BE_NO_ITEMS: [&str; 3] = ["limits", "drivers", "verbs"];

/// Reports each absent required field.
pub fn check_required(object: &Value, schema: Schema<'_>, problems: &mut Problems) {
    walk(object, schema, &Path::Root, problems);
}

fn walk(value: &Value, schema: Schema<'_>, path: &Path<'_>, problems: &mut Problems) {
    match value {
        Value::Array(items) => {
            let Some(schema) = schema.items() else { return };
            for (index, item) in items.iter().enumerate() {
                walk(item, schema, &path.index(index), problems);
            }
        }
        Value::Object(map) => {
            let top = matches!(path, Path::Root);
            let judged = |key: &str| {
                let apart = top && (key == "metadata" || key == "status");
                !apart && !JUDGED_BY_KINDS.contains(&key)
            };
            for name in schema.node().required.iter().filter(|name| judged(name)) {
                if is_missing(value, name, schema) {
                    problems.required(path.field(name), "");
                }
            }
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

fn is_missing(holder: &Value, name: &str, schema: Schema<'_>) -> bool {
    let Some(field) = schema.property(name) else {
        return false;
    };
    let value = holder.get(name);
    match field.node().ty {
        Type::Integer | Type::Number | Type::Boolean | Type::IntOrString | Type::Quantity => false,
        Type::Array if MAY_BE_NO_ITEMS.contains(&name) => false,
        Type::Array => value.and_then(Value::as_array).is_none_or(Vec::is_empty),
        Type::String if may_be_empty(name, schema) => false,
        _ => is_empty(value),
    }
}

fn may_be_empty(name: &str, schema: Schema<'_>) -> bool {
    MAY_BE_EMPTY
        .iter()
        .any(|&(field, beside)| field == name && schema.property(beside).is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::builtin;

    fn problems(kind: &str, object: &Value) -> Vec<String> {
        let mut problems = Problems::new();
        let schema = builtin().named(kind).unwrap();
        check_required(object, schema, &mut problems);
        problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_missing_is_named_with_its_path() {
        let pod = json!({"spec": {
            "containers": [{"name": "", "ports": [{"protocol": "TCP"}]}],
            "os": {},
        }});
        assert_eq!(
            problems("io.k8s.api.core.v1.Pod", &pod),
            [
                "spec.containers[0].name: Required value",
                "spec.os.name: Required value",
            ]
        );
    }

    #[test]
    fn an_empty_list_is_a_missing_one() {
        let pod = json!({"spec": {"containers": []}});
        assert_eq!(
            problems("io.k8s.api.core.v1.Pod", &pod),
            ["spec.containers: Required value"]
        );
    }

    #[test]
    fn empty_header_values_numbers_and_metadata_are_not_judged_here() {
        let get = json!({"port": 80, "httpHeaders": [{"name": "X-Empty", "value": ""}]});
        let pod = json!({
            "metadata": {"ownerReferences": [{}]},
            "spec": {"containers": [{"name": "c", "ports": [{}], "readinessProbe": {"httpGet": get}}]},
            "status": {"conditions": [{}]},
        });
        assert_eq!(problems("io.k8s.api.core.v1.Pod", &pod), [""; 0]);
    }
}
