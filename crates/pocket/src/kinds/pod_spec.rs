//! The pod spec and the pod template: defaults and validation shared by pods and all workload
//! kinds.
//!
//! Enumerations and plainly required fields are checked from the schema by the kind-independent
//! walkers, except for those with their own message or position; here are the rules that a schema
//! cannot express.

mod claims;
mod containers;
mod defaults;
mod env;
mod images;
mod mounts;
mod network;
mod placement;
mod ports;
mod probes;
mod references;
mod restarts;
mod security;
mod system;
mod totals;
mod volumes;

use serde_json::Value;

pub(super) use containers::check_image_name as validate_image_name;
pub(super) use defaults::default_volume_source;
pub use defaults::{default_pod_spec, default_pod_template};
pub(super) use placement::{
    EFFECTS, PREFERRED, REQUIRED, check_tolerations as validate_tolerations,
};
pub(super) use totals::default_totals;

use super::{
    field_rules::{obeys, one_of},
    fields::{flag, is_set, list, number, text},
    metadata::validate_template_metadata,
    names::{self, Complaints},
    path::Path,
    resources::{check_pod_requirements, check_requirements},
};
use crate::status::Problems;

/// Validates a pod template of a workload; `path` is its field path, such as `spec.template`.
pub fn validate_pod_template(template: &Value, path: &str, problems: &mut Problems) {
    // The API leaves `metadata` out of these two paths.
    validate_template_metadata(&template["metadata"], path, problems);
    let spec = &template["spec"];
    validate_pod_spec(spec, &format!("{path}.spec"), problems);
    if !list(spec, "ephemeralContainers").is_empty() {
        let path = format!("{path}.spec.ephemeralContainers");
        problems.forbidden(path, "ephemeral containers not allowed in pod template");
    }
}

/// Validates the spec of a template; `path` is its field path, such as `spec.template.spec`.
pub fn validate_pod_spec(spec: &Value, path: &str, problems: &mut Problems) {
    validate(spec, None, &Path::At(path), problems);
}

/// Validates the spec of the pod that has this name.
pub(super) fn validate_spec_of(pod: &str, spec: &Value, problems: &mut Problems) {
    validate(spec, Some(pod), &Path::At("spec"), problems);
}

fn validate(spec: &Value, pod: Option<&str>, path: &Path<'_>, problems: &mut Problems) {
    let volumes = volumes::check(spec, pod, path, problems);
    claims::check(spec, path, problems);
    containers::check(spec, &volumes, path, problems);
    check_pod_resources(spec, path, problems);
    let restarts = ["Always", "OnFailure", "Never"];
    one_of(&restarts, spec, path, "restartPolicy", problems);
    network::check_dns_policy(spec, path, problems);
    placement::check_node_selector(spec, path, problems);
    security::check_pod(spec, path, problems);
    placement::check_affinity(spec, path, problems);
    network::check_dns(spec, path, problems);
    placement::check_spreading(spec, path, problems);
    check_names(spec, &["serviceAccountName", "nodeName"], path, problems);
    check_deadline(spec, path, problems);
    check_names(spec, &["hostname", "subdomain"], path, problems);
    check_hostname_override(spec, path, problems);
    placement::check_tolerations(spec, path, problems);
    network::check_host_aliases(spec, path, problems);
    check_names(spec, &["priorityClassName"], path, problems);
    if let Some(class) = spec["runtimeClassName"].as_str() {
        obeys(
            names::subdomain,
            class,
            &path.field("runtimeClassName"),
            problems,
        );
    }
    check_preemption(spec, path, problems);
    if is_set(spec, "overhead") {
        // The overhead is validated like limits, and reported so.
        let limits = serde_json::json!({"limits": spec["overhead"]});
        check_requirements(&limits, &path.field("overhead"), problems);
    }
    system::check(spec, path, problems);
}

/// Validates a preemption policy that is set.
fn check_preemption(spec: &Value, path: &Path<'_>, problems: &mut Problems) {
    const FIELD: &str = "preemptionPolicy";
    if spec[FIELD] == "" {
        problems.required(path.field(FIELD), "");
    }
    let policies = ["PreemptLowerPriority", "Never"];
    one_of(&policies, spec, path, FIELD, problems);
}

fn check_pod_resources(spec: &Value, path: &Path<'_>, problems: &mut Problems) {
    let (resources, path) = (&spec["resources"], path.field("resources"));
    if resources.is_null() {
        return;
    }
    if text(&spec["os"], "name") == "windows" {
        problems.forbidden(path, "may not be set for a windows pod");
        return;
    }
    // An empty list counts as set.
    if is_set(resources, "claims") {
        let detail = "claims may not be set for Resources at pod-level";
        problems.forbidden(path.field("claims"), detail);
    }
    check_pod_requirements(resources, &path, problems);
    totals::check(spec, &path, problems);
    claims::check_uses(resources, &claims::names(spec), &path, problems);
}

/// Validates a host name override: the kernel holds 64 bytes of it.
fn check_hostname_override(spec: &Value, path: &Path<'_>, problems: &mut Problems) {
    let Some(name) = spec["hostnameOverride"].as_str() else {
        return;
    };
    let path = path.field("hostnameOverride");
    for field in ["setHostnameAsFQDN", "hostNetwork"] {
        if flag(spec, field) {
            let detail = format!("may not be specified when {field} is true");
            problems.forbidden(path, detail);
        }
    }
    if name.len() > 64 {
        problems.too_long(path, 64);
    }
    for complaint in names::subdomain(name) {
        problems.invalid(path, name, complaint);
    }
}

/// Validates optional fields that are names.
fn check_names(spec: &Value, fields: &[&str], path: &Path<'_>, problems: &mut Problems) {
    for field in fields {
        let rule = match *field {
            "hostname" | "subdomain" => names::label,
            _ => names::subdomain,
        };
        check_text(spec, field, rule, path, problems);
    }
}

/// Applies a name rule to an optional field.
fn check_text(
    holder: &Value,
    field: &str,
    rule: fn(&str) -> Complaints,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let value = text(holder, field);
    if value.is_empty() {
        return;
    }
    for complaint in rule(value) {
        problems.invalid(path.field(field), value, complaint);
    }
}

fn check_deadline(spec: &Value, path: &Path<'_>, problems: &mut Problems) {
    let deadline = number(spec, "activeDeadlineSeconds");
    let most = i64::from(i32::MAX);
    if is_set(spec, "activeDeadlineSeconds") && !(1..=most).contains(&deadline) {
        let detail = format!("must be between 1 and {most}, inclusive");
        problems.invalid(path.field("activeDeadlineSeconds"), deadline, detail);
    }
}

fn check_not_negative(holder: &Value, field: &str, path: &Path<'_>, problems: &mut Problems) {
    let value = number(holder, field);
    if value < 0 {
        let detail = "must be greater than or equal to 0";
        problems.invalid(path.field(field), value, detail);
    }
}

#[cfg(test)]
mod tests;
