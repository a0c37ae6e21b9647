//! The selector that the server generates for a Job, so that no two jobs share a pod.

use serde_json::Value;

use super::super::{
    fields::{filled, flag, is_set, set, text},
    label_selector,
    path::Path,
};
use crate::status::Problems;

const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";
const JOB_NAME: &str = "batch.kubernetes.io/job-name";
const LEGACY_CONTROLLER_UID: &str = "controller-uid";
const LEGACY_JOB_NAME: &str = "job-name";

/// Whether the template has the labels that [`generate`] gives it.
pub(super) fn is_generated(object: &Value) -> bool {
    is_set(
        &object["spec"]["template"]["metadata"]["labels"],
        CONTROLLER_UID,
    )
}

/// Labels the template with the job's name and uid, and selects by uid. Labels that the client set
/// stay: validation refuses them if they differ.
pub(super) fn generate(object: &mut Value) {
    let name = text(&object["metadata"], "name").to_owned();
    let uid = text(&object["metadata"], "uid").to_owned();
    let Some(spec) = filled(object, "spec") else {
        return;
    };
    if let Some(template) = filled(spec, "template")
        && let Some(metadata) = filled(template, "metadata")
        && let Some(labels) = filled(metadata, "labels")
    {
        for (key, value) in [
            (CONTROLLER_UID, &uid),
            (JOB_NAME, &name),
            (LEGACY_CONTROLLER_UID, &uid),
            (LEGACY_JOB_NAME, &name),
        ] {
            set_unless_set(labels, key, value);
        }
    }
    if let Some(selector) = filled(spec, "selector")
        && let Some(labels) = filled(selector, "matchLabels")
    {
        set_unless_set(labels, CONTROLLER_UID, &uid);
    }
}

fn set_unless_set(labels: &mut Value, key: &str, value: &str) {
    if !is_set(labels, key) {
        set(labels, key, value);
    }
}

/// Copies the template's labels to a job without labels.
pub(super) fn label_like_template(object: &mut Value) {
    let labels = object["metadata"]["labels"].as_object();
    if labels.is_some_and(|labels| !labels.is_empty()) {
        return;
    }
    let template = &object["spec"]["template"]["metadata"]["labels"];
    if template
        .as_object()
        .is_some_and(|labels| !labels.is_empty())
    {
        let copy = template.clone();
        if let Some(metadata) = filled(object, "metadata") {
            set(metadata, "labels", copy);
        }
    }
}

/// Refuses labels and selectors that are not the ones [`generate`] makes.
pub(super) fn validate_generated(object: &Value, problems: &mut Problems) {
    let spec = &object["spec"];
    if flag(spec, "manualSelector") || !is_set(spec, "selector") {
        return;
    }
    let name = text(&object["metadata"], "name");
    let uid = text(&object["metadata"], "uid");
    let labels = &spec["template"]["metadata"]["labels"];
    let path = Path::At("spec.template.metadata.labels");
    for (key, wanted) in [
        (CONTROLLER_UID, uid),
        (JOB_NAME, name),
        (LEGACY_CONTROLLER_UID, uid),
        (LEGACY_JOB_NAME, name),
    ] {
        let detail = || format!("must be '{wanted}'");
        if !is_set(labels, key) {
            problems.required(path.key(key), detail());
        } else if labels[key] != wanted {
            problems.invalid(path.key(key), labels.clone(), detail());
        }
    }
    let expected = serde_json::json!({
        CONTROLLER_UID: uid, JOB_NAME: name, LEGACY_CONTROLLER_UID: uid, LEGACY_JOB_NAME: name,
    });
    if !label_selector::matches(&spec["selector"], &expected) {
        let detail = "`selector` not auto-generated";
        problems.invalid("spec.selector", spec["selector"].clone(), detail);
    }
}
