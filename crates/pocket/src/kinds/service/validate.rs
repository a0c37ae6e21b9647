//! Validation of a Service alone, in the order in which errors are reported.

use serde_json::Value;

use super::{
    HINTS, MODE, has_address, has_health_port, is_balanced, is_headless, is_reachable_from_outside,
    ports, related,
};
use crate::{
    kinds::{
        address,
        fields::{is_set, list, number, text},
        metadata::check_label_map,
        names,
        path::Path,
    },
    status::Problems,
};

const ONLY_BALANCED: &str = "may only be used when `type` is 'LoadBalancer'";
const RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";

pub(super) fn validate(service: &Value, problems: &mut Problems) {
    let spec = &service["spec"];
    check_hints(&service["metadata"]["annotations"], problems);
    if list(spec, "ports").is_empty() && has_address(spec) && !is_headless(spec) {
        problems.required("spec.ports", "");
    }
    check_type(spec, problems);
    ports::check_each(spec, problems);
    check_label_map(spec, "selector", "spec.selector", problems);
    check_affinity(spec, problems);
    related::check(spec, problems);
    check_externals(spec, problems);
    let types = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    check_listed(spec, "type", &types, problems);
    ports::check_together(spec, problems);
    check_source_ranges(service, problems);
    if !is_balanced(spec) && is_set(spec, "allocateLoadBalancerNodePorts") {
        problems.forbidden("spec.allocateLoadBalancerNodePorts", ONLY_BALANCED);
    }
    check_class(spec, problems);
    check_policies(spec, problems);
}

fn check_listed(spec: &Value, field: &str, supported: &[&str], problems: &mut Problems) {
    let value = text(spec, field);
    if !supported.contains(&value) {
        problems.not_supported(format!("spec.{field}"), value, supported);
    }
}

fn check_hints(annotations: &Value, problems: &mut Problems) {
    let (hints, mode) = (annotations.get(HINTS), annotations.get(MODE));
    if let (Some(hints), Some(mode)) = (hints, mode)
        && hints != mode
    {
        let path = format!("metadata.annotations[{MODE}]");
        let detail = format!("must match annotations[{HINTS}] when both are specified");
        problems.invalid(path, mode.clone(), detail);
    }
}

fn check_type(spec: &Value, problems: &mut Problems) {
    match text(spec, "type") {
        kind @ ("NodePort" | "LoadBalancer") => {
            if kind == "LoadBalancer" {
                ports::refuse_kubelet(spec, problems);
            }
            if is_headless(spec) {
                let detail = format!("may not be set to 'None' for {kind} services");
                problems.invalid("spec.clusterIPs[0]", "None", detail);
            }
        }
        "ExternalName" => check_external_name(spec, problems),
        _ => {}
    }
}

fn check_external_name(spec: &Value, problems: &mut Problems) {
    let detail = "may not be set for ExternalName services";
    for field in ["clusterIPs", "ipFamilies"] {
        if !list(spec, field).is_empty() {
            problems.forbidden(format!("spec.{field}"), detail);
        }
    }
    if is_set(spec, "ipFamilyPolicy") {
        problems.forbidden("spec.ipFamilyPolicy", detail);
    }
    // A trailing dot marks a fully qualified name.
    let name = text(spec, "externalName");
    match name.strip_suffix('.').unwrap_or(name) {
        "" => problems.required("spec.externalName", ""),
        name => {
            for complaint in names::subdomain(name) {
                problems.invalid("spec.externalName", name, complaint);
            }
        }
    }
}

fn check_affinity(spec: &Value, problems: &mut Problems) {
    const PATH: &str = "spec.sessionAffinityConfig";
    check_listed(spec, "sessionAffinity", &["ClientIP", "None"], problems);
    match text(spec, "sessionAffinity") {
        "None" if is_set(spec, "sessionAffinityConfig") => {
            problems.forbidden(PATH, "must not be set when session affinity is None");
        }
        "ClientIP" => {
            let seconds = number(&spec["sessionAffinityConfig"]["clientIP"], "timeoutSeconds");
            if !(1..=86400).contains(&seconds) {
                let path = format!("{PATH}.clientIP.timeoutSeconds");
                let detail = "must be greater than 0 and less than 86400";
                problems.invalid(path, seconds, detail);
            }
        }
        _ => {}
    }
}

fn check_externals(spec: &Value, problems: &mut Problems) {
    let all = Path::At("spec.externalIPs");
    for (index, entry) in list(spec, "externalIPs").iter().enumerate() {
        let (path, entry) = (all.index(index), entry.as_str().unwrap_or_default());
        let before = problems.len();
        address::check_form(entry, &path, problems);
        if problems.len() > before {
            continue;
        }
        match entry {
            "0.0.0.0" | "::" => {
                let detail = format!("may not be unspecified ({entry})");
                problems.invalid(path, entry, detail);
            }
            _ => {
                address::refuse_loopback(&entry.into(), &path, problems);
                address::check(entry, &path, problems);
            }
        }
    }
}

/// Validates the source ranges, in the spec or in the deprecated annotation.
fn check_source_ranges(service: &Value, problems: &mut Problems) {
    let spec = &service["spec"];
    let ranges = list(spec, "loadBalancerSourceRanges");
    let noted = service["metadata"]["annotations"][RANGES].as_str();
    if !ranges.is_empty() {
        let path = Path::At("spec.LoadBalancerSourceRanges");
        if !is_balanced(spec) {
            problems.forbidden(path, ONLY_BALANCED);
        }
        for (index, range) in ranges.iter().enumerate() {
            let range = range.as_str().unwrap_or_default().trim();
            address::check_block(range, range, &path.index(index), problems);
        }
    } else if let Some(noted) = noted {
        let path = format!("metadata.annotations[{RANGES}]");
        let path = Path::At(&path);
        if !is_balanced(spec) {
            problems.forbidden(path, ONLY_BALANCED);
        }
        let noted = noted.trim();
        for range in noted.split(',').filter(|_| !noted.is_empty()) {
            address::check_block(range.trim(), range.trim(), &path, problems);
        }
    }
}

/// Validates the class of a load balancer.
pub(super) fn check_class(spec: &Value, problems: &mut Problems) {
    const PATH: &str = "spec.loadBalancerClass";
    if !is_set(spec, "loadBalancerClass") {
        return;
    }
    if !is_balanced(spec) {
        problems.forbidden(PATH, ONLY_BALANCED);
        return;
    }
    let class = text(spec, "loadBalancerClass");
    for complaint in names::qualified(class) {
        problems.invalid(PATH, class, complaint);
    }
}

fn check_policies(spec: &Value, problems: &mut Problems) {
    let policies = ["Cluster", "Local"];
    let external = text(spec, "externalTrafficPolicy");
    if is_reachable_from_outside(spec) {
        check_listed(spec, "externalTrafficPolicy", &policies, problems);
    } else if !external.is_empty() {
        let detail = "may only be set for externally-accessible services";
        problems.invalid("spec.externalTrafficPolicy", external, detail);
    }
    let health = number(spec, "healthCheckNodePort");
    if !has_health_port(spec) {
        if health != 0 {
            let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
            problems.invalid("spec.healthCheckNodePort", health, detail);
        }
    } else if health == 0 {
        problems.required("spec.healthCheckNodePort", "");
    } else {
        for complaint in names::port_number(health) {
            problems.invalid("spec.healthCheckNodePort", health, complaint);
        }
    }
    if is_set(spec, "internalTrafficPolicy") {
        check_listed(spec, "internalTrafficPolicy", &policies, problems);
    }
    if is_set(spec, "trafficDistribution") {
        let supported = ["PreferClose", "PreferSameZone", "PreferSameNode"];
        check_listed(spec, "trafficDistribution", &supported, problems);
    }
}
