//! Quota scopes: which objects a quota counts.

use serde_json::Value;

use super::CountedResource;
use crate::kinds::pod;

/// Whether a quota counts this object. A quota with scopes counts only pods.
pub fn covers(quota: &Value, resource: CountedResource<'_>, object: &Value) -> bool {
    let spec = &quota["spec"];
    let scopes = spec["scopes"].as_array().into_iter().flatten();
    let selected = spec["scopeSelector"]["matchExpressions"].as_array();
    let selected = selected.into_iter().flatten();
    let is_pod = resource
        == CountedResource {
            group: "",
            plural: "pods",
        };
    scopes
        .filter_map(Value::as_str)
        .all(|scope| is_pod && in_scope(scope, &object["spec"]))
        && selected
            .into_iter()
            .all(|expression| is_pod && in_selected(expression, &object["spec"]))
}

fn in_scope(scope: &str, spec: &Value) -> bool {
    let deadline = spec["activeDeadlineSeconds"]
        .as_i64()
        .is_some_and(|seconds| seconds >= 0);
    let best_effort = || pod::service_class(spec) == "BestEffort";
    match scope {
        "Terminating" => deadline,
        "NotTerminating" => !deadline,
        "BestEffort" => best_effort(),
        "NotBestEffort" => !best_effort(),
        "PriorityClass" => !class_of(spec).is_empty(),
        "CrossNamespacePodAffinity" => looks_elsewhere(&spec["affinity"]),
        _ => false,
    }
}

fn in_selected(expression: &Value, spec: &Value) -> bool {
    let scope = expression["scopeName"].as_str().unwrap_or_default();
    if scope != "PriorityClass" {
        return in_scope(scope, spec);
    }
    let values = expression["values"].as_array().into_iter().flatten();
    let listed = || values.into_iter().any(|value| *value == class_of(spec));
    match expression["operator"].as_str() {
        Some("In") => listed(),
        Some("NotIn") => !listed(),
        Some("Exists") => !class_of(spec).is_empty(),
        Some("DoesNotExist") => class_of(spec).is_empty(),
        _ => false,
    }
}

fn class_of(spec: &Value) -> &str {
    spec["priorityClassName"].as_str().unwrap_or_default()
}

/// Whether a pod has affinity or anti-affinity to pods of other namespaces.
fn looks_elsewhere(affinity: &Value) -> bool {
    let terms = |side: &str| {
        let side = &affinity[side];
        let required = side["requiredDuringSchedulingIgnoredDuringExecution"].as_array();
        let preferred = side["preferredDuringSchedulingIgnoredDuringExecution"].as_array();
        let preferred = preferred
            .into_iter()
            .flatten()
            .map(|entry| &entry["podAffinityTerm"]);
        required.into_iter().flatten().chain(preferred).any(|term| {
            term["namespaces"]
                .as_array()
                .is_some_and(|names| !names.is_empty())
                || !term["namespaceSelector"].is_null()
        })
    };
    terms("podAffinity") || terms("podAntiAffinity")
}
