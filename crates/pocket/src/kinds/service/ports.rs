//! Validation of the ports of a Service, each alone and all together.

use std::collections::HashSet;

use serde_json::Value;

use crate::{
    kinds::{
        fields::{list, number, text},
        names,
        path::Path,
    },
    status::{FieldError, FieldErrorKind, Problems},
};

const PORTS: Path<'_> = Path::At("spec.ports");

/// The kubelet's port, which no load balancer may expose.
const KUBELET_PORT: i64 = 10250;

/// Refuses a load balancer in front of the kubelet.
pub(super) fn refuse_kubelet(spec: &Value, problems: &mut Problems) {
    for (index, port) in list(spec, "ports").iter().enumerate() {
        if number(port, "port") == KUBELET_PORT {
            let detail = format!(
                "may not expose port {KUBELET_PORT} externally since it is used by kubelet"
            );
            problems.invalid(PORTS.index(index), KUBELET_PORT, detail);
        }
    }
}

/// Validates each port, and that its name is unique.
pub(super) fn check_each(spec: &Value, problems: &mut Problems) {
    let ports = list(spec, "ports");
    let mut seen = HashSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = PORTS.index(index);
        let name = text(port, "name");
        if name.is_empty() {
            if ports.len() > 1 {
                problems.required(path.field("name"), "");
            }
        } else {
            for complaint in names::label(name) {
                problems.invalid(path.field("name"), name, complaint);
            }
            if !seen.insert(name) {
                problems.duplicate(path.field("name"), name);
            }
        }
        check_one(port, &path, problems);
    }
}

fn check_one(port: &Value, path: &Path<'_>, problems: &mut Problems) {
    for complaint in names::port_number(number(port, "port")) {
        problems.invalid(path.field("port"), number(port, "port"), complaint);
    }
    let protocol = text(port, "protocol");
    if !matches!(protocol, "TCP" | "UDP" | "SCTP") {
        problems.not_supported(path.field("protocol"), protocol, &["SCTP", "TCP", "UDP"]);
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
    if let Some(protocol) = port.get("appProtocol").and_then(Value::as_str) {
        for complaint in names::qualified(protocol) {
            problems.invalid(path.field("appProtocol"), protocol, complaint);
        }
    }
}

/// Validates the ports together: no duplicate node ports, and no duplicate port and protocol.
pub(super) fn check_together(spec: &Value, problems: &mut Problems) {
    let ports = || list(spec, "ports").iter().enumerate();
    if text(spec, "type") == "ClusterIP" {
        for (index, _) in ports().filter(|(_, port)| number(port, "nodePort") != 0) {
            let detail = "may not be used when `type` is 'ClusterIP'";
            problems.forbidden(PORTS.index(index).field("nodePort"), detail);
        }
    }
    let mut seen = HashSet::new();
    for (index, port) in ports() {
        let node = number(port, "nodePort");
        if node != 0 && !seen.insert((node, text(port, "protocol"))) {
            problems.duplicate(PORTS.index(index).field("nodePort"), node);
        }
    }
    let mut seen = HashSet::new();
    for (index, port) in ports() {
        let (number, protocol) = (number(port, "port"), text(port, "protocol"));
        if seen.insert((number, protocol)) {
            continue;
        }
        // Only the fields that make it a duplicate are shown.
        let shown = format!(
            "{{\"Name\":\"\",\"Protocol\":{},\"AppProtocol\":null,\"Port\":{number},\"TargetPort\":0,\"NodePort\":0}}",
            Value::from(protocol),
        );
        problems.push(FieldError {
            kind: FieldErrorKind::Duplicate,
            path: PORTS.index(index).to_string(),
            value: None,
            detail: shown,
        });
    }
}
