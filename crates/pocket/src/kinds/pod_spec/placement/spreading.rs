//! Validation of topology spread constraints, scheduling gates and readiness gates.

use serde_json::Value;

use super::affinity::check_label_keys;
use crate::{
    kinds::{
        field_rules::{obeys, one_of_set},
        fields::{is_set, list, number, text},
        label_selector, names,
        path::Path,
    },
    status::Problems,
};

/// Validates scheduling gates and readiness gates.
pub(super) fn check_gates(spec: &Value, path: &Path<'_>, problems: &mut Problems) {
    let all = path.field("readinessGates");
    for (index, gate) in list(spec, "readinessGates").iter().enumerate() {
        let path = all.index(index);
        let path = path.field("conditionType");
        obeys(
            names::qualified,
            text(gate, "conditionType"),
            &path,
            problems,
        );
    }
    let all = path.field("schedulingGates");
    let gates = list(spec, "schedulingGates");
    for (index, gate) in gates.iter().enumerate() {
        let (path, name) = (all.index(index), text(gate, "name"));
        obeys(names::qualified, name, &path, problems);
        if gates[..index]
            .iter()
            .any(|other| text(other, "name") == name)
        {
            problems.duplicate(path, name);
        }
    }
}

/// Validates topology spread constraints.
pub(super) fn check(spec: &Value, path: &Path<'_>, problems: &mut Problems) {
    let all = path.field("topologySpreadConstraints");
    let rules = list(spec, "topologySpreadConstraints");
    for (index, rule) in rules.iter().enumerate() {
        check_rule(rule, &rules[index + 1..], &all.index(index), problems);
    }
}

fn check_rule(rule: &Value, later: &[Value], path: &Path<'_>, problems: &mut Problems) {
    let skew = number(rule, "maxSkew");
    if skew <= 0 {
        problems.invalid(path.field("maxSkew"), skew, "must be greater than zero");
    }
    if text(rule, "topologyKey").is_empty() {
        problems.required(path.field("topologyKey"), "can not be empty");
    }
    let otherwise = text(rule, "whenUnsatisfiable");
    let known = ["DoNotSchedule", "ScheduleAnyway"];
    if !known.contains(&otherwise) {
        problems.not_supported(path.field("whenUnsatisfiable"), otherwise, &known);
    }
    // Of two equal ones, the earlier is reported.
    if later.iter().any(|other| pair(other) == pair(rule)) {
        let both = path.field("{topologyKey, whenUnsatisfiable}");
        problems.duplicate(both, pair(rule));
    }
    check_domains(rule, otherwise, path, problems);
    for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
        one_of_set(&["Honor", "Ignore"], rule, path, policy, problems);
    }
    check_label_keys(rule, path, problems);
    let selector = path.field("labelSelector");
    label_selector::validate(&rule["labelSelector"], &selector, problems);
}

/// The pair of fields that must be unique among the constraints.
fn pair(rule: &Value) -> String {
    let (key, otherwise) = (text(rule, "topologyKey"), text(rule, "whenUnsatisfiable"));
    format!("{{{key}, {otherwise}}}")
}

fn check_domains(rule: &Value, otherwise: &str, path: &Path<'_>, problems: &mut Problems) {
    if !is_set(rule, "minDomains") {
        return;
    }
    let (least, path) = (number(rule, "minDomains"), path.field("minDomains"));
    if least <= 0 {
        problems.invalid(path, least, "must be greater than zero");
    }
    if otherwise != "DoNotSchedule" {
        let detail =
            format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {otherwise}");
        problems.invalid(path, least, detail);
    }
}
