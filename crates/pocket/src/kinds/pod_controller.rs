//! What Deployments, ReplicaSets, StatefulSets and DaemonSets have in common: a selector, a
//! template whose pods it selects, and a status that counts them.

use std::{borrow::Cow, collections::HashSet};

use serde_json::{Value, json};

use super::{
    field_rules::non_negative,
    fields::{is_set, list, number},
    label_selector,
    path::Path,
    pod_spec::validate_pod_template,
};
use crate::status::Problems;

/// Validates `spec.selector` and `spec.template` against each other; `owner` is the kind's name in
/// errors, as `Deployment`.
pub(super) fn validate_selector_and_template(spec: &Value, owner: &str, problems: &mut Problems) {
    let selector = &spec["selector"];
    let before = problems.len();
    label_selector::validate_label_selector(selector, "spec.selector", problems);
    let broken = problems.len() > before;
    if is_set(spec, "selector") && label_selector::is_empty(selector) {
        let detail = format!("empty selector is invalid for {}", owner.to_lowercase());
        problems.invalid("spec.selector", selector.clone(), detail);
    }
    let template = &spec["template"];
    if !broken {
        validate_selects_template(selector, template, problems);
    } else if owner != "DaemonSet" {
        // With an invalid selector the template is not checked against it.
        let detail = match owner {
            "StatefulSet" => "",
            _ => "invalid label selector",
        };
        problems.retain(|error| !error.path.starts_with("spec.template."));
        problems.invalid("spec.selector", selector.clone(), detail);
        return;
    }
    validate_pod_template(&with_claims(spec), "spec.template", problems);
    validate_runs_forever(&template["spec"], owner, problems);
}

/// The template with the volumes that the claims of a StatefulSet will be: its pods may mount them.
fn with_claims(spec: &Value) -> Cow<'_, Value> {
    let claims = list(spec, "volumeClaimTemplates");
    let names = claims
        .iter()
        .filter_map(|claim| claim["metadata"]["name"].as_str())
        .filter(|name| !name.is_empty());
    let template = &spec["template"];
    let mut seen: HashSet<&str> = list(&template["spec"], "volumes")
        .iter()
        .filter_map(|volume| volume["name"].as_str())
        .collect();
    let missing: Vec<Value> = names
        .filter(|name| seen.insert(name))
        .map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}}))
        .collect();
    let mut template = Cow::Borrowed(template);
    if missing.is_empty() {
        return template;
    }
    let pod = template.to_mut().get_mut("spec");
    if let Some(pod) = pod.and_then(Value::as_object_mut)
        && let Some(volumes) = pod
            .entry("volumes")
            .or_insert_with(|| json!([]))
            .as_array_mut()
    {
        volumes.extend(missing);
    }
    template
}

/// Checks that the selector selects the template's labels; an absent selector selects nothing.
pub(super) fn validate_selects_template(
    selector: &Value,
    template: &Value,
    problems: &mut Problems,
) {
    let labels = &template["metadata"]["labels"];
    if !label_selector::is_valid(selector) {
        problems.invalid("spec.selector", selector.clone(), "invalid label selector");
        return;
    }
    if !label_selector::matches(selector, labels) {
        problems.invalid(
            "spec.template.metadata.labels",
            labels.clone(),
            "`selector` does not match template `labels`",
        );
    }
}

fn validate_runs_forever(pod: &Value, owner: &str, problems: &mut Problems) {
    const PATH: Path<'_> = Path::At("spec.template.spec");
    let policy = &pod["restartPolicy"];
    if !policy.is_null() && policy != "Always" {
        problems.not_supported(PATH.field("restartPolicy"), policy.clone(), &["Always"]);
    }
    if is_set(pod, "activeDeadlineSeconds") {
        // The template of a Deployment is validated as that of its ReplicaSets.
        let owner = match owner {
            "Deployment" => "ReplicaSet",
            owner => owner,
        };
        let detail = format!("activeDeadlineSeconds in {owner} is not Supported");
        problems.forbidden(PATH.field("activeDeadlineSeconds"), detail);
    }
}

/// Validates counts in `status`: none negative, and those in `parts` at most `status.replicas`.
pub(super) fn validate_counts(
    status: &Value,
    parts: &[&str],
    others: &[&str],
    problems: &mut Problems,
) {
    const PATH: Path<'_> = Path::At("status");
    non_negative(status, &PATH, &["replicas"], problems);
    non_negative(status, &PATH, parts, problems);
    non_negative(status, &PATH, others, problems);
    let all = number(status, "replicas");
    for part in parts {
        let count = number(status, part);
        if count > all {
            problems.invalid(
                PATH.field(part),
                count,
                "cannot be greater than status.replicas",
            );
        }
    }
    let available = number(status, "availableReplicas");
    if parts.contains(&"availableReplicas") && available > number(status, "readyReplicas") {
        let detail = "cannot be greater than readyReplicas";
        problems.invalid(PATH.field("availableReplicas"), available, detail);
    }
}

/// The collision count may not decrease: names already in use depend on it.
pub(super) fn validate_collisions(new: &Value, old: &Value, problems: &mut Problems) {
    let count = |object: &Value| object["status"]["collisionCount"].as_i64();
    non_negative(
        &new["status"],
        &Path::At("status"),
        &["collisionCount"],
        problems,
    );
    if let Some(before) = count(old)
        && count(new).is_none_or(|now| now < before)
    {
        let now = count(new).unwrap_or(0);
        problems.invalid("status.collisionCount", now, "cannot be decremented");
    }
}
