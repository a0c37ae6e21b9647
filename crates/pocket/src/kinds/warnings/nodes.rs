//! Warnings about scheduling: renamed node labels, and selectors that select nothing.

use serde_json::Value;

use crate::kinds::{
    fields::{entries, is_set, list, text},
    names,
    pod_spec::{PREFERRED, REQUIRED},
};

/// Renamed node labels, and since when.
const RENAMED: [(&str, &str); 6] = [
    (
        "beta.kubernetes.io/arch",
        "deprecated since v1.14; use \"kubernetes.io/arch\" instead",
    ),
    (
        "beta.kubernetes.io/os",
        "deprecated since v1.14; use \"kubernetes.io/os\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
    ),
    (
        "beta.kubernetes.io/instance-type",
        "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
    ),
    (
        "node-role.kubernetes.io/master",
        "use \"node-role.kubernetes.io/control-plane\" instead",
    ),
];

pub(super) fn warn(spec: &Value, path: &str, warnings: &mut Vec<String>) {
    for (label, _) in entries(spec, "nodeSelector") {
        if let Some(why) = renamed(label) {
            warnings.push(format!("{path}.nodeSelector[{label}]: {why}"));
        }
    }
    let affinity = format!("{path}.affinity");
    warn_nodes(&spec["affinity"]["nodeAffinity"], &affinity, warnings);
    for field in ["podAffinity", "podAntiAffinity"] {
        let path = format!("{affinity}.{field}");
        warn_pods(&spec["affinity"][field], &path, warnings);
    }
    for (index, rule) in list(spec, "topologySpreadConstraints").iter().enumerate() {
        let path = format!("{path}.topologySpreadConstraints[{index}]");
        warn_key(
            text(rule, "topologyKey"),
            &format!("{path}.topologyKey"),
            warnings,
        );
        warn_selector(rule, &path, warnings);
    }
}

fn warn_nodes(affinity: &Value, path: &str, warnings: &mut Vec<String>) {
    let terms = list(&affinity[REQUIRED], "nodeSelectorTerms");
    for (index, term) in terms.iter().enumerate() {
        let path = format!("{path}.nodeAffinity.{REQUIRED}.nodeSelectorTerms[{index}]");
        warn_term(term, &path, warnings);
    }
    for (index, term) in list(affinity, PREFERRED).iter().enumerate() {
        let path = format!("{path}.nodeAffinity.{PREFERRED}[{index}].preference");
        warn_term(&term["preference"], &path, warnings);
        warn_values(&term["preference"], &path, warnings);
    }
}

/// Warns of values that no label can have.
fn warn_values(term: &Value, path: &str, warnings: &mut Vec<String>) {
    for (at, expression) in list(term, "matchExpressions").iter().enumerate() {
        for (index, value) in list(expression, "values").iter().enumerate() {
            let value = value.as_str().unwrap_or_default();
            let place = format!("{path}.matchExpressions[{at}].values[{index}]");
            for complaint in names::label_value(value) {
                warnings.push(format!("{place}: {value} is invalid, {complaint}"));
            }
        }
    }
}

fn warn_term(term: &Value, path: &str, warnings: &mut Vec<String>) {
    for (index, expression) in list(term, "matchExpressions").iter().enumerate() {
        let path = format!("{path}.matchExpressions[{index}].key");
        warn_key(text(expression, "key"), &path, warnings);
    }
}

fn warn_pods(affinity: &Value, path: &str, warnings: &mut Vec<String>) {
    for (index, term) in list(affinity, REQUIRED).iter().enumerate() {
        warn_selector(term, &format!("{path}.{REQUIRED}[{index}]"), warnings);
    }
    for (index, term) in list(affinity, PREFERRED).iter().enumerate() {
        let path = format!("{path}.{PREFERRED}[{index}].podAffinityTerm");
        warn_selector(&term["podAffinityTerm"], &path, warnings);
    }
}

fn warn_key(label: &str, path: &str, warnings: &mut Vec<String>) {
    if let Some(why) = renamed(label) {
        warnings.push(format!("{path}: {label} is {why}"));
    }
}

fn warn_selector(holder: &Value, path: &str, warnings: &mut Vec<String>) {
    if !is_set(holder, "labelSelector") {
        warnings.push(format!(
            "{path}.labelSelector: a null labelSelector results in matching no pod"
        ));
    }
}

fn renamed(label: &str) -> Option<&'static str> {
    let known = RENAMED.iter().find(|(old, _)| *old == label);
    known.map(|(_, why)| *why)
}
