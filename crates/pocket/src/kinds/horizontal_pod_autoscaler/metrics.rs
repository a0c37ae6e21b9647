//! One metric of an autoscaler: a source that fits its type, and a target that fits the source.

use serde_json::Value;

use super::super::{
    field_rules::obeys,
    fields::{is_set, text},
    label_selector, names,
    path::Path,
    resources::quantity,
};
use crate::status::Problems;

/// The types of metrics and the field that holds the source of each.
const SOURCES: [(&str, &str); 5] = [
    ("ContainerResource", "containerResource"),
    ("External", "external"),
    ("Object", "object"),
    ("Pods", "pods"),
    ("Resource", "resource"),
];

/// The order in which sources are checked; of several, only the first is.
const LOOKED_AT: [&str; 5] = [
    "object",
    "external",
    "pods",
    "resource",
    "containerResource",
];

const TARGETS: [&str; 3] = ["Utilization", "Value", "AverageValue"];

pub(super) fn validate(metric: &Value, path: &Path<'_>, problems: &mut Problems) {
    if let Some(source) = LOOKED_AT.iter().find(|source| is_set(metric, source)) {
        validate_source(source, &metric[*source], &path.field(source), problems);
    }
    let kind = text(metric, "type");
    let Some(&(_, field)) = SOURCES.iter().find(|(name, _)| *name == kind) else {
        let kinds = SOURCES.map(|(name, _)| name);
        if kind.is_empty() {
            let detail = "must specify a metric source type";
            problems.required(path.field("type"), detail);
        }
        return problems.not_supported(path.field("type"), kind, &kinds);
    };
    if !is_set(metric, field) {
        let detail = "must populate information for the given metric source";
        problems.required(path.field(field), detail);
    }
    for other in LOOKED_AT {
        if other != field && is_set(metric, other) {
            let detail = "must populate the given metric source only";
            problems.forbidden(path.field(other), detail);
        }
    }
}

fn validate_source(field: &str, source: &Value, path: &Path<'_>, problems: &mut Problems) {
    match field {
        "resource" | "containerResource" => {
            need(
                source,
                path,
                "name",
                "must specify a resource name",
                problems,
            );
            if field == "containerResource" {
                need(
                    source,
                    path,
                    "container",
                    "must specify a container",
                    problems,
                );
            }
        }
        _ => check_metric(field, source, path, problems),
    }
    let path = path.field("target");
    let target = &source["target"];
    validate_target(target, &path, problems);
    let is = |key: &str| is_set(target, key);
    match (field, is("averageValue")) {
        ("resource" | "containerResource", average) => match (is("averageUtilization"), average) {
            (false, false) => problems.required(
                path.field("averageUtilization"),
                "must set either a target raw value or a target utilization",
            ),
            (true, true) => problems.forbidden(
                path.field("averageValue"),
                "may not set both a target raw value and a target utilization",
            ),
            _ => {}
        },
        ("pods", false) => problems.required(
            path.field("averageValue"),
            "must specify a positive target averageValue",
        ),
        ("object", false) if !is("value") => problems.required(
            path.field("averageValue"),
            "must set either a target value or averageValue",
        ),
        ("external", false) if !is("value") => problems.required(
            path.field("averageValue"),
            "must set either a target value for metric or a per-pod target",
        ),
        ("external", true) if is("value") => problems.forbidden(
            path.field("value"),
            "may not set both a target value for metric and a per-pod target",
        ),
        _ => {}
    }
}

fn need(holder: &Value, path: &Path<'_>, field: &str, detail: &str, problems: &mut Problems) {
    if text(holder, field).is_empty() {
        problems.required(path.field(field), detail);
    }
}

/// Validates the metric's name and selector, and the object it describes.
fn check_metric(field: &str, source: &Value, path: &Path<'_>, problems: &mut Problems) {
    if field == "object" {
        let (described, path) = (&source["describedObject"], path.field("describedObject"));
        for key in ["kind", "name"] {
            need(described, &path, key, "", problems);
            let place = path.field(key);
            obeys(names::path_segment, text(described, key), &place, problems);
        }
    }
    let (metric, path) = (&source["metric"], path.field("metric"));
    need(
        metric,
        &path,
        "name",
        "must specify a metric name",
        problems,
    );
    let place = path.field("name");
    obeys(names::path_segment, text(metric, "name"), &place, problems);
    label_selector::validate(&metric["selector"], &path.field("selector"), problems);
}

fn validate_target(target: &Value, path: &Path<'_>, problems: &mut Problems) {
    let kind = text(target, "type");
    need(
        target,
        path,
        "type",
        "must specify a metric target type",
        problems,
    );
    if !TARGETS.contains(&kind) {
        let detail = "must be either Utilization, Value, or AverageValue";
        problems.invalid(path.field("type"), kind, detail);
    }
    for key in ["value", "averageValue"] {
        let positive =
            quantity(&target[key]).is_none_or(|amount| !amount.is_negative() && !amount.is_zero());
        if is_set(target, key) && !positive {
            problems.invalid(path.field(key), target[key].clone(), "must be positive");
        }
    }
    if let Some(utilization) = target["averageUtilization"].as_i64()
        && utilization < 1
    {
        let path = path.field("averageUtilization");
        problems.invalid(path, utilization, "must be greater than 0");
    }
}
