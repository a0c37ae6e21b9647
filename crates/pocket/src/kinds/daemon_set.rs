//! DaemonSet (apps/v1).

use serde_json::{Value, json};

use super::{
    Rules, Traits, WriteContext,
    field_rules::{immutable, non_negative},
    fields::{fill, filled, is_set, set},
    int_or_percent,
    path::Path,
    pod_controller::{validate_collisions, validate_selector_and_template},
    pod_spec::default_pod_template,
    warnings::template_warnings,
};
use crate::status::Problems;

/// Counts changes of the template. Its field is gone from the API; the annotation stayed, and old
/// clients still read it.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

const ROLLING: Path<'_> = Path::At("spec.updateStrategy.rollingUpdate");

pub(super) const RULES: Rules = Rules {
    default,
    prepare_create,
    prepare_update,
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
    fill(spec, "revisionHistoryLimit", 10);
    if let Some(strategy) = filled(spec, "updateStrategy") {
        fill(strategy, "type", "RollingUpdate");
        if strategy["type"] == "RollingUpdate"
            && let Some(rolling) = filled(strategy, "rollingUpdate")
        {
            fill(rolling, "maxUnavailable", 1);
            fill(rolling, "maxSurge", 0);
        }
    }
    if let Some(template) = filled(spec, "template") {
        default_pod_template(template);
    }
}

fn prepare_create(object: &mut Value, _: &WriteContext) {
    set_template_generation(object, 1);
    set(
        object,
        "status",
        json!({
            "currentNumberScheduled": 0,
            "numberMisscheduled": 0,
            "desiredNumberScheduled": 0,
            "numberReady": 0,
        }),
    );
}

fn prepare_update(new: &mut Value, old: &Value) {
    let before = old["metadata"]["annotations"][TEMPLATE_GENERATION]
        .as_str()
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);
    let changed = new["spec"]["template"] != old["spec"]["template"];
    set_template_generation(new, before + i64::from(changed));
}

fn set_template_generation(object: &mut Value, generation: i64) {
    if let Some(metadata) = filled(object, "metadata")
        && let Some(annotations) = filled(metadata, "annotations")
    {
        set(annotations, TEMPLATE_GENERATION, generation.to_string());
    }
}

fn validate(object: &Value, problems: &mut Problems) {
    let spec = &object["spec"];
    non_negative(
        spec,
        &Path::At("spec"),
        &["minReadySeconds", "revisionHistoryLimit"],
        problems,
    );
    validate_selector_and_template(spec, "DaemonSet", problems);
    let strategy = &spec["updateStrategy"];
    if strategy["type"] == "RollingUpdate" && is_set(strategy, "rollingUpdate") {
        validate_rolling_update(&strategy["rollingUpdate"], problems);
    }
}

/// Exactly one of `maxUnavailable` and `maxSurge` must be positive: on each node either the old pod
/// stops first or the new one starts first.
fn validate_rolling_update(rolling: &Value, problems: &mut Problems) {
    let unavailable = &rolling["maxUnavailable"];
    let surge = &rolling["maxSurge"];
    let unavailable_path = ROLLING.field("maxUnavailable");
    let surge_path = ROLLING.field("maxSurge");
    int_or_percent::validate(unavailable, &unavailable_path, problems);
    int_or_percent::validate(surge, &surge_path, problems);
    match (
        int_or_percent::is_positive(unavailable),
        int_or_percent::is_positive(surge),
    ) {
        (true, true) => {
            let detail = "may not be set when maxUnavailable is non-zero";
            problems.invalid(surge_path, surge.clone(), detail);
        }
        (false, false) => {
            problems.required(unavailable_path, "cannot be 0 when maxSurge is 0");
        }
        _ => {}
    }
    int_or_percent::validate_at_most_all(unavailable, &unavailable_path, problems);
    int_or_percent::validate_at_most_all(surge, &surge_path, problems);
}

fn validate_status(new: &Value, old: &Value, problems: &mut Problems) {
    let counts = [
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
    ];
    non_negative(&new["status"], &Path::At("status"), &counts, problems);
    validate_collisions(new, old, problems);
}
