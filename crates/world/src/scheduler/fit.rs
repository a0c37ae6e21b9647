//! Whether a pod fits on a node.

use k8s_openapi::api::core::v1::{Container, ContainerPort, Node, Pod, Taint};

use crate::workload::{Amounts, add, amounts, at_least, is_wanted, tolerates, untolerated};

/// Why the pod cannot go to the node, in the words that everybody knows; nothing if it can. Only
/// the first kind of reason is told, since nobody mends the second before the first.
pub(super) fn obstacles(pod: &Pod, node: &Node, others: &[&Pod]) -> Vec<String> {
    let closed = node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true);
    if closed && !tolerates(pod, &cordon()) {
        return vec!["node(s) were unschedulable".to_owned()];
    }
    if let Some(taint) = untolerated(pod, node, &["NoSchedule", "NoExecute"]) {
        let value = taint.value.as_deref().unwrap_or_default();
        let taint = format!("{{{}: {value}}}", taint.key);
        return vec![format!("node(s) had untolerated taint {taint}")];
    }
    if !is_wanted(pod, node) {
        return vec!["node(s) didn't match Pod's node affinity/selector".to_owned()];
    }
    if host_ports(pod).any(|port| is_taken(port, others)) {
        return vec!["node(s) didn't have free ports for the requested pod ports".to_owned()];
    }
    lacking(pod, node, others)
}

/// What tolerates this may go to a node that is closed.
fn cordon() -> Taint {
    Taint {
        key: "node.kubernetes.io/unschedulable".to_owned(),
        effect: "NoSchedule".to_owned(),
        ..Taint::default()
    }
}

fn host_ports(pod: &Pod) -> impl Iterator<Item = &ContainerPort> {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let ports = containers.flat_map(|container| container.ports.iter().flatten());
    ports.filter(|port| port.host_port.is_some_and(|port| port > 0))
}

fn is_taken(port: &ContainerPort, others: &[&Pod]) -> bool {
    let protocol = |port: &ContainerPort| port.protocol.clone().unwrap_or("TCP".to_owned());
    let everywhere = |ip: &str| matches!(ip, "" | "0.0.0.0" | "::");
    let meet = |other: &ContainerPort| {
        let ip = port.host_ip.as_deref().unwrap_or_default();
        let other = other.host_ip.as_deref().unwrap_or_default();
        ip == other || everywhere(ip) || everywhere(other)
    };
    let mut taken = others.iter().flat_map(|pod| host_ports(pod));
    taken.any(|other| {
        other.host_port == port.host_port && protocol(other) == protocol(port) && meet(other)
    })
}

fn lacking(pod: &Pod, node: &Node, others: &[&Pod]) -> Vec<String> {
    let status = node.status.as_ref();
    let mut room = amounts(status.and_then(|status| status.allocatable.as_ref()));
    let places = room.remove("pods").unwrap_or(0) / 1_000_000_000;
    let mut taken = Amounts::new();
    for other in others {
        add(&mut taken, &requests(other));
    }
    let mut lacking = Vec::new();
    if others.len() as i128 + 1 > places {
        lacking.push("Too many pods".to_owned());
    }
    for (name, asked) in requests(pod) {
        let room = room.get(&name).copied().unwrap_or(0);
        let taken = taken.get(&name).copied().unwrap_or(0);
        if asked > 0 && asked > room.saturating_sub(taken) {
            lacking.push(format!("Insufficient {name}"));
        }
    }
    lacking
}

/// What a pod asks for: its containers and sidecars together, or the greediest moment of its
/// start; what it asks for as a whole goes before that.
pub(super) fn requests(pod: &Pod) -> Amounts {
    let Some(spec) = &pod.spec else {
        return Amounts::new();
    };
    let of = |container: &Container| {
        let resources = container.resources.as_ref();
        amounts(resources.and_then(|resources| resources.requests.as_ref()))
    };
    let (mut sidecars, mut start) = (Amounts::new(), Amounts::new());
    for first in spec.init_containers.iter().flatten() {
        let mut moment = of(first);
        if first.restart_policy.as_deref() == Some("Always") {
            add(&mut sidecars, &moment);
            moment.clone_from(&sidecars);
        } else {
            add(&mut moment, &sidecars);
        }
        at_least(&mut start, &moment);
    }
    let mut all = sidecars;
    for container in &spec.containers {
        add(&mut all, &of(container));
    }
    at_least(&mut all, &start);
    let whole = spec.resources.as_ref();
    all.extend(amounts(whole.and_then(|whole| whole.requests.as_ref())));
    add(&mut all, &amounts(spec.overhead.as_ref()));
    all
}
