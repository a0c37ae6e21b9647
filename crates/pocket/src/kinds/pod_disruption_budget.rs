//! PodDisruptionBudget (policy/v1).

use serde_json::{Value, json};

use super::{
    Rules, Traits,
    field_rules::non_negative,
    fields::{filled, is_set, set},
    int_or_percent, label_selector,
    path::Path,
};
use crate::status::Problems;

const SPEC: Path<'_> = Path::At("spec");

pub(super) const RULES: Rules = Rules {
    default: |object| {
        filled(object, "spec");
    },
    prepare_create: |object, _| {
        let status = json!({
            "disruptionsAllowed": 0,
            "currentHealthy": 0,
            "desiredHealthy": 0,
            "expectedPods": 0,
        });
        set(object, "status", status);
    },
    validate,
    validate_status: |new, _, problems| {
        let counts = [
            "disruptionsAllowed",
            "currentHealthy",
            "desiredHealthy",
            "expectedPods",
            "observedGeneration",
        ];
        non_negative(&new["status"], &Path::At("status"), &counts, problems);
    },
    traits: Traits {
        generation: true,
        unconditional_update: false,
        ..Traits::USUAL
    },
    ..Rules::SHAPE_ONLY
};

fn validate(object: &Value, problems: &mut Problems) {
    let spec = &object["spec"];
    if is_set(spec, "minAvailable") && is_set(spec, "maxUnavailable") {
        let detail = "minAvailable and maxUnavailable cannot be both set";
        problems.invalid(SPEC, spec.clone(), detail);
    }
    for key in ["minAvailable", "maxUnavailable"] {
        let path = SPEC.field(key);
        int_or_percent::validate(&spec[key], &path, problems);
        int_or_percent::validate_at_most_all(&spec[key], &path, problems);
    }
    label_selector::validate(&spec["selector"], &SPEC.field("selector"), problems);
}
