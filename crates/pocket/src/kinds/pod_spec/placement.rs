//! Validation of scheduling constraints: node selector, tolerations, affinity and spreading.

mod affinity;
mod spreading;

use serde_json::Value;

pub(in crate::kinds) use affinity::{PREFERRED, REQUIRED};

use crate::{
    kinds::{
        field_rules::obeys,
        fields::{is_set, list, text},
        metadata::check_label_map,
        names,
        path::Path,
    },
    status::Problems,
};

/// The effects of taints, which tolerations may name.
pub(in crate::kinds) const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// Validates the node selector.
pub(super) fn check_node_selector(spec: &Value, path: &Path<'_>, problems: &mut Problems) {
    let selector = path.field("nodeSelector").to_string();
    check_label_map(spec, "nodeSelector", &selector, problems);
}

/// Validates the affinity.
pub(super) fn check_affinity(spec: &Value, path: &Path<'_>, problems: &mut Problems) {
    affinity::check(&spec["affinity"], &path.field("affinity"), problems);
}

/// Validates gates and topology spread constraints.
pub(super) fn check_spreading(spec: &Value, path: &Path<'_>, problems: &mut Problems) {
    spreading::check_gates(spec, path, problems);
    spreading::check(spec, path, problems);
}

/// Validates the tolerations of a pod spec.
pub(in crate::kinds) fn check_tolerations(spec: &Value, path: &Path<'_>, problems: &mut Problems) {
    let path = path.field("tolerations");
    for (index, toleration) in list(spec, "tolerations").iter().enumerate() {
        check_toleration(toleration, &path.index(index), problems);
    }
}

fn check_toleration(toleration: &Value, path: &Path<'_>, problems: &mut Problems) {
    let (key, operator) = (text(toleration, "key"), text(toleration, "operator"));
    if key.is_empty() {
        if operator != "Exists" {
            let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            problems.invalid(path.field("operator"), operator, detail);
        }
    } else {
        for complaint in names::qualified(key) {
            problems.invalid(path.field("key"), key, complaint);
        }
    }
    let effect = text(toleration, "effect");
    if is_set(toleration, "tolerationSeconds") && effect != "NoExecute" {
        let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        problems.invalid(path.field("effect"), effect, detail);
    }
    check_operator(toleration, &path.field("operator"), problems);
    if !effect.is_empty() && !EFFECTS.contains(&effect) {
        problems.not_supported(path.field("effect"), effect, &EFFECTS);
    }
}

/// Validates the operator. Comparison of numbers is not enabled, but is listed.
fn check_operator(toleration: &Value, path: &Path<'_>, problems: &mut Problems) {
    let value = text(toleration, "value");
    match text(toleration, "operator") {
        "Equal" | "" => obeys(names::label_value, value, path, problems),
        "Exists" if !value.is_empty() => {
            let detail = "value must be empty when `operator` is 'Exists'";
            problems.invalid(path, value, detail);
        }
        "Exists" => {}
        other @ ("Lt" | "Gt") => {
            problems.not_supported(path, other, &["Equal", "Exists", "Lt", "Gt"]);
        }
        other => problems.not_supported(path, other, &["Equal", "Exists"]),
    }
}
