//! Rules on a Service alone.

use std::{
    collections::HashSet,
    net::{IpAddr, Ipv4Addr},
};

use serde_json::Value;

use super::{has_address, is_headless, is_reachable_from_outside};
use crate::{
    kinds::{
        address,
        fields::{is_set, list, number, text},
        metadata::check_label_map,
        names,
        path::Path,
    },
    status::{FieldError, FieldErrorKind, Problems},
};

const NO_ADDRESS: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";

pub(super) fn validate(service: &Value, problems: &mut Problems) {
    let spec = &service["spec"];
    if list(spec, "ports").is_empty() && has_address(spec) && !is_headless(spec) {
        problems.required("spec.ports", "");
    }
    check_type(spec, problems);
    check_addresses(spec, problems);
    check_affinity(spec, problems);
    check_label_map(spec, "selector", "spec.selector", problems);
    check_ports(spec, problems);
    if is_set(spec, "externalTrafficPolicy") && !is_reachable_from_outside(spec) {
        let shown = text(spec, "externalTrafficPolicy");
        let detail = "may only be set for externally-accessible services";
        problems.invalid("spec.externalTrafficPolicy", shown, detail);
    }
    let path = Path::At("spec.externalIPs");
    for (index, entry) in list(spec, "externalIPs").iter().enumerate() {
        check_external(
            entry.as_str().unwrap_or_default(),
            &path.index(index),
            problems,
        );
    }
    check_source_ranges(spec, problems);
    if text(spec, "type") != "LoadBalancer" {
        let detail = "may only be used when `type` is 'LoadBalancer'";
        for field in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
            if is_set(spec, field) {
                problems.forbidden(format!("spec.{field}"), detail);
            }
        }
    }
    check_health_port(spec, problems);
    let distribution = text(spec, "trafficDistribution");
    let supported = ["PreferClose", "PreferSameZone", "PreferSameNode"];
    if is_set(spec, "trafficDistribution") && !supported.contains(&distribution) {
        problems.not_supported("spec.trafficDistribution", distribution, &supported);
    }
}

/// Rules on the form of an address.
pub(super) fn check_address(text: &str, path: &Path<'_>, problems: &mut Problems) {
    address::check_form(text, path, problems);
}

fn check_external(text: &str, path: &Path<'_>, problems: &mut Problems) {
    let before = problems.len();
    check_address(text, path, problems);
    if problems.len() > before {
        return;
    }
    if text
        .parse::<Ipv4Addr>()
        .is_ok_and(|address| address.is_unspecified())
    {
        problems.invalid(path, text, "may not be unspecified (0.0.0.0)");
        return;
    }
    address::refuse_loopback(&text.into(), path, problems);
    address::check(text, path, problems);
}

fn check_source_ranges(spec: &Value, problems: &mut Problems) {
    let ranges = list(spec, "loadBalancerSourceRanges");
    let path = Path::At("spec.LoadBalancerSourceRanges");
    if !ranges.is_empty() && text(spec, "type") != "LoadBalancer" {
        problems.forbidden(path, "may only be used when `type` is 'LoadBalancer'");
        return;
    }
    for (index, range) in ranges.iter().enumerate() {
        let text = range.as_str().unwrap_or_default();
        address::check_block(text.trim(), text, &path.index(index), problems);
    }
}

fn check_health_port(spec: &Value, problems: &mut Problems) {
    let port = number(spec, "healthCheckNodePort");
    if port != 0 && !super::has_health_port(spec) {
        let detail =
            "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        problems.invalid("spec.healthCheckNodePort", port, detail);
    }
}

fn check_type(spec: &Value, problems: &mut Problems) {
    match text(spec, "type") {
        kind @ ("NodePort" | "LoadBalancer") if text(spec, "clusterIP") == "None" => {
            let detail = format!("may not be set to 'None' for {kind} services");
            problems.invalid("spec.clusterIPs[0]", "None", detail);
        }
        "ExternalName" => {
            if !text(spec, "clusterIP").is_empty() {
                let shown = spec["clusterIPs"].clone();
                let detail = "may not be set for ExternalName services";
                problems.invalid("spec.clusterIPs", shown, detail);
            }
            match text(spec, "externalName") {
                "" => problems.required("spec.externalName", ""),
                // A trailing dot says that the name is complete.
                name => {
                    for complaint in names::subdomain(name.strip_suffix('.').unwrap_or(name)) {
                        problems.invalid("spec.externalName", name, complaint);
                    }
                }
            }
        }
        _ => {}
    }
}

fn check_addresses(spec: &Value, problems: &mut Problems) {
    let addresses = list(spec, "clusterIPs");
    let primary = text(spec, "clusterIP");
    if let Some(first) = addresses.first()
        && first != primary
    {
        let detail = "first value must match `clusterIP`";
        problems.invalid("spec.clusterIPs", addresses, detail);
    }
    for (index, address) in addresses.iter().enumerate() {
        let address = address.as_str().unwrap_or_default();
        let none = index == 0 && address == "None";
        if !none && address.parse::<IpAddr>().is_err() {
            problems.invalid(format!("spec.clusterIPs[{index}]"), address, NO_ADDRESS);
        }
    }
}

fn check_affinity(spec: &Value, problems: &mut Problems) {
    const PATH: &str = "spec.sessionAffinityConfig";
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

fn check_ports(spec: &Value, problems: &mut Problems) {
    let ports = list(spec, "ports");
    let (mut names, mut numbers, mut nodes) = (HashSet::new(), HashSet::new(), HashSet::new());
    let all = Path::At("spec.ports");
    for (index, port) in ports.iter().enumerate() {
        let path = all.index(index);
        let name = text(port, "name");
        if name.is_empty() && ports.len() > 1 {
            problems.required(path.field("name"), "");
        } else if !name.is_empty() && !names.insert(name) {
            problems.duplicate(path.field("name"), name);
        }
        check_port(port, &path, problems);
        let protocol = text(port, "protocol");
        if !numbers.insert((number(port, "port"), protocol)) {
            // Only what makes it a duplicate is shown.
            let shown = format!(
                "{{\"Name\":\"\",\"Protocol\":{},\"AppProtocol\":null,\"Port\":{},\"TargetPort\":0,\"NodePort\":0}}",
                Value::from(protocol),
                number(port, "port")
            );
            problems.push(FieldError {
                kind: FieldErrorKind::Duplicate,
                path: path.to_string(),
                value: None,
                detail: shown,
            });
        }
        let node = number(port, "nodePort");
        if node == 0 {
            continue;
        }
        if matches!(text(spec, "type"), "ClusterIP" | "ExternalName") {
            let detail = format!("may not be used when `type` is '{}'", text(spec, "type"));
            problems.forbidden(path.field("nodePort"), detail);
        } else if !nodes.insert((node, protocol)) {
            problems.duplicate(path.field("nodePort"), node);
        }
    }
}

fn check_port(port: &Value, path: &Path<'_>, problems: &mut Problems) {
    let name = text(port, "name");
    if !name.is_empty() {
        for complaint in names::label(name) {
            problems.invalid(path.field("name"), name, complaint);
        }
    }
    for complaint in names::port_number(number(port, "port")) {
        problems.invalid(path.field("port"), number(port, "port"), complaint);
    }
    let target = &port["targetPort"];
    let complaints = match target {
        Value::String(name) => names::port_name(name),
        Value::Number(_) => names::port_number(number(port, "targetPort")),
        _ => Vec::new(),
    };
    for complaint in complaints {
        problems.invalid(path.field("targetPort"), target.clone(), complaint);
    }
    let protocol = text(port, "appProtocol");
    if !protocol.is_empty() {
        for complaint in names::qualified(protocol) {
            problems.invalid(path.field("appProtocol"), protocol, complaint);
        }
    }
}
