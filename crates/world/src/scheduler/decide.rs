//! Which node a pod is bound to. Pure.

use std::{cmp::Reverse, collections::BTreeMap};

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;

use super::fit::unfit_reasons;
use crate::workload::{has_ended, preferred_affinity_weight, soft_taint_count};

/// A node, and the pods that are bound or assumed to it.
#[derive(Debug)]
pub(super) struct NodeInfo<'a> {
    pub(super) node: &'a Node,
    pub(super) pods: Vec<&'a Pod>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// Bind the pod to this node.
    Bind(String),
    /// The pod waits until its scheduling gates are removed.
    Gated,
    /// The pod fits no node, with the message.
    Unschedulable(String),
}

/// Whether this scheduler is to bind the pod.
pub(super) fn is_pending(pod: &Pod) -> bool {
    let Some(spec) = &pod.spec else {
        return false;
    };
    let scheduler = spec.scheduler_name.as_deref().unwrap_or_default();
    spec.node_name.as_ref().is_none_or(String::is_empty)
        && matches!(scheduler, "" | "default-scheduler")
        && pod.metadata.deletion_timestamp.is_none()
        && !has_ended(pod)
}

pub(super) fn decide(pod: &Pod, nodes: &[NodeInfo<'_>]) -> Decision {
    let gates = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.scheduling_gates.as_ref());
    if gates.is_some_and(|gates| !gates.is_empty()) {
        return Decision::Gated;
    }
    if nodes.is_empty() {
        return Decision::Unschedulable("no nodes available to schedule pods".to_owned());
    }
    let mut causes: BTreeMap<String, usize> = BTreeMap::new();
    let mut fit = Vec::new();
    for info in nodes {
        let reasons = unfit_reasons(pod, info.node, &info.pods);
        if reasons.is_empty() {
            fit.push(info);
        }
        for cause in reasons {
            *causes.entry(cause).or_default() += 1;
        }
    }
    let best = fit.into_iter().min_by_key(|info| {
        let node = info.node;
        let preferred = Reverse(preferred_affinity_weight(pod, node));
        (
            soft_taint_count(pod, node),
            preferred,
            info.pods.len(),
            node.name_any(),
        )
    });
    match best {
        Some(info) => Decision::Bind(info.node.name_any()),
        None => Decision::Unschedulable(unschedulable_message(nodes.len(), &causes)),
    }
}

fn unschedulable_message(nodes: usize, causes: &BTreeMap<String, usize>) -> String {
    let mut causes: Vec<_> = causes
        .iter()
        .map(|(cause, count)| format!("{count} {cause}"))
        .collect();
    causes.sort();
    format!("0/{nodes} nodes are available: {}.", causes.join(", "))
}
