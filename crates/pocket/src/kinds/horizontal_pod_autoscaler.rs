//! HorizontalPodAutoscaler (autoscaling/v2). It is stored; no controller here acts on it.

mod metrics;

use serde_json::{Value, json};

use super::{
    Rules,
    field_rules::{at_least, non_negative, obeys, one_of},
    fields::{fill, filled, is_set, list, number, part, set, text},
    names,
    path::Path,
};
use crate::status::Problems;

const SPEC: Path<'_> = Path::At("spec");
const LONGEST_PERIOD: i64 = 1800;
const LONGEST_WINDOW: i64 = 3600;

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
    if most < 1 {
        problems.invalid(SPEC.field("maxReplicas"), most, "must be greater than 0");
    }
    if most < number(spec, "minReplicas") {
        let detail = "must be greater than or equal to `minReplicas`";
        problems.invalid(SPEC.field("maxReplicas"), most, detail);
    }
    let path = SPEC.field("scaleTargetRef");
    for key in ["kind", "name"] {
        let value = text(&spec["scaleTargetRef"], key);
        obeys(names::path_segment, value, &path.field(key), problems);
    }
    let path = SPEC.field("metrics");
    for (i, metric) in list(spec, "metrics").iter().enumerate() {
        metrics::validate(metric, &path.index(i), problems);
    }
    let path = SPEC.field("behavior");
    for direction in ["scaleUp", "scaleDown"] {
        let rules = &spec["behavior"][direction];
        if rules.is_object() {
            validate_scaling(rules, &path.field(direction), problems);
        }
    }
}

fn validate_scaling(rules: &Value, path: &Path<'_>, problems: &mut Problems) {
    let key = "stabilizationWindowSeconds";
    non_negative(rules, path, &[key], problems);
    at_most(LONGEST_WINDOW, rules, path, key, problems);
    one_of(
        &["Disabled", "Max", "Min"],
        rules,
        path,
        "selectPolicy",
        problems,
    );
    let path = path.field("policies");
    if list(rules, "policies").is_empty() && text(rules, "selectPolicy") != "Disabled" {
        problems.required(path, "must specify at least one Policy");
    }
    for (i, policy) in list(rules, "policies").iter().enumerate() {
        let path = path.index(i);
        one_of(&["Percent", "Pods"], policy, &path, "type", problems);
        above_zero(policy, &path, "value", problems);
        above_zero(policy, &path, "periodSeconds", problems);
        at_most(LONGEST_PERIOD, policy, &path, "periodSeconds", problems);
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
