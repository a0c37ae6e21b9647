//! Job (batch/v1).

mod change;
mod failure_policy;
mod selector;

use serde_json::{Value, json};

use super::{
    Rules, Traits, WriteContext,
    field_rules::{non_negative, obeys},
    fields::{fill, filled, flag, is_set, number, set, text},
    label_selector, names,
    path::Path,
    pod_controller::validate_selects_template,
    pod_spec::{default_pod_template, validate_pod_template},
    warnings::{owner_warnings, template_warnings},
};
use crate::status::Problems;

const MAX_PARALLELISM: i64 = 100_000;
const MAX_MANAGER_LENGTH: usize = 63;

pub(super) const RULES: Rules = Rules {
    default,
    prepare_create,
    validate,
    validate_update: change::validate_update,
    validate_status: |new, _, problems| {
        let counts = ["active", "succeeded", "failed", "ready", "terminating"];
        non_negative(&new["status"], &Path::At("status"), &counts, problems);
    },
    warnings: |object| template_warnings(&object["spec"]["template"], "spec.template"),
    first_warnings: owner_warnings,
    traits: Traits {
        generation: true,
        orphan_by_default: true,
        ..Traits::USUAL
    },
    ..Rules::SHAPE_ONLY
};

fn default(object: &mut Value) {
    let Some(spec) = filled(object, "spec") else {
        return;
    };
    if !is_set(spec, "completions") && !is_set(spec, "parallelism") {
        set(spec, "completions", 1);
    }
    fill(spec, "parallelism", 1);
    let per_index = is_set(spec, "backoffLimitPerIndex");
    fill(spec, "backoffLimit", if per_index { i32::MAX } else { 6 });
    fill(spec, "completionMode", "NonIndexed");
    fill(spec, "suspend", false);
    fill(spec, "manualSelector", false);
    let replacement = if is_set(spec, "podFailurePolicy") {
        "Failed"
    } else {
        "TerminatingOrFailed"
    };
    fill(spec, "podReplacementPolicy", replacement);
    failure_policy::default(spec);
    if let Some(template) = filled(spec, "template") {
        default_pod_template(template);
    }
    // Before the selector is generated the template's labels are not complete: see
    // `prepare_create`.
    if flag(&object["spec"], "manualSelector") || selector::is_generated(object) {
        selector::label_like_template(object);
    }
}

/// The defaults of the job template inside a CronJob, which are fewer: the rest is filled when a
/// job is created from it.
pub(super) fn default_template(template: &mut Value) {
    filled(template, "metadata");
    if let Some(spec) = filled(template, "spec") {
        failure_policy::default(spec);
        if let Some(template) = filled(spec, "template") {
            default_pod_template(template);
        }
    }
}

fn prepare_create(object: &mut Value, _: &WriteContext) {
    set(object, "status", json!({}));
    if !flag(&object["spec"], "manualSelector") {
        selector::generate(object);
    }
    selector::label_like_template(object);
}

fn validate(object: &Value, problems: &mut Problems) {
    let spec = &object["spec"];
    let path = Path::At("spec");
    selector::validate_generated(object, problems);
    validate_spec(spec, &path, problems);
    if is_set(spec, "selector") {
        label_selector::validate(&spec["selector"], &path.field("selector"), problems);
    } else {
        problems.required(path.field("selector"), "");
    }
    validate_selects_template(&spec["selector"], &spec["template"], problems);
    validate_last_pod_name(object, problems);
}

/// Checks that the name with the highest index is valid: pods of an indexed job carry their index
/// in the host name.
fn validate_last_pod_name(object: &Value, problems: &mut Problems) {
    let spec = &object["spec"];
    let completions = number(spec, "completions");
    if text(spec, "completionMode") != "Indexed" || completions <= 0 {
        return;
    }
    let name = format!("{}-{}", text(&object["metadata"], "name"), completions - 1);
    for complaint in names::label(&name) {
        let detail =
            format!("will not able to create pod with invalid DNS name: {name}: {complaint}");
        problems.invalid("metadata.name", text(&object["metadata"], "name"), detail);
    }
}

/// Validates a job's spec, in a Job or in a CronJob's template.
pub(super) fn validate_spec(spec: &Value, path: &Path<'_>, problems: &mut Problems) {
    let counts = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    non_negative(spec, path, &counts, problems);
    validate_indexes(spec, path, problems);
    if let Some(manager) = spec["managedBy"].as_str() {
        validate_manager(manager, &path.field("managedBy"), problems);
    }
    failure_policy::validate(spec, path, problems);
    let template = path.field("template");
    validate_pod_template(&spec["template"], &template.to_string(), problems);
    validate_ends(&spec["template"]["spec"], &template.field("spec"), problems);
}

fn validate_indexes(spec: &Value, path: &Path<'_>, problems: &mut Problems) {
    if text(spec, "completionMode") == "Indexed" {
        if !is_set(spec, "completions") {
            problems.required(path.field("completions"), "when completion mode is Indexed");
        }
        let parallel = number(spec, "parallelism");
        if parallel > MAX_PARALLELISM {
            let detail = format!(
                "must be less than or equal to {MAX_PARALLELISM} when completion mode is Indexed"
            );
            problems.invalid(path.field("parallelism"), parallel, detail);
        }
        let failed = number(spec, "maxFailedIndexes");
        if is_set(spec, "completions") && failed > number(spec, "completions") {
            let detail = "must be less than or equal to completions";
            problems.invalid(path.field("maxFailedIndexes"), failed, detail);
        }
    } else {
        for key in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            if is_set(spec, key) {
                let detail = "requires indexed completion mode";
                problems.invalid(path.field(key), spec[key].clone(), detail);
            }
        }
        if is_set(spec, "successPolicy") {
            let detail = "requires indexed completion mode";
            problems.invalid(
                path.field("successPolicy"),
                spec["successPolicy"].clone(),
                detail,
            );
        }
    }
    if is_set(spec, "maxFailedIndexes") && !is_set(spec, "backoffLimitPerIndex") {
        let detail = "when maxFailedIndexes is specified";
        problems.required(path.field("backoffLimitPerIndex"), detail);
    }
}

fn validate_manager(manager: &str, path: &Path<'_>, problems: &mut Problems) {
    let Some((domain, rest)) = manager.split_once('/') else {
        let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        return problems.invalid(path, manager, detail);
    };
    obeys(names::subdomain, domain, path, problems);
    if rest.is_empty() {
        let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        problems.invalid(path, manager, detail);
    }
    if manager.len() > MAX_MANAGER_LENGTH {
        problems.too_long(path, MAX_MANAGER_LENGTH);
    }
}

/// Refuses `restartPolicy: Always`: a pod that is restarted for ever never completes.
fn validate_ends(pod: &Value, path: &Path<'_>, problems: &mut Problems) {
    let policy = text(pod, "restartPolicy");
    let path = path.field("restartPolicy");
    if policy.is_empty() || policy == "Always" {
        problems.required(path, "valid values: \"OnFailure\", \"Never\"");
    } else if policy != "OnFailure" && policy != "Never" {
        problems.not_supported(path, policy, &["OnFailure", "Never"]);
    }
}
