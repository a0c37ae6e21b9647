//! Rules on environment variables and the sources of their values.

use serde_json::Value;

use super::check_text;
use crate::{
    kinds::{
        fields::{is_set, list, text},
        names,
        path::Path,
    },
    status::Problems,
};

/// Fields of the pod that a variable may show.
const POD_FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

const SOURCES: [&str; 5] = [
    "fieldRef",
    "resourceFieldRef",
    "configMapKeyRef",
    "secretKeyRef",
    "fileKeyRef",
];

/// Rules on `env` and `envFrom` of one container.
pub(super) fn check(container: &Value, path: &Path<'_>, problems: &mut Problems) {
    let env = path.field("env");
    for (index, variable) in list(container, "env").iter().enumerate() {
        let path = env.index(index);
        check_text(variable, "name", names::variable, &path, problems);
        if is_set(variable, "valueFrom") {
            check_source(variable, &path, problems);
        }
    }
    let from = path.field("envFrom");
    for (index, source) in list(container, "envFrom").iter().enumerate() {
        check_bulk_source(source, &from, index, problems);
    }
}

fn check_source(variable: &Value, path: &Path<'_>, problems: &mut Problems) {
    let from = &variable["valueFrom"];
    let path = path.field("valueFrom");
    let sources: Vec<&str> = SOURCES.into_iter().filter(|s| is_set(from, s)).collect();
    if sources.is_empty() {
        let detail = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`";
        problems.invalid(path, "", detail);
        return;
    }
    if !text(variable, "value").is_empty() {
        problems.invalid(path, "", "may not be specified when `value` is not empty");
    } else if sources.len() > 1 {
        let detail = "may not have more than one field specified at a time";
        problems.invalid(path, "", detail);
    }
    if is_set(from, "fieldRef") {
        check_field(&from["fieldRef"], &path.field("fieldRef"), problems);
    }
    for reference in ["configMapKeyRef", "secretKeyRef"] {
        if is_set(from, reference) {
            let path = path.field(reference);
            let reference = &from[reference];
            if text(reference, "name").is_empty() {
                problems.required(path.field("name"), "");
            }
            check_text(reference, "key", names::config_key, &path, problems);
        }
    }
}

fn check_field(reference: &Value, path: &Path<'_>, problems: &mut Problems) {
    let field = text(reference, "fieldPath");
    if field.is_empty() || POD_FIELDS.contains(&field) || is_subscript(field) {
        return;
    }
    let path = path.field("fieldPath");
    if matches!(field, "metadata.labels" | "metadata.annotations") {
        problems.not_supported(path, field, &POD_FIELDS);
    } else {
        let detail = format!("error converting fieldPath: field label not supported: {field}");
        problems.invalid(path, field, detail);
    }
}

/// `metadata.labels['key']` or `metadata.annotations['key']`.
pub(super) fn is_subscript(field: &str) -> bool {
    ["metadata.labels['", "metadata.annotations['"]
        .iter()
        .filter_map(|start| field.strip_prefix(start)?.strip_suffix("']"))
        .any(|key| names::qualified(&key.to_lowercase()).is_empty())
}

/// That there is one source is said of all of them together.
fn check_bulk_source(source: &Value, all: &Path<'_>, index: usize, problems: &mut Problems) {
    let path = all.index(index);
    check_text(source, "prefix", names::variable, &path, problems);
    let sources = ["configMapRef", "secretRef"];
    let given = || sources.iter().filter(|name| is_set(source, name));
    for name in given() {
        let path = path.field(name);
        if text(&source[*name], "name").is_empty() {
            problems.required(path.field("name"), "");
        }
        check_text(&source[*name], "name", names::subdomain, &path, problems);
    }
    let detail = match given().count() {
        0 => "must specify one of: `configMapRef` or `secretRef`",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    problems.invalid(all, "", detail);
}
