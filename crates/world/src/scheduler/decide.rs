//! Where a pod goes. Pure.

use std::{cmp::Reverse, collections::BTreeMap};

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;

use super::{
    affinity::{preference, reluctance},
    fit::obstacles,
};
use crate::workload::phase;

/// A node, and the pods that are on it or on their way there.
#[derive(Debug)]
pub(super) struct Place<'a> {
    pub(super) node: &'a Node,
    pub(super) pods: Vec<&'a Pod>,
}

/// What becomes of the pod.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// It goes to this node.
    Bind(String),
    /// It waits until somebody lifts its gates.
    Gated,
    /// It fits nowhere, and why.
    Nowhere(String),
}

/// Whether the pod is ours to place.
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

/// Whether it needs its place no more.
pub(super) fn has_ended(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

pub(super) fn decide(pod: &Pod, places: &[Place<'_>]) -> Decision {
    let gates = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.scheduling_gates.as_ref());
    if gates.is_some_and(|gates| !gates.is_empty()) {
        return Decision::Gated;
    }
    if places.is_empty() {
        return Decision::Nowhere("no nodes available to schedule pods".to_owned());
    }
    let mut causes: BTreeMap<String, usize> = BTreeMap::new();
    let mut fit = Vec::new();
    for place in places {
        let obstacles = obstacles(pod, place.node, &place.pods);
        if obstacles.is_empty() {
            fit.push(place);
        }
        for cause in obstacles {
            *causes.entry(cause).or_default() += 1;
        }
    }
    let best = fit.into_iter().min_by_key(|place| {
        let node = place.node;
        let wish = Reverse(preference(pod, node));
        (
            reluctance(pod, node),
            wish,
            place.pods.len(),
            node.name_any(),
        )
    });
    match best {
        Some(place) => Decision::Bind(place.node.name_any()),
        None => Decision::Nowhere(in_words(places.len(), &causes)),
    }
}

fn in_words(nodes: usize, causes: &BTreeMap<String, usize>) -> String {
    let mut causes: Vec<_> = causes
        .iter()
        .map(|(cause, count)| format!("{count} {cause}"))
        .collect();
    causes.sort();
    format!("0/{nodes} nodes are available: {}.", causes.join(", "))
}
