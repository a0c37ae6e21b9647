//! Whether a pod fits on a node.

use k8s_openapi::api::core::v1::{Container, ContainerPort, Node, Pod, Taint};

use crate::workload::{
    Amounts, add, amounts, at_least, matches_node_affinity, tolerates, untolerated,
};

/// Why the pod does not fit the node, in kube-scheduler's words; empty if it fits. Only the first
/// kind of reason is returned, since the others matter only once it is resolved.
pub(super) fn unfit_reasons(pod: &Pod, node: &Node, others: &[&Pod]) -> Vec<String> {
    let cordoned = node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true);
    if cordoned && !tolerates(pod, &cordon()) {
        return vec!["node(s) were unschedulable".to_owned()];
    }
    if let Some(taint) = untolerated(pod, node, &["NoSchedule", "NoExecute"]) {
        let value = taint.value.as_deref().unwrap_or_default();
        let taint = format!("{{{}: {value}}}", taint.key);
        return vec![format!("node(s) had untolerated taint {taint}")];
    }
    if !matches_node_affinity(pod, node) {
        return vec!["node(s) didn't match Pod's node affinity/selector".to_owned()];
    }
    if conflicting_host_port(pod, others).is_some() {
        return vec!["node(s) didn't have free ports for the requested pod ports".to_owned()];
    }
    insufficient_resources(pod, node, others)
}

/// The taint that a pod must tolerate to be bound to a cordoned node.
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

/// The first host port of the pod that one of the others uses.
pub(crate) fn conflicting_host_port(pod: &Pod, others: &[&Pod]) -> Option<i32> {
    let mut clashes = host_ports(pod).filter(|port| is_taken(port, others));
    clashes.next().and_then(|port| port.host_port)
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

fn insufficient_resources(pod: &Pod, node: &Node, others: &[&Pod]) -> Vec<String> {
    let status = node.status.as_ref();
    let mut allocatable = amounts(status.and_then(|status| status.allocatable.as_ref()));
    let max_pods = allocatable.remove("pods").unwrap_or(0) / 1_000_000_000;
    let mut taken = Amounts::new();
    for other in others {
        add(&mut taken, &requests(other));
    }
    let mut reasons = Vec::new();
    if others.len() as i128 + 1 > max_pods {
        reasons.push("Too many pods".to_owned());
    }
    for (name, requested) in requests(pod) {
        let free = allocatable.get(&name).copied().unwrap_or(0);
        let taken = taken.get(&name).copied().unwrap_or(0);
        if requested > 0 && requested > free.saturating_sub(taken) {
            reasons.push(format!("Insufficient {name}"));
        }
    }
    reasons
}

/// The resource requests of a pod: its containers and sidecars together, or the maximum during
/// initialization if that is more; pod-level requests take precedence.
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
        let mut requested = of(first);
        if first.restart_policy.as_deref() == Some("Always") {
            add(&mut sidecars, &requested);
            requested.clone_from(&sidecars);
        } else {
            add(&mut requested, &sidecars);
        }
        at_least(&mut start, &requested);
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
