//! Deployment (apps/v1).

use serde_json::{Value, json};

use super::{
    Rules, Traits,
    field_rules::{immutable, non_negative},
    fields::{fill, filled, is_set, number, set},
    int_or_percent::{self, IntOrPercent},
    path::Path,
    pod::drop_groups,
    pod_controller::{validate_collisions, validate_counts, validate_selector_and_template},
    pod_spec::default_pod_template,
    warnings::{owner_warnings, template_warnings},
};
use crate::status::Problems;

const ROLLING: Path<'_> = Path::At("spec.strategy.rollingUpdate");

pub(super) const RULES: Rules = Rules {
    default,
    prepare_create: |object, _| {
        set(object, "status", json!({}));
        drop_from_template(object);
    },
    prepare_update: |object, _| drop_from_template(object),
    validate,
    validate_update: |new, old, problems| {
        immutable(
            &new["spec"],
            &old["spec"],
            &Path::At("spec"),
            "selector",
            problems,
        );
    },
    validate_status,
    warnings: |object| template_warnings(&object["spec"]["template"], "spec.template"),
    first_warnings: owner_warnings,
    traits: Traits {
        generation: true,
        annotations_count: true,
        status_keeps: &["labels"],
        ..Traits::USUAL
    },
    ..Rules::SHAPE_ONLY
};

/// Drops from the template the fields that pods do not keep.
fn drop_from_template(object: &mut Value) {
    if let Some(template) = object.pointer_mut("/spec/template") {
        drop_groups(template);
    }
}

fn default(object: &mut Value) {
    let Some(spec) = filled(object, "spec") else {
        return;
    };
    fill(spec, "replicas", 1);
    fill(spec, "revisionHistoryLimit", 10);
    fill(spec, "progressDeadlineSeconds", 600);
    if let Some(strategy) = filled(spec, "strategy") {
        fill(strategy, "type", "RollingUpdate");
        if strategy["type"] == "RollingUpdate"
            && let Some(rolling) = filled(strategy, "rollingUpdate")
        {
            // An empty text is kept empty, and does not get the default.
            for name in ["maxUnavailable", "maxSurge"] {
                if let Some(counts) = rolling.as_object_mut()
                    && counts.get(name).is_none_or(Value::is_null)
                {
                    counts.insert(name.into(), "25%".into());
                }
            }
        }
    }
    if let Some(template) = filled(spec, "template") {
        default_pod_template(template);
    }
}

fn validate(object: &Value, problems: &mut Problems) {
    let spec = &object["spec"];
    let counts = [
        "replicas",
        "minReadySeconds",
        "revisionHistoryLimit",
        "progressDeadlineSeconds",
    ];
    non_negative(spec, &Path::At("spec"), &counts, problems);
    validate_selector_and_template(spec, "Deployment", problems);
    validate_strategy(&spec["strategy"], problems);
    // The largest number means no deadline.
    let unbounded = i64::from(i32::MAX);
    if let Some(deadline) = spec["progressDeadlineSeconds"].as_i64()
        && deadline != unbounded
        && deadline <= number(spec, "minReadySeconds")
    {
        let detail = "must be greater than minReadySeconds";
        problems.invalid("spec.progressDeadlineSeconds", deadline, detail);
    }
}

fn validate_strategy(strategy: &Value, problems: &mut Problems) {
    if strategy["type"] == "Recreate" {
        if is_set(strategy, "rollingUpdate") {
            let detail = "may not be specified when strategy `type` is 'Recreate'";
            problems.forbidden(ROLLING, detail);
        }
        return;
    }
    if strategy["type"] != "RollingUpdate" {
        let supported = ["Recreate", "RollingUpdate"];
        problems.not_supported("spec.strategy", held(strategy), &supported);
        return;
    }
    let unavailable = &strategy["rollingUpdate"]["maxUnavailable"];
    let surge = &strategy["rollingUpdate"]["maxSurge"];
    let unavailable_path = ROLLING.field("maxUnavailable");
    int_or_percent::validate(unavailable, &unavailable_path, problems);
    int_or_percent::validate(surge, &ROLLING.field("maxSurge"), problems);
    let zero = |v: &Value| IntOrPercent::read(v).is_some_and(IntOrPercent::is_zero);
    if zero(unavailable) && zero(surge) {
        let detail = "may not be 0 when `maxSurge` is 0";
        problems.invalid(unavailable_path, unavailable.clone(), detail);
    }
    int_or_percent::validate_at_most_all(unavailable, &unavailable_path, problems);
}

/// A strategy in kube-apiserver's internal form, which it shows where the type is unknown.
fn held(strategy: &Value) -> Value {
    let rolling = &strategy["rollingUpdate"];
    let count = |name: &str| match &rolling[name] {
        Value::Null => Value::from(0),
        count => count.clone(),
    };
    let rolling = rolling
        .is_object()
        .then(|| json!({"MaxUnavailable": count("maxUnavailable"), "MaxSurge": count("maxSurge")}));
    json!({"Type": strategy["type"], "RollingUpdate": rolling})
}

fn validate_status(new: &Value, old: &Value, problems: &mut Problems) {
    let parts = ["updatedReplicas", "readyReplicas", "availableReplicas"];
    let others = [
        "unavailableReplicas",
        "terminatingReplicas",
        "observedGeneration",
    ];
    validate_counts(&new["status"], &parts, &others, problems);
    validate_collisions(new, old, problems);
}
