//! ReplicaSet (apps/v1).

use serde_json::{Value, json};

use super::{
    Rules, Traits,
    field_rules::{immutable, non_negative},
    fields::{fill, filled, set},
    path::Path,
    pod_controller::{validate_counts, validate_selector_and_template},
    pod_spec::default_pod_template,
    warnings::{owner_warnings, template_warnings},
};
use crate::status::Problems;

pub(super) const RULES: Rules = Rules {
    default,
    prepare_create: |object, _| set(object, "status", json!({"replicas": 0})),
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
    validate_status: |new, _, problems| {
        let parts = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
        let others = ["terminatingReplicas", "observedGeneration"];
        validate_counts(&new["status"], &parts, &others, problems);
    },
    warnings: |object| template_warnings(&object["spec"]["template"], "spec.template"),
    first_warnings: owner_warnings,
    traits: Traits {
        generation: true,
        ..Traits::USUAL
    },
    ..Rules::SHAPE_ONLY
};

fn default(object: &mut Value) {
    let Some(spec) = filled(object, "spec") else {
        return;
    };
    fill(spec, "replicas", 1);
    if let Some(template) = filled(spec, "template") {
        default_pod_template(template);
    }
}

fn validate(object: &Value, problems: &mut Problems) {
    let spec = &object["spec"];
    non_negative(
        spec,
        &Path::At("spec"),
        &["replicas", "minReadySeconds"],
        problems,
    );
    validate_selector_and_template(spec, "ReplicaSet", problems);
}
