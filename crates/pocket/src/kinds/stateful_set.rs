//! StatefulSet (apps/v1).

use serde_json::{Value, json};

use super::{
    NameRule, Rules, Traits,
    claim::default_claim_spec,
    field_rules::{non_negative, one_of},
    fields::{each_mut, fill, filled, list, set, text},
    int_or_percent::{self, IntOrPercent},
    path::Path,
    pod_controller::{validate_collisions, validate_counts, validate_selector_and_template},
    pod_spec::default_pod_template,
    warnings::template_warnings,
};
use crate::status::Problems;

const MUTABLE: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

const IMMUTABLE: &str = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";

const ROLLING: Path<'_> = Path::At("spec.updateStrategy.rollingUpdate");

pub(super) const RULES: Rules = Rules {
    default,
    prepare_create: |object, _| {
        set(
            object,
            "status",
            json!({"replicas": 0, "availableReplicas": 0}),
        );
    },
    prepare_update: |new, old| carry_claim_templates(new, old),
    validate,
    validate_update,
    validate_status: |new, old, problems| {
        let parts = [
            "readyReplicas",
            "currentReplicas",
            "updatedReplicas",
            "availableReplicas",
        ];
        validate_counts(&new["status"], &parts, &["observedGeneration"], problems);
        validate_collisions(new, old, problems);
    },
    warnings: |object| template_warnings(&object["spec"]["template"], "spec.template"),
    traits: Traits {
        generation: true,
        // Pods are named after their set and use the name as a host name.
        name: NameRule::Label,
        ..Traits::USUAL
    },
    ..Rules::SHAPE_ONLY
};

fn default(object: &mut Value) {
    let Some(spec) = filled(object, "spec") else {
        return;
    };
    fill(spec, "replicas", 1);
    fill(spec, "revisionHistoryLimit", 10);
    fill(spec, "podManagementPolicy", "OrderedReady");
    if let Some(strategy) = filled(spec, "updateStrategy") {
        fill(strategy, "type", "RollingUpdate");
        if strategy["type"] == "RollingUpdate"
            && let Some(rolling) = filled(strategy, "rollingUpdate")
        {
            fill(rolling, "partition", 0);
        }
    }
    if let Some(retention) = filled(spec, "persistentVolumeClaimRetentionPolicy") {
        fill(retention, "whenDeleted", "Retain");
        fill(retention, "whenScaled", "Retain");
    }
    for claim in each_mut(spec, "volumeClaimTemplates") {
        default_claim_template(claim);
    }
    if let Some(template) = filled(spec, "template") {
        default_pod_template(template);
    }
}

fn default_claim_template(claim: &mut Value) {
    fill(claim, "apiVersion", "v1");
    fill(claim, "kind", "PersistentVolumeClaim");
    if let Some(spec) = filled(claim, "spec") {
        default_claim_spec(spec);
    }
    if let Some(status) = filled(claim, "status") {
        fill(status, "phase", "Pending");
    }
}

/// Copies the status of claim templates, which has no meaning, from the old object: a client that
/// sends another one, or none, must not fail because the templates are immutable.
fn carry_claim_templates(new: &mut Value, old: &Value) {
    let Some(before) = old["spec"]["volumeClaimTemplates"].as_array() else {
        return;
    };
    let Some(spec) = new.get_mut("spec") else {
        return;
    };
    for (claim, before) in each_mut(spec, "volumeClaimTemplates").zip(before) {
        set(claim, "status", before["status"].clone());
    }
}

fn validate(object: &Value, problems: &mut Problems) {
    let spec = &object["spec"];
    let counts = ["replicas", "minReadySeconds", "revisionHistoryLimit"];
    non_negative(spec, &Path::At("spec"), &counts, problems);
    non_negative(
        &spec["ordinals"],
        &Path::At("spec.ordinals"),
        &["start"],
        problems,
    );
    validate_strategy(&spec["updateStrategy"], problems);
    let retention = Path::At("spec.persistentVolumeClaimRetentionPolicy");
    for when in ["whenDeleted", "whenScaled"] {
        let policy = &spec["persistentVolumeClaimRetentionPolicy"];
        one_of(&["Delete", "Retain"], policy, &retention, when, problems);
    }
    validate_selector_and_template(spec, "StatefulSet", problems);
    let path = Path::At("spec.volumeClaimTemplates");
    for (i, claim) in list(spec, "volumeClaimTemplates").iter().enumerate() {
        if text(&claim["metadata"], "name").is_empty() {
            problems.required(path.index(i).field("metadata").field("name"), "");
        }
    }
}

fn validate_strategy(strategy: &Value, problems: &mut Problems) {
    let rolling = &strategy["rollingUpdate"];
    if strategy["type"] == "OnDelete" {
        if !rolling.is_null() {
            let detail = "only allowed for updateStrategy 'RollingUpdate'";
            problems.invalid(ROLLING, rolling.clone(), detail);
        }
        return;
    }
    non_negative(rolling, &ROLLING, &["partition"], problems);
    let unavailable = &rolling["maxUnavailable"];
    if unavailable.is_null() {
        return;
    }
    let path = ROLLING.field("maxUnavailable");
    int_or_percent::validate(unavailable, &path, problems);
    if IntOrPercent::read(unavailable).is_some_and(IntOrPercent::is_zero) {
        problems.invalid(path, unavailable.clone(), "cannot be 0");
    }
    int_or_percent::validate_at_most_all(unavailable, &path, problems);
}

fn validate_update(new: &Value, old: &Value, problems: &mut Problems) {
    let (Some(new), Some(old)) = (new["spec"].as_object(), old["spec"].as_object()) else {
        return;
    };
    let changed = new
        .keys()
        .chain(old.keys())
        .filter(|key| !MUTABLE.contains(&key.as_str()))
        .any(|key| new.get(key).unwrap_or(&Value::Null) != old.get(key).unwrap_or(&Value::Null));
    if changed {
        problems.forbidden("spec", IMMUTABLE);
    }
}
