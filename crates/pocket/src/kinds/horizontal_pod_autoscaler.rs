//! HorizontalPodAutoscaler, stored as autoscaling/v2. No controller here acts on it.

mod annotations;
pub(super) mod convert;
mod metrics;

use serde_json::{Value, json};

use super::{
    Rules,
    field_rules::{at_least, non_negative, obeys, one_of},
    fields::{fill, filled, is_set, list, number, part, set, text},
    names,
    path::Path,
    resources::check_amount,
};
use crate::status::Problems;

const SPEC: Path<'_> = Path::At("spec");
const MAX_PERIOD_SECONDS: i64 = 1800;
const MAX_STABILIZATION_SECONDS: i64 = 3600;

pub(super) const RULES: Rules = Rules {
    default,
    prepare_create: |object, _| {
        set(
            object,
            "status",
            json!({"desiredReplicas": 0, "currentMetrics": null}),
        );
    },
    validate,
    validate_status: |new, _, problems| {
        let counts = ["currentReplicas", "desiredReplicas"];
        non_negative(&new["status"], &Path::At("status"), &counts, problems);
    },
    warnings: |_| {
        vec!["horizontal pod autoscalers are stored but not enforced by this server: nothing scales their targets".into()]
    },
    ..Rules::SHAPE_ONLY
};

fn default(object: &mut Value) {
    convert::forget_notes(object);
    let Some(spec) = filled(object, "spec") else {
        return;
    };
    fill(spec, "minReplicas", 1);
    if list(spec, "metrics").is_empty() {
        let target = json!({"type": "Utilization", "averageUtilization": 80});
        let cpu = json!({"type": "Resource", "resource": {"name": "cpu", "target": target}});
        set(spec, "metrics", vec![cpu]);
    }
    if let Some(behavior) = part(spec, "behavior") {
        if let Some(up) = filled(behavior, "scaleUp") {
            fill(up, "stabilizationWindowSeconds", 0);
            let policies = [("Pods", 4), ("Percent", 100)];
            default_scaling(up, &policies);
        }
        if let Some(down) = filled(behavior, "scaleDown") {
            default_scaling(down, &[("Percent", 100)]);
        }
    }
}

fn default_scaling(rules: &mut Value, policies: &[(&str, i64)]) {
    fill(rules, "selectPolicy", "Max");
    if !is_set(rules, "policies") {
        let policy = |&(kind, value): &(&str, i64)| json!({"type": kind, "value": value, "periodSeconds": 15});
        set(
            rules,
            "policies",
            policies.iter().map(policy).collect::<Vec<_>>(),
        );
    }
}

fn validate(object: &Value, problems: &mut Problems) {
    let spec = &object["spec"];
    at_least(1, spec, &SPEC, "minReplicas", problems);
    let most = number(spec, "maxReplicas");
    match most {
        0 => problems.required(SPEC.field("maxReplicas"), "must be set and greater than 0"),
        _ => at_least(1, spec, &SPEC, "maxReplicas", problems),
    }
    if most < number(spec, "minReplicas") {
        let detail = "must be greater than or equal to `minReplicas`";
        problems.invalid(SPEC.field("maxReplicas"), most, detail);
    }
    let target = &spec["scaleTargetRef"];
    let path = SPEC.field("scaleTargetRef");
    for key in ["kind", "name"] {
        let value = text(target, key);
        obeys(names::path_segment, value, &path.field(key), problems);
    }
    check_target_version(target, &path, problems);
    let path = SPEC.field("metrics");
    for (i, metric) in list(spec, "metrics").iter().enumerate() {
        metrics::validate(metric, &path.index(i), problems);
    }
    scaled_to_zero(spec, problems);
    let path = SPEC.field("behavior");
    for direction in ["scaleUp", "scaleDown"] {
        let rules = &spec["behavior"][direction];
        if rules.is_object() {
            validate_scaling(rules, &path.field(direction), problems);
        }
    }
}

/// Refuses scaling to zero without an object or external metric: with no pods running, pod metrics
/// cannot show that some are needed.
fn scaled_to_zero(spec: &Value, problems: &mut Problems) {
    let tells = |metric: &Value| matches!(text(metric, "type"), "Object" | "External");
    let is_zero = spec["minReplicas"] == 0;
    if is_zero && !list(spec, "metrics").iter().any(tells) {
        let detail = "must specify at least one Object or External metric to support scaling to zero replicas";
        problems.forbidden(SPEC.field("metrics"), detail);
    }
}

/// Refuses a core-group target, except for the one core kind that can be scaled.
fn check_target_version(target: &Value, path: &Path<'_>, problems: &mut Problems) {
    let version = text(target, "apiVersion");
    let detail = match version.split('/').collect::<Vec<_>>().as_slice() {
        [group, _] if !group.is_empty() => return,
        [] | [_] | [_, _] if text(target, "kind") == "ReplicationController" => return,
        [] | [_] | [_, _] => "apiVersion must specify API group".to_owned(),
        _ => format!("unexpected GroupVersion string: {version}"),
    };
    problems.invalid(path.field("apiVersion"), version, detail);
}

fn validate_scaling(rules: &Value, path: &Path<'_>, problems: &mut Problems) {
    let key = "stabilizationWindowSeconds";
    if number(rules, key) < 0 {
        let detail = "must be greater than or equal to zero";
        problems.invalid(path.field(key), number(rules, key), detail);
    }
    at_most(MAX_STABILIZATION_SECONDS, rules, path, key, problems);
    one_of(
        &["Disabled", "Max", "Min"],
        rules,
        path,
        "selectPolicy",
        problems,
    );
    let tolerance = path.field("tolerance");
    let path = path.field("policies");
    if list(rules, "policies").is_empty() && text(rules, "selectPolicy") != "Disabled" {
        problems.required(path, "must specify at least one Policy");
    }
    for (i, policy) in list(rules, "policies").iter().enumerate() {
        let path = path.index(i);
        one_of(&["Percent", "Pods"], policy, &path, "type", problems);
        above_zero(policy, &path, "value", problems);
        above_zero(policy, &path, "periodSeconds", problems);
        at_most(MAX_PERIOD_SECONDS, policy, &path, "periodSeconds", problems);
    }
    if is_set(rules, "tolerance") {
        check_amount(&rules["tolerance"], &tolerance, problems);
    }
}

fn above_zero(parent: &Value, path: &Path<'_>, key: &str, problems: &mut Problems) {
    let value = number(parent, key);
    if value <= 0 {
        problems.invalid(path.field(key), value, "must be greater than zero");
    }
}

fn at_most(most: i64, parent: &Value, path: &Path<'_>, key: &str, problems: &mut Problems) {
    let value = number(parent, key);
    if value > most {
        let detail = format!("must be less than or equal to {most}");
        problems.invalid(path.field(key), value, detail);
    }
}
