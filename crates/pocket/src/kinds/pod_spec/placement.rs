//! Rules on where a pod may run: node selector, tolerations, affinity weights and spreading.

use serde_json::Value;

use crate::{
    kinds::{
        fields::{is_set, list, number, text},
        metadata::check_label_map,
        names,
        path::Path,
    },
    status::Problems,
};

pub(super) fn check(spec: &Value, path: &Path<'_>, problems: &mut Problems) {
    let selector = path.field("nodeSelector").to_string();
    check_label_map(spec, "nodeSelector", &selector, problems);
    check_tolerations(spec, path, problems);
    check_weights(&spec["affinity"], &path.field("affinity"), problems);
    let spread = path.field("topologySpreadConstraints");
    for (index, rule) in list(spec, "topologySpreadConstraints").iter().enumerate() {
        let skew = number(rule, "maxSkew");
        if skew <= 0 {
            let path = spread.index(index);
            problems.invalid(path.field("maxSkew"), skew, "must be greater than zero");
        }
    }
}

/// Rules on the tolerations of a pod spec.
pub(super) fn check_tolerations(spec: &Value, path: &Path<'_>, problems: &mut Problems) {
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
    let value = text(toleration, "value");
    if operator == "Exists" && !value.is_empty() {
        let detail = "value must be empty when `operator` is 'Exists'";
        problems.invalid(path.field("operator"), value, detail);
    }
    let effect = text(toleration, "effect");
    if is_set(toleration, "tolerationSeconds") && effect != "NoExecute" {
        let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        problems.invalid(path.field("effect"), effect, detail);
    }
}

fn check_weights(affinity: &Value, path: &Path<'_>, problems: &mut Problems) {
    const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
    for side in ["nodeAffinity", "podAffinity", "podAntiAffinity"] {
        let path = path.field(side);
        let path = path.field(PREFERRED);
        for (index, term) in list(&affinity[side], PREFERRED).iter().enumerate() {
            let weight = number(term, "weight");
            if !(1..=100).contains(&weight) {
                let path = path.index(index);
                problems.invalid(path.field("weight"), weight, "must be in the range 1-100");
            }
        }
    }
}
