//! A node and the pods that a set has there.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;

use super::pod::node_of;
use crate::workload::{has_ended, is_wanted, untolerated};

#[derive(Debug)]
pub(super) struct Place<'a> {
    pub(super) node: String,
    /// Whether it should get a pod.
    pub(super) starts: bool,
    /// Whether a pod that is there may stay.
    pub(super) keeps: bool,
    /// The oldest first, those on their way out too.
    pub(super) pods: Vec<&'a Pod>,
}

impl<'a> Place<'a> {
    /// The pods that are there to stay.
    pub(super) fn live(&self) -> impl Iterator<Item = &'a Pod> {
        let stay = |pod: &&Pod| pod.metadata.deletion_timestamp.is_none() && !has_ended(pod);
        self.pods.iter().copied().filter(stay)
    }
}

/// All nodes with their pods, and the pods of nodes that are no more.
pub(super) fn places<'a>(
    nodes: &[&Node],
    pods: &[&'a Pod],
    candidate: &Pod,
) -> (Vec<Place<'a>>, Vec<&'a Pod>) {
    let mut by_node: BTreeMap<&str, Vec<&Pod>> = BTreeMap::new();
    for &pod in pods {
        by_node
            .entry(node_of(pod).unwrap_or_default())
            .or_default()
            .push(pod);
    }
    let places = nodes.iter().map(|node| {
        let name = node.name_any();
        let mut pods = by_node.remove(name.as_str()).unwrap_or_default();
        pods.sort_by_key(|pod| (pod.creation_timestamp(), pod.name_any()));
        let (starts, keeps) = fits(candidate, node);
        Place {
            node: name,
            starts,
            keeps,
            pods,
        }
    });
    let places = places.collect();
    (places, by_node.into_values().flatten().collect())
}

/// Whether a pod should start on the node, and whether one that is there may stay.
fn fits(candidate: &Pod, node: &Node) -> (bool, bool) {
    let spec = candidate.spec.as_ref();
    let fixed = spec
        .and_then(|spec| spec.node_name.as_deref())
        .unwrap_or_default();
    let elsewhere = !fixed.is_empty() && fixed != node.name_any();
    if elsewhere || !is_wanted(candidate, node) {
        return (false, false);
    }
    if untolerated(candidate, node, &["NoExecute"]).is_some() {
        return (false, false);
    }
    (
        untolerated(candidate, node, &["NoSchedule"]).is_none(),
        true,
    )
}
