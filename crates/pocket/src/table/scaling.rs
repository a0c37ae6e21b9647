//! Rows of autoscalers and disruption budgets.

use jiff::Timestamp;
use serde_json::Value;

use super::read::{self, NONE, UNSET, either, list, number, text};

const UNKNOWN: &str = "<unknown>";

pub(super) fn autoscaler(object: &Value, now: Timestamp) -> Vec<Value> {
    scaled(object, now, targets(object))
}

/// The autoscaler of v1, which only has the CPU utilization.
pub(super) fn cpu_autoscaler(object: &Value, now: Timestamp) -> Vec<Value> {
    scaled(object, now, cpu_target(object))
}

fn scaled(object: &Value, now: Timestamp, targets: String) -> Vec<Value> {
    let reference = object
        .pointer("/spec/scaleTargetRef")
        .unwrap_or(&Value::Null);
    let reference = format!("{}/{}", text(reference, "/kind"), text(reference, "/name"));
    let least = object.pointer("/spec/minReplicas").and_then(Value::as_i64);
    vec![
        read::name(object),
        reference.into(),
        targets.into(),
        least
            .map_or_else(|| UNSET.to_owned(), |n| n.to_string())
            .into(),
        number(object, "/spec/maxReplicas").into(),
        number(object, "/status/currentReplicas").into(),
        read::age(object, now),
    ]
}

fn targets(object: &Value) -> String {
    let metrics = list(object, "/spec/metrics");
    let shown: Vec<String> = metrics
        .iter()
        .enumerate()
        .map(|(index, metric)| {
            let current = object.pointer(&format!("/status/currentMetrics/{index}"));
            target(metric, current.unwrap_or(&Value::Null))
        })
        .collect();
    match shown.len() {
        0 => NONE.into(),
        1 | 2 => shown.join(", "),
        n => format!("{} + {} more...", shown[..2].join(", "), n - 2),
    }
}

fn cpu_target(object: &Value) -> String {
    let percent = |pointer, missing: &str| {
        let found = object.pointer(pointer).and_then(Value::as_i64);
        found.map_or_else(|| missing.to_owned(), |n| format!("{n}%"))
    };
    let wanted = percent("/spec/targetCPUUtilizationPercentage", UNSET);
    let current = percent("/status/currentCPUUtilizationPercentage", UNKNOWN);
    format!("cpu: {current}/{wanted}")
}

/// One metric as `current/target`, with its name in front if it is a resource.
fn target(metric: &Value, current: &Value) -> String {
    let (field, prefix) = match text(metric, "/type") {
        "Resource" => ("resource", text(metric, "/resource/name")),
        "ContainerResource" => ("containerResource", text(metric, "/containerResource/name")),
        "Pods" => ("pods", ""),
        "Object" => ("object", ""),
        "External" => ("external", ""),
        _ => return "<unknown type>".into(),
    };
    let wanted = &metric[field]["target"];
    let current = &current[field]["current"];
    let shown = |key: &str, unit: &str| {
        let seen = either(current.get(key)).map_or_else(|| UNKNOWN.into(), |n| n + unit);
        either(wanted.get(key)).map(|wanted| format!("{seen}/{wanted}{unit}"))
    };
    let average = shown("averageValue", "").map(|average| match field {
        "object" | "external" => average + " (avg)",
        _ => average,
    });
    let line = average
        .or_else(|| shown("averageUtilization", "%"))
        .or_else(|| shown("value", ""))
        .unwrap_or_else(|| format!("{UNKNOWN}/<auto>"));
    if prefix.is_empty() {
        line
    } else {
        format!("{prefix}: {line}")
    }
}

pub(super) fn disruption_budget(object: &Value, now: Timestamp) -> Vec<Value> {
    let limit = |pointer| either(object.pointer(pointer)).unwrap_or_else(|| "N/A".into());
    vec![
        read::name(object),
        limit("/spec/minAvailable").into(),
        limit("/spec/maxUnavailable").into(),
        number(object, "/status/disruptionsAllowed").into(),
        read::age(object, now),
    ]
}
