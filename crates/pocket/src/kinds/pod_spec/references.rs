//! Validation of references from a pod to its own fields and to resources of its containers.

use serde_json::Value;

use crate::{
    kinds::{field_rules::obeys, fields::text, names, path::Path, resources::quantity},
    status::Problems,
};

/// Fields of the pod that a variable may refer to.
pub(super) const VARIABLE_FIELDS: [&str; 9] = [
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

/// Fields of the pod that a file may refer to.
pub(super) const FILE_FIELDS: [&str; 5] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];

/// All known fields; not all of them may be referred to.
const FIELDS: [&str; 15] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.host",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

const BYTES: [&str; 13] = [
    "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei",
];

/// Validates a reference to a field; the allowed ones are in `shown`.
pub(super) fn check_field(
    reference: &Value,
    shown: &[&str],
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let field = text(reference, "fieldPath");
    let place = path.field("fieldPath");
    if field.is_empty() {
        problems.required(place, "");
        return;
    }
    let version = text(reference, "apiVersion");
    if !matches!(version, "" | "v1") {
        let detail = format!("error converting fieldPath: unsupported pod version: {version}");
        problems.invalid(place, field, detail);
        return;
    }
    match subscripted(field) {
        Some(("metadata.annotations", key)) => {
            obeys(names::qualified, &key.to_lowercase(), path, problems);
        }
        Some(("metadata.labels", key)) => obeys(names::qualified, key, path, problems),
        Some(_) => {
            let detail = format!(
                "error converting fieldPath: field label does not support subscript: {field}"
            );
            problems.invalid(place, field, detail);
        }
        None if !FIELDS.contains(&field) => {
            let detail = format!("error converting fieldPath: field label not supported: {field}");
            problems.invalid(place, field, detail);
        }
        None if !shown.contains(&named(field)) => {
            problems.not_supported(place, named(field), shown);
        }
        None => {}
    }
}

/// The current name of a field that was renamed.
fn named(field: &str) -> &str {
    match field {
        "spec.host" => "spec.nodeName",
        field => field,
    }
}

/// `metadata.labels['key']` as its two parts.
fn subscripted(field: &str) -> Option<(&str, &str)> {
    let (map, key) = field.strip_suffix("']")?.split_once("['")?;
    (!map.is_empty()).then_some((map, key))
}

/// Validates a reference to a resource; those in files also name a container.
pub(super) fn check_resource(
    reference: &Value,
    file: bool,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let resource = text(reference, "resource");
    if file && text(reference, "containerName").is_empty() {
        problems.required(path.field("containerName"), "");
    } else if resource.is_empty() {
        problems.required(path.field("resource"), "");
    } else if !RESOURCES.contains(&resource) && huge(resource).is_none() {
        problems.not_supported(path.field("resource"), resource, &RESOURCES);
    } else {
        check_divisor(reference, resource, path, problems);
    }
}

fn huge(resource: &str) -> Option<&str> {
    let sides = ["limits.hugepages-", "requests.hugepages-"];
    sides.iter().find_map(|side| resource.strip_prefix(side))
}

/// Validates the divisor of an amount.
fn check_divisor(reference: &Value, resource: &str, path: &Path<'_>, problems: &mut Problems) {
    let divisor = &reference["divisor"];
    if quantity(divisor).is_none_or(crate::quantity::Quantity::is_zero) {
        return;
    }
    let (values, what): (&[&str], _) = match resource.split_once('.') {
        Some((_, "cpu")) => (&["1m", "1"], "cpu"),
        Some((_, "memory")) => (&BYTES, "memory"),
        Some((_, "ephemeral-storage")) => (&BYTES, "local ephemeral storage"),
        _ => (&BYTES, "hugepages"),
    };
    let given = match divisor {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    if !values.contains(&given.as_str()) {
        let listed = match what {
            "cpu" => values.join(" and "),
            _ => values.join(", "),
        };
        let detail =
            format!("only divisor's values {listed} are supported with the {what} resource");
        problems.invalid(path.field("divisor"), resource, detail);
    }
}
