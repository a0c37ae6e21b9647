//! Conversion of autoscalers between v2, which is stored, and v1, which only has the CPU
//! utilization.
//!
//! What v1 has no field for it carries in annotations, so that a client that reads and writes back
//! in v1 loses nothing. These annotations are never stored: they are made when an object is shown
//! and read when one is sent.

use serde_json::{Value, json};

use super::{
    super::fields::{take, text},
    annotations,
};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
const CURRENT: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";

/// Converts a stored autoscaler to v1.
#[must_use]
pub(crate) fn to_v1(mut object: Value) -> Value {
    object["apiVersion"] = json!("autoscaling/v1");
    if let Some(spec) = object.get_mut("spec").filter(|spec| spec.is_object()) {
        let metrics = take(spec, "metrics").unwrap_or_default();
        let behavior = take(spec, "behavior").unwrap_or_default();
        let metrics = metrics.as_array().map(Vec::as_slice).unwrap_or_default();
        let (cpu, others): (Vec<&Value>, _) =
            metrics.iter().partition(|metric| share(metric).is_some());
        if let Some(percent) = cpu.first().copied().and_then(share) {
            spec["targetCPUUtilizationPercentage"] = percent.clone();
        }
        if !others.is_empty() {
            annotate(&mut object, METRICS, annotations::metrics(&others));
        }
        if behavior.is_object() {
            annotate(&mut object, BEHAVIOR, annotations::behavior(&behavior));
        }
    }
    status_to_v1(&mut object);
    object
}

fn status_to_v1(object: &mut Value) {
    let Some(status) = object.get_mut("status").filter(|status| status.is_object()) else {
        return;
    };
    for count in ["currentReplicas", "desiredReplicas"] {
        if status[count].is_null() {
            status[count] = json!(0);
        }
    }
    let current = take(status, "currentMetrics").unwrap_or_default();
    let conditions = take(status, "conditions").unwrap_or_default();
    let current: Vec<&Value> = current.as_array().into_iter().flatten().collect();
    if let Some(percent) = current.iter().find_map(|metric| share(metric)) {
        status["currentCPUUtilizationPercentage"] = percent.clone();
    }
    if !current.is_empty() {
        annotate(object, CURRENT, annotations::current_metrics(&current));
    }
    if let Some(conditions) = conditions.as_array().filter(|list| !list.is_empty()) {
        annotate(object, CONDITIONS, annotations::conditions(conditions));
    }
}

/// The CPU utilization of a metric, target or current.
fn share(metric: &Value) -> Option<&Value> {
    if text(metric, "type") != "Resource" || text(&metric["resource"], "name") != "cpu" {
        return None;
    }
    let found = ["target", "current"]
        .into_iter()
        .find_map(|side| metric["resource"][side].get("averageUtilization"));
    found.filter(|percent| !percent.is_null())
}

fn annotate(object: &mut Value, key: &str, note: String) {
    object["metadata"]["annotations"][key] = note.into();
}

/// Converts an autoscaler of v1 to its stored form.
#[must_use]
pub(crate) fn to_v2(mut object: Value) -> Value {
    object["apiVersion"] = json!("autoscaling/v2");
    let note = |key: &str| object["metadata"]["annotations"][key].as_str();
    let metrics = note(METRICS).and_then(annotations::read_metrics);
    let behavior = note(BEHAVIOR).and_then(annotations::read_behavior);
    let current = note(CURRENT).and_then(annotations::read_current_metrics);
    let conditions = note(CONDITIONS).and_then(annotations::read_conditions);
    forget_notes(&mut object);
    if let Some(spec) = object.get_mut("spec").filter(|spec| spec.is_object()) {
        let mut metrics = metrics.unwrap_or_default();
        let percent = take(spec, "targetCPUUtilizationPercentage");
        let percent = percent.filter(|percent| !percent.is_null());
        metrics.extend(percent.as_ref().map(wanted_share));
        if !metrics.is_empty() {
            spec["metrics"] = metrics.into();
        }
        if let Some(behavior) = behavior {
            spec["behavior"] = behavior;
        }
    }
    if let Some(status) = object.get_mut("status").filter(|status| status.is_object()) {
        status_to_v2(status, current, conditions);
    }
    object
}

fn status_to_v2(status: &mut Value, current: Option<Vec<Value>>, conditions: Option<Value>) {
    if status["currentReplicas"] == 0 {
        take(status, "currentReplicas");
    }
    let percent = take(status, "currentCPUUtilizationPercentage");
    let percent = percent.filter(|percent| !percent.is_null());
    // The annotation has more than the field.
    let current = current.or_else(|| Some(vec![seen_share(&percent?)]));
    status["currentMetrics"] = current.map_or(Value::Null, Value::Array);
    if let Some(conditions) = conditions {
        status["conditions"] = conditions;
    }
}

fn wanted_share(percent: &Value) -> Value {
    let target = json!({"type": "Utilization", "averageUtilization": percent});
    json!({"type": "Resource", "resource": {"name": "cpu", "target": target}})
}

fn seen_share(percent: &Value) -> Value {
    json!({"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": percent}}})
}

/// Drops the annotations that only v1 shows; a client may have sent them.
pub(super) fn forget_notes(object: &mut Value) {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    let Some(metadata) = metadata else { return };
    let annotations = metadata
        .get_mut("annotations")
        .and_then(Value::as_object_mut);
    let Some(annotations) = annotations else {
        return;
    };
    let before = annotations.len();
    annotations.retain(|key, _| ![METRICS, BEHAVIOR, CURRENT, CONDITIONS].contains(&key.as_str()));
    if annotations.is_empty() && before > 0 {
        metadata.remove("annotations");
    }
}

#[cfg(test)]
mod tests;
