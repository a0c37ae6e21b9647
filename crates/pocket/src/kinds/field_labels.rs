//! Fields of built-in kinds that field selectors may name.

use serde_json::Value;

const POD: &[&str] = &[
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.podIPs",
    "status.nominatedNodeName",
];
const EVENT: &[&str] = &[
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
];
/// The same fields under the names of the newer API.
const NEW_EVENT: &[&str] = &[
    "regarding.kind",
    "regarding.namespace",
    "regarding.name",
    "regarding.uid",
    "regarding.apiVersion",
    "regarding.resourceVersion",
    "regarding.fieldPath",
    "reason",
    "reportingController",
    "type",
];

/// Whether a kind has its own fields for field selectors.
pub fn has_own_labels(group: &str, plural: &str) -> bool {
    matches!(
        (group, plural),
        (
            "",
            "pods"
                | "nodes"
                | "replicationcontrollers"
                | "events"
                | "namespaces"
                | "secrets"
                | "services"
        ) | ("batch", "jobs")
            | ("events.k8s.io", "events")
    )
}

/// Whether a kind's objects can be selected by a field.
pub fn has_field_label(group: &str, plural: &str, path: &str) -> bool {
    labels(group, plural).contains(&path)
}

fn labels(group: &str, plural: &str) -> &'static [&'static str] {
    match (group, plural) {
        ("", "pods") => POD,
        ("", "events") => EVENT,
        ("events.k8s.io", "events") => NEW_EVENT,
        ("", "nodes") => &["spec.unschedulable"],
        ("", "secrets") => &["type"],
        ("", "namespaces") => &["status.phase"],
        ("", "services") => &["spec.clusterIP", "spec.type"],
        ("", "replicationcontrollers") | ("apps", "replicasets") => &["status.replicas"],
        ("batch", "jobs") => &["status.successful"],
        _ => &[],
    }
}

/// The text of a selectable field; an absent one is empty, false or zero.
pub fn field_value(plural: &str, object: &Value, path: &str) -> String {
    match (plural, path) {
        ("events", "source") => text(&object["source"]["component"], "")
            .filter(|component| !component.is_empty())
            .unwrap_or_else(|| plain(object, "reportingComponent")),
        ("jobs", "status.successful") => {
            text(&object["status"]["succeeded"], "0").unwrap_or_default()
        }
        ("pods", "status.podIPs") => {
            let list = object["status"]["podIPs"]
                .as_array()
                .map(Vec::as_slice)
                .unwrap_or_default();
            let addresses: Vec<&str> = list
                .iter()
                .filter_map(|entry| entry["ip"].as_str())
                .collect();
            addresses.join(",")
        }
        (_, "spec.hostNetwork" | "spec.unschedulable") => {
            text(at(object, path), "false").unwrap_or_default()
        }
        (_, "status.replicas") => text(at(object, path), "0").unwrap_or_default(),
        _ => plain(object, path),
    }
}

fn plain(object: &Value, path: &str) -> String {
    text(at(object, path), "").unwrap_or_default()
}

fn at<'a>(object: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(object, |value, key| &value[key])
}

fn text(value: &Value, absent: &str) -> Option<String> {
    match value {
        Value::Null => Some(absent.to_owned()),
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn absent_flags_and_counts_have_their_zero() {
        let empty = json!({});
        assert_eq!(field_value("nodes", &empty, "spec.unschedulable"), "false");
        assert_eq!(field_value("jobs", &empty, "status.successful"), "0");
        assert_eq!(field_value("pods", &empty, "spec.nodeName"), "");
    }

    #[test]
    fn only_listed_fields_may_be_selected() {
        assert!(has_field_label("", "pods", "spec.nodeName"));
        assert!(!has_field_label("", "pods", "spec.containers"));
        assert!(!has_field_label("apps", "deployments", "spec.replicas"));
    }
}
