//! Validation of node and pod affinity.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::{
    kinds::{
        field_rules::obeys,
        fields::{entries, is_set, list, number, text},
        label_selector, names,
        path::Path,
    },
    status::Problems,
};

/// Required and preferred scheduling terms.
pub(in crate::kinds) const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
pub(in crate::kinds) const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Label keys whose values pods must share with this one, or must not.
const MATCHED: &str = "matchLabelKeys";
const MISMATCHED: &str = "mismatchLabelKeys";

const NO_OPERATOR: &str = "not a valid selector operator";

pub(super) fn check(affinity: &Value, path: &Path<'_>, problems: &mut Problems) {
    check_nodes(
        &affinity["nodeAffinity"],
        &path.field("nodeAffinity"),
        problems,
    );
    for side in ["podAffinity", "podAntiAffinity"] {
        check_pods(&affinity[side], &path.field(side), problems);
    }
}

fn check_nodes(affinity: &Value, path: &Path<'_>, problems: &mut Problems) {
    if is_set(affinity, REQUIRED) {
        let path = path.field(REQUIRED);
        let path = path.field("nodeSelectorTerms");
        let terms = list(&affinity[REQUIRED], "nodeSelectorTerms");
        if terms.is_empty() {
            problems.required(path, "must have at least one node selector term");
        }
        for (index, term) in terms.iter().enumerate() {
            check_node_term(term, &path.index(index), problems);
            check_values(term, &path.index(index), problems);
        }
    }
    let path = path.field(PREFERRED);
    for (index, term) in list(affinity, PREFERRED).iter().enumerate() {
        let path = path.index(index);
        check_weight(term, &path, problems);
        check_node_term(&term["preference"], &path.field("preference"), problems);
    }
}

fn check_weight(term: &Value, path: &Path<'_>, problems: &mut Problems) {
    let weight = number(term, "weight");
    if !(1..=100).contains(&weight) {
        problems.invalid(path.field("weight"), weight, "must be in the range 1-100");
    }
}

fn check_node_term(term: &Value, path: &Path<'_>, problems: &mut Problems) {
    let all = path.field("matchExpressions");
    for (index, expression) in list(term, "matchExpressions").iter().enumerate() {
        check_label(expression, &all.index(index), problems);
    }
    let all = path.field("matchFields");
    for (index, expression) in list(term, "matchFields").iter().enumerate() {
        check_field(expression, &all.index(index), problems);
    }
}

fn check_label(expression: &Value, path: &Path<'_>, problems: &mut Problems) {
    let values = list(expression, "values");
    let operator = text(expression, "operator");
    let place = path.field("values");
    match (operator, values.len()) {
        ("In" | "NotIn", 0) => {
            let detail = "must be specified when `operator` is 'In' or 'NotIn'";
            problems.required(place, detail);
        }
        ("Exists" | "DoesNotExist", 1..) => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            problems.forbidden(place, detail);
        }
        ("Gt" | "Lt", 0 | 2..) => {
            let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            problems.required(place, detail);
        }
        ("In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt", _) => {}
        _ => problems.invalid(path.field("operator"), operator, NO_OPERATOR),
    }
    let key = text(expression, "key");
    obeys(names::qualified, key, &path.field("key"), problems);
}

/// Required values must be valid labels; preferred ones only cause a warning.
fn check_values(term: &Value, path: &Path<'_>, problems: &mut Problems) {
    let all = path.field("matchExpressions");
    for (at, expression) in list(term, "matchExpressions").iter().enumerate() {
        let place = all.index(at);
        let place = place.field("values");
        for (index, value) in list(expression, "values").iter().enumerate() {
            let value = value.as_str().unwrap_or_default();
            obeys(names::label_value, value, &place.index(index), problems);
        }
    }
}

/// Of a node's fields, only its name can be selected.
fn check_field(expression: &Value, path: &Path<'_>, problems: &mut Problems) {
    let (key, operator) = (text(expression, "key"), text(expression, "operator"));
    let values = list(expression, "values");
    let place = path.field("values");
    match operator {
        "In" | "NotIn" if values.len() != 1 => problems.required(
            place,
            "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
        ),
        "In" | "NotIn" => {}
        _ => problems.invalid(path.field("operator"), operator, NO_OPERATOR),
    }
    if key != "metadata.name" {
        let detail = "not a valid field selector key";
        problems.invalid(path.field("key"), key, detail);
        return;
    }
    for (index, value) in values.iter().enumerate() {
        let value = value.as_str().unwrap_or_default();
        obeys(names::subdomain, value, &place.index(index), problems);
    }
}

fn check_pods(affinity: &Value, path: &Path<'_>, problems: &mut Problems) {
    let all = path.field(REQUIRED);
    for (index, term) in list(affinity, REQUIRED).iter().enumerate() {
        check_pod_term(term, &all.index(index), problems);
    }
    let all = path.field(PREFERRED);
    for (index, term) in list(affinity, PREFERRED).iter().enumerate() {
        let path = all.index(index);
        check_weight(term, &path, problems);
        let inner = path.field("podAffinityTerm");
        check_pod_term(&term["podAffinityTerm"], &inner, problems);
    }
}

fn check_pod_term(term: &Value, path: &Path<'_>, problems: &mut Problems) {
    for selector in ["labelSelector", "namespaceSelector"] {
        label_selector::validate(&term[selector], &path.field(selector), problems);
    }
    for namespace in list(term, "namespaces") {
        let namespace = namespace.as_str().unwrap_or_default();
        obeys(names::label, namespace, &path.field("namespace"), problems);
    }
    check_label_keys(term, path, problems);
    let key = text(term, "topologyKey");
    if key.is_empty() {
        problems.required(path.field("topologyKey"), "can not be empty");
    }
    obeys(names::qualified, key, &path.field("topologyKey"), problems);
}

/// Validates the label keys of a rule that has a selector.
pub(super) fn check_label_keys(rule: &Value, path: &Path<'_>, problems: &mut Problems) {
    for field in [MATCHED, MISMATCHED] {
        let place = path.field(field);
        let keys = list(rule, field);
        if !keys.is_empty() && !is_set(rule, "labelSelector") {
            let detail = "must not be specified when labelSelector is not set";
            problems.forbidden(place, detail);
            continue;
        }
        for (index, key) in keys.iter().enumerate() {
            let key = key.as_str().unwrap_or_default();
            obeys(names::qualified, key, &place.index(index), problems);
        }
    }
    check_selected_keys(rule, path, problems);
    let (all, place) = (list(rule, MATCHED), path.field(MATCHED));
    let mismatched: HashSet<&Value> = list(rule, MISMATCHED).iter().collect();
    for (index, key) in all.iter().enumerate() {
        if mismatched.contains(key) {
            let detail = "exists in both matchLabelKeys and mismatchLabelKeys";
            problems.invalid(place.index(index), key.clone(), detail);
        }
    }
}

/// Each label key has a generated expression in a new pod. A second expression of the key comes
/// from the author, and is reported at the position of the key in the rule.
fn check_selected_keys(rule: &Value, path: &Path<'_>, problems: &mut Problems) {
    let (keys, selector) = (list(rule, MATCHED), &rule["labelSelector"]);
    let keys = keys.iter().filter_map(Value::as_str);
    let places: HashMap<&str, usize> = keys.zip(0..).collect();
    let mut seen: HashSet<&str> = entries(selector, "matchLabels")
        .map(|(key, _)| key.as_str())
        .collect();
    for expression in list(selector, "matchExpressions") {
        let key = text(expression, "key");
        let place = places.get(key);
        if let Some(&index) = place.filter(|_| seen.contains(key)) {
            let detail = "exists in both matchLabelKeys and labelSelector";
            problems.invalid(path.index(index), key, detail);
        }
        seen.insert(key);
    }
}
