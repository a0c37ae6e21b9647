//! Validation of topology spread constraints, scheduling gates and readiness gates.

use std::collections::{HashMap, HashSet};

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
    let mut seen = HashSet::new();
    for (index, gate) in gates.iter().enumerate() {
        let (path, name) = (all.index(index), text(gate, "name"));
        obeys(names::qualified, name, &path, problems);
        if !seen.insert(name) {
            problems.duplicate(path, name);
        }
    }
}

/// Validates topology spread constraints.
pub(super) fn check(spec: &Value, path: &Path<'_>, problems: &mut Problems) {
    let all = path.field("topologySpreadConstraints");
    let rules = list(spec, "topologySpreadConstraints");
    // Of two equal ones, the earlier is reported.
    let last: HashMap<_, usize> = rules.iter().map(pair).zip(0..).collect();
    for (index, rule) in rules.iter().enumerate() {
        let comes_again = last[&pair(rule)] > index;
        check_rule(rule, comes_again, &all.index(index), problems);
    }
}

fn check_rule(rule: &Value, comes_again: bool, path: &Path<'_>, problems: &mut Problems) {
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
    if comes_again {
        let both = path.field("{topologyKey, whenUnsatisfiable}");
        let (key, otherwise) = pair(rule);
        problems.duplicate(both, format!("{{{key}, {otherwise}}}"));
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
fn pair(rule: &Value) -> (&str, &str) {
    (text(rule, "topologyKey"), text(rule, "whenUnsatisfiable"))
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
