//! The rules of a webhook: which requests it is called for.

use std::collections::HashSet;

use serde_json::Value;

use super::super::{fields::list, path::Path};
use crate::status::Problems;

/// Checks one entry of `rules`.
pub(super) fn validate(rule: &Value, path: &Path<'_>, problems: &mut Problems) {
    validate_operations(rule, &path.field("operations"), problems);
    for key in ["apiGroups", "apiVersions"] {
        let path = path.field(key);
        if list(rule, key).is_empty() {
            problems.required(path, "");
        }
        if has_star(rule, key) && list(rule, key).len() > 1 {
            let detail = "if '*' is present, must not specify other ";
            let what = if key == "apiGroups" {
                "API groups"
            } else {
                "API versions"
            };
            problems.invalid(path, rule[key].clone(), format!("{detail}{what}"));
        }
    }
    let path_of_versions = path.field("apiVersions");
    for (i, version) in list(rule, "apiVersions").iter().enumerate() {
        if version == "" {
            problems.required(path_of_versions.index(i), "");
        }
    }
    validate_resources(rule, &path.field("resources"), problems);
}

fn has_star(rule: &Value, key: &str) -> bool {
    list(rule, key).iter().any(|item| item == "*")
}

fn validate_operations(rule: &Value, path: &Path<'_>, problems: &mut Problems) {
    let operations = list(rule, "operations");
    if operations.is_empty() {
        problems.required(path, "");
    }
    if operations.len() > 1 && has_star(rule, "operations") {
        let detail = "if '*' is present, must not specify other operations";
        problems.invalid(path, rule["operations"].clone(), detail);
    }
}

/// `pods`, `pods/status`, `pods/*`, `*/scale`, `*` and `*/*`; wildcards may not overlap with other
/// entries.
fn validate_resources(rule: &Value, path: &Path<'_>, problems: &mut Problems) {
    let resources: Vec<&str> = list(rule, "resources")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let known: HashSet<&str> = resources.iter().copied().collect();
    if resources.is_empty() {
        return problems.required(path, "");
    }
    if resources.len() > 1 && resources.contains(&"*/*") {
        let detail = "if '*/*' is present, must not specify other resources";
        problems.invalid(path, rule["resources"].clone(), detail);
    }
    for (i, resource) in resources.iter().enumerate() {
        if resource.is_empty() {
            problems.required(path.index(i), "");
            continue;
        }
        let Some((name, sub)) = resource.split_once('/') else {
            continue;
        };
        if sub != "*" && known.contains(format!("{name}/*").as_str()) {
            let detail = format!("if '{name}/*' is present, must not specify {resource}");
            problems.invalid(path.index(i), *resource, detail);
        }
        if name != "*" && known.contains(format!("*/{sub}").as_str()) {
            let detail = format!("if '*/{sub}' is present, must not specify {resource}");
            problems.invalid(path.index(i), *resource, detail);
        }
    }
}
