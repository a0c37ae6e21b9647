//! Immutable fields of a Job.

use serde_json::Value;

use super::super::{
    field_rules::{IMMUTABLE, immutable},
    fields::{flag, is_set, text},
    path::Path,
};
use crate::status::Problems;

const SPEC: Path<'_> = Path::At("spec");

/// Scheduling fields that a suspended job may still change: a queue decides on them before it
/// starts the pods.
const SCHEDULING: [&str; 3] = ["nodeSelector", "tolerations", "schedulingGates"];

pub(super) fn validate_update(new: &Value, old: &Value, problems: &mut Problems) {
    let (spec, before) = (&new["spec"], &old["spec"]);
    validate_completions(spec, before, problems);
    immutable(spec, before, &SPEC, "selector", problems);
    let open = flag(before, "suspend") && !is_set(&old["status"], "startTime");
    if !same_template(&spec["template"], &before["template"], open) {
        let (template, shown) = (SPEC.field("template"), spec["template"]["spec"].clone());
        problems.invalid(template.field("spec"), shown, IMMUTABLE);
    }
    for key in [
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
    ] {
        immutable(spec, before, &SPEC, key, problems);
    }
}

/// The completions of an indexed job may change together with its parallelism.
fn validate_completions(spec: &Value, before: &Value, problems: &mut Problems) {
    if spec["completions"] == before["completions"] {
        return;
    }
    let indexed = text(spec, "completionMode") == "Indexed";
    if !indexed || !is_set(spec, "completions") || !is_set(before, "completions") {
        immutable(spec, before, &SPEC, "completions", problems);
    } else if spec["completions"] != spec["parallelism"] {
        let detail = "can only be modified in tandem with spec.parallelism";
        problems.invalid(
            SPEC.field("completions"),
            spec["completions"].clone(),
            detail,
        );
    }
}

/// Equality of pod templates; with `open`, scheduling fields and labels may differ.
fn same_template(new: &Value, old: &Value, open: bool) -> bool {
    if new == old || !open {
        return new == old;
    }
    same_but(new, old, &["metadata", "spec"])
        && same_but(
            &new["metadata"],
            &old["metadata"],
            &["labels", "annotations"],
        )
        && same_but(
            &new["spec"],
            &old["spec"],
            &[&SCHEDULING[..], &["affinity"]].concat(),
        )
        && same_but(
            &new["spec"]["affinity"],
            &old["spec"]["affinity"],
            &["nodeAffinity"],
        )
}

fn same_but(new: &Value, old: &Value, free: &[&str]) -> bool {
    let keys = |value: &Value| -> Vec<String> {
        let map = value.as_object();
        map.into_iter()
            .flat_map(|map| map.keys().cloned())
            .collect()
    };
    let mut all = keys(new).into_iter().chain(keys(old));
    all.all(|key| free.contains(&key.as_str()) || new[&key] == old[&key])
}
