//! The roles and bindings that every server has from its start, one object a line.

use anyhow::{Context, bail};
use serde_json::{Map, Value};

use super::discovery::list;

const KINDS: [&str; 4] = [
    "clusterroles",
    "clusterrolebindings",
    "roles",
    "rolebindings",
];
const LABEL: &str = "kubernetes.io/bootstrapping";
const ANNOTATION: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// What all of them have in common is left out: the server adds it to each.
pub(super) fn render(published: &Value) -> anyhow::Result<String> {
    let mut parts = Vec::new();
    for kind in KINDS {
        let objects = list(&published[kind]).iter();
        let lines: Vec<String> = objects
            .map(|object| reduced(object).map(|object| object.to_string()))
            .collect::<anyhow::Result<_>>()?;
        parts.push(format!("\"{kind}\":[\n{}\n]", lines.join(",\n")));
    }
    Ok(format!("{{\n{}\n}}\n", parts.join(",\n")))
}

fn reduced(object: &Value) -> anyhow::Result<Value> {
    let metadata = &object["metadata"];
    let name = metadata["name"].as_str().context("an object has no name")?;
    let mut labels = metadata["labels"].as_object().cloned().unwrap_or_default();
    let mut annotations = metadata["annotations"].as_object().cloned();
    let annotated = annotations.as_mut().and_then(|all| all.remove(ANNOTATION));
    let usual = labels
        .remove(LABEL)
        .is_some_and(|value| value == "rbac-defaults")
        && annotated.is_some_and(|value| value == "true")
        && annotations.is_none_or(|rest| rest.is_empty());
    if !usual {
        bail!("{name} is not marked as the others are");
    }
    let mut kept = Map::from_iter([("name".to_owned(), metadata["name"].clone())]);
    if let Some(namespace) = metadata.get("namespace") {
        kept.insert("namespace".into(), namespace.clone());
    }
    if !labels.is_empty() {
        kept.insert("labels".into(), labels.into());
    }
    let mut reduced = Map::from_iter([("metadata".to_owned(), kept.into())]);
    for field in ["aggregationRule", "rules", "roleRef", "subjects"] {
        match object.get(field) {
            None | Some(Value::Null) => {}
            Some(value) => drop(reduced.insert(field.into(), value.clone())),
        }
    }
    Ok(reduced.into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_all_have_in_common_is_left_out_and_what_is_marked_otherwise_is_refused() {
        let role = |update: &str| {
            json!({
                "metadata": {"name": "x", "labels": {LABEL: "rbac-defaults", "a": "b"}, "annotations": {ANNOTATION: update}},
                "rules": null,
            })
        };
        let reduced_role = reduced(&role("true")).unwrap();
        assert_eq!(
            reduced_role,
            json!({"metadata": {"name": "x", "labels": {"a": "b"}}})
        );
        assert!(reduced(&role("false")).is_err());
    }
}
