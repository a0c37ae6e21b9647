//! Warnings about pods and templates: fields that are stored but not enforced, and values that are
//! accepted but probably mistakes. One line each, as `Warning` headers.
//!
//! Nothing here refuses anything; the validation is in [`super::pod_spec`].

mod containers;
mod nodes;
mod ports;
mod volumes;

use std::{collections::HashSet, net::IpAddr};

use serde_json::Value;

use super::{
    fields::{is_set, list, number, text},
    names,
};

/// Annotations that are ignored, and the fields that replaced them.
const IGNORED_ANNOTATIONS: [(&str, &str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "v1.16+",
        "priorityClassName",
    ),
    ("security.alpha.kubernetes.io/sysctls", "v1.11+", "sysctls"),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        "v1.11+",
        "sysctls",
    ),
];
const SECCOMP: &str = "seccomp.security.alpha.kubernetes.io/pod";

/// Warnings about a new pod.
pub(super) fn pod_warnings(pod: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    warnings.extend(name_warning(pod, "the Pod's hostname"));
    about_spec(pod, "", &mut warnings);
    without_repeats(warnings)
}

/// Warnings about a pod template; `path` is its field path, such as `spec.template`.
pub(super) fn template_warnings(template: &Value, path: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    about_spec(template, &format!("{path}."), &mut warnings);
    let grace = "terminationGracePeriodSeconds";
    if number(&template["spec"], grace) < 0 {
        warnings.push(format!(
            "{path}.spec.{grace}: must be >= 0; negative values are invalid and will be treated as 1"
        ));
    }
    without_repeats(warnings)
}

/// Warnings about the name of a new object whose pods are named after it.
pub(super) fn owner_warnings(owner: &Value) -> Vec<String> {
    let warning = name_warning(owner, "Pod names and hostnames");
    warning.into_iter().collect()
}

fn name_warning(object: &Value, used_in: &str) -> Option<String> {
    let complaints = names::label(text(&object["metadata"], "name"));
    if complaints.is_empty() {
        return None;
    }
    let complaints: Vec<String> = complaints.iter().map(ToString::to_string).collect();
    Some(format!(
        "metadata.name: this is used in {used_in}, which can result in surprising behavior; \
         a DNS label is recommended: [{}]",
        complaints.join(" ")
    ))
}

/// Warnings about the metadata and the spec of `holder`; `at` is its field path.
fn about_spec(holder: &Value, at: &str, warnings: &mut Vec<String>) {
    let (spec, path) = (&holder["spec"], format!("{at}spec"));
    nodes::warn(spec, &path, warnings);
    let annotations = &holder["metadata"]["annotations"];
    for (name, since, instead) in IGNORED_ANNOTATIONS {
        if is_set(annotations, name) {
            warnings.push(deaf(at, name, since, instead));
        }
    }
    volumes::warn(spec, &path, warnings);
    about_aliases(spec, &path, warnings);
    about_pull_secrets(spec, &path, warnings);
    containers::warn_amounts(&spec["overhead"], &format!("{path}.overhead"), warnings);
    if is_set(annotations, SECCOMP) && !is_set(&spec["securityContext"], "seccompProfile") {
        warnings.push(deaf(at, SECCOMP, "v1.27+", "seccompProfile"));
    }
    containers::warn(spec, annotations, at, warnings);
    ports::warn(spec, &path, warnings);
    about_nameservers(spec, &path, warnings);
    about_enforcement(spec, &path, warnings);
}

fn deaf(at: &str, annotation: &str, since: &str, instead: &str) -> String {
    format!(
        "{at}metadata.annotations[{annotation}]: non-functional in {since}; use the \"{instead}\" field instead"
    )
}

fn about_enforcement(spec: &Value, path: &str, warnings: &mut Vec<String>) {
    let containers = || {
        ["initContainers", "containers"]
            .into_iter()
            .flat_map(|field| list(spec, field))
    };
    let is_filled = |value: &Value| value.as_object().is_some_and(|map| !map.is_empty());
    if containers().any(|container| is_filled(&container["resources"]["limits"])) {
        warnings.push(not_enforced(&format!("{path}: resource limits")));
    }
    let confined = containers().any(|container| is_filled(&container["securityContext"]));
    if confined || is_filled(&spec["securityContext"]) {
        warnings.push(not_enforced(&format!("{path}: security contexts")));
    }
}

fn about_pull_secrets(spec: &Value, path: &str, warnings: &mut Vec<String>) {
    let names = list(spec, "imagePullSecrets").iter();
    let names = names.map(|secret| text(secret, "name"));
    let mut seen = HashSet::new();
    for (index, name) in names.enumerate() {
        let place = format!("{path}.imagePullSecrets[{index}].name");
        if name.is_empty() {
            warnings.push(format!("{place}: invalid empty name \"\""));
        }
        if !seen.insert(name) {
            warnings.push(format!("{place}: duplicate name \"{name}\""));
        }
    }
}

fn about_aliases(spec: &Value, path: &str, warnings: &mut Vec<String>) {
    let addresses = list(spec, "hostAliases").iter();
    let addresses = addresses.map(|alias| text(alias, "ip"));
    let mut seen = HashSet::new();
    for (index, address) in addresses.enumerate() {
        let place = format!("{path}.hostAliases[{index}].ip");
        if !seen.insert(address) {
            warnings.push(format!("{place}: duplicate ip \"{address}\""));
        }
        warnings.extend(unusual(address, &place));
    }
}

fn about_nameservers(spec: &Value, path: &str, warnings: &mut Vec<String>) {
    let servers = list(&spec["dnsConfig"], "nameservers").iter();
    for (index, server) in servers.enumerate() {
        let place = format!("{path}.dnsConfig.nameservers[{index}]");
        warnings.extend(unusual(server.as_str().unwrap_or_default(), &place));
    }
}

/// The warning for an address that is not in canonical form.
fn unusual(address: &str, place: &str) -> Option<String> {
    let usual = match address.parse::<IpAddr>().ok()? {
        IpAddr::V6(six) => six.to_string(),
        IpAddr::V4(_) => return None,
    };
    (usual != address).then(|| {
        format!(
            "{place}: IPv6 address \"{address}\" should be in RFC 5952 canonical format (\"{usual}\")"
        )
    })
}

/// `<what> are stored but not enforced by this server`.
pub fn not_enforced(what: &str) -> String {
    format!("{what} are stored but not enforced by this server")
}

/// Drops repeated warnings.
fn without_repeats(mut warnings: Vec<String>) -> Vec<String> {
    let mut seen = HashSet::new();
    let first: Vec<bool> = warnings.iter().map(|text| seen.insert(text)).collect();
    let mut first = first.into_iter();
    warnings.retain(|_| first.next().unwrap_or_default());
    warnings
}

#[cfg(test)]
mod tests;
