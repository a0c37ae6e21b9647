//! One metric of an autoscaler: a source that fits its type, and a target that fits the source.

use serde_json::Value;

use super::super::{
    field_rules::one_of,
    fields::{is_set, text},
    label_selector,
    path::Path,
};
use crate::status::Problems;

/// The types of metrics, the field that holds the source of each, and the targets it takes.
const SOURCES: [(&str, &str, &[&str]); 5] = [
    (
        "ContainerResource",
        "containerResource",
        &["averageUtilization", "averageValue"],
    ),
    ("External", "external", &["value", "averageValue"]),
    ("Object", "object", &["value", "averageValue"]),
    ("Pods", "pods", &["averageValue"]),
    (
        "Resource",
        "resource",
        &["averageUtilization", "averageValue"],
    ),
];

const TARGETS: [&str; 3] = ["AverageValue", "Utilization", "Value"];

pub(super) fn validate(metric: &Value, path: &Path<'_>, problems: &mut Problems) {
    let kind = text(metric, "type");
    let Some(&(_, field, targets)) = SOURCES.iter().find(|(name, _, _)| *name == kind) else {
        let kinds = SOURCES.map(|(name, _, _)| name);
        return one_of(&kinds, metric, path, "type", problems);
    };
    if !is_set(metric, field) {
        let detail = "must populate information for the given metric source";
        problems.required(path.field(field), detail);
    }
    for (_, other, _) in SOURCES {
        if other != field && is_set(metric, other) {
            let detail = "must populate the given metric source only";
            problems.forbidden(path.field(other), detail);
        }
    }
    let source = &metric[field];
    if source.is_object() {
        let path = path.field(field);
        let selector = &source["metric"]["selector"];
        if selector.is_object() {
            let path = path.field("metric");
            label_selector::validate(selector, &path.field("selector"), problems);
        }
        validate_target(&source["target"], targets, &path.field("target"), problems);
    }
}

fn validate_target(target: &Value, takes: &[&str], path: &Path<'_>, problems: &mut Problems) {
    one_of(&TARGETS, target, path, "type", problems);
    if let Some(utilization) = target["averageUtilization"].as_i64()
        && utilization < 1
    {
        let path = path.field("averageUtilization");
        problems.invalid(path, utilization, "must be greater than 0");
    }
    let given = takes.iter().filter(|key| is_set(target, key)).count();
    if given == 0 {
        let (first, last) = (takes[0], takes[takes.len() - 1]);
        if takes.len() == 1 {
            let detail = "must specify a positive target averageValue";
            problems.required(path.field(first), detail);
        } else {
            let detail = format!("must set either a target {first} or a target {last}");
            problems.required(path.field(first), detail);
        }
    } else if given > 1 {
        let (first, last) = (takes[0], takes[1]);
        let detail = format!("may not set both a target {first} and a target {last}");
        problems.forbidden(path.field(last), detail);
    }
}
