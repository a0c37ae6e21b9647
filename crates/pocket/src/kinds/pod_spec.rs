//! The pod spec and the pod template: defaults and rules shared by pods and all workload kinds.
//!
//! Enumerations and plainly required fields are judged from the schema by the kind-independent
//! walkers; here are the rules a schema cannot say.

mod containers;
mod defaults;
mod env;
mod mounts;
mod placement;
mod ports;
mod probes;
mod volumes;

use serde_json::Value;

pub(super) use defaults::default_volume_source;
pub use defaults::{default_pod_spec, default_pod_template};

use super::{
    fields::{is_set, list, number, text},
    metadata::validate_template_metadata,
    names::{self, Complaints},
    path::Path,
};
use crate::status::Problems;

/// Rules on a pod template of a workload; `path` is where it is, such as `spec.template`.
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

/// Rules on a pod spec; `path` is where it is, such as `spec`.
pub fn validate_pod_spec(spec: &Value, path: &str, problems: &mut Problems) {
    let path = &Path::At(path);
    volumes::check(spec, path, problems);
    containers::check(spec, path, problems);
    placement::check(spec, path, problems);
    check_times(spec, path, problems);
    if is_set(spec, "os") {
        let name = text(&spec["os"], "name");
        if name.is_empty() {
            // The schema says that it is missing.
        } else if !matches!(name, "linux" | "windows") {
            problems.not_supported(path.field("os"), name, &["linux", "windows"]);
        }
    }
    if spec["hostNetwork"] == true {
        let sysctls = path.field("securityContext");
        let sysctls = sysctls.field("sysctls");
        for (index, sysctl) in list(&spec["securityContext"], "sysctls").iter().enumerate() {
            let name = text(sysctl, "name");
            if name.starts_with("net.") {
                let place = sysctls.index(index);
                let detail = "may not be specified when 'hostNetwork' is true";
                problems.invalid(place.field("name"), name, detail);
            }
        }
    }
    for (field, rule) in [
        (
            "serviceAccountName",
            names::subdomain as fn(&str) -> Complaints,
        ),
        ("nodeName", names::subdomain),
        ("priorityClassName", names::subdomain),
        ("runtimeClassName", names::subdomain),
        ("hostname", names::label),
        ("subdomain", names::label),
    ] {
        check_text(spec, field, rule, path, problems);
    }
    let nameservers = list(&spec["dnsConfig"], "nameservers");
    if nameservers.len() > 3 {
        let dns = path.field("dnsConfig");
        problems.invalid(
            dns.field("nameservers"),
            nameservers,
            "must not have more than 3 nameservers",
        );
    }
    if text(spec, "dnsPolicy") == "None" && nameservers.is_empty() {
        let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
        problems.required(path.field("dnsConfig"), detail);
    }
}

/// Applies a name rule to a field that may be absent.
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

fn check_times(spec: &Value, path: &Path<'_>, problems: &mut Problems) {
    check_not_negative(spec, "terminationGracePeriodSeconds", path, problems);
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
