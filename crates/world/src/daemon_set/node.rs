//! A node and the pods that a DaemonSet has on it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;

use super::pod::node_of;
use crate::workload::{has_ended, matches_node_affinity, untolerated};

#[derive(Debug)]
pub(super) struct NodePods<'a> {
    pub(super) node: String,
    /// Whether the node should get a pod.
    pub(super) should_run: bool,
    /// Whether a pod that is already on the node may remain.
    pub(super) should_continue: bool,
    /// The oldest first, including those that are being deleted.
    pub(super) pods: Vec<&'a Pod>,
}

impl<'a> NodePods<'a> {
    /// The pods that have neither ended nor been deleted.
    pub(super) fn live(&self) -> impl Iterator<Item = &'a Pod> {
        let stay = |pod: &&Pod| pod.metadata.deletion_timestamp.is_none() && !has_ended(pod);
        self.pods.iter().copied().filter(stay)
    }
}

/// All nodes with their pods, and the pods of nodes that no longer exist.
pub(super) fn pods_by_node<'a>(
    nodes: &[&Node],
    pods: &[&'a Pod],
    candidate: &Pod,
) -> (Vec<NodePods<'a>>, Vec<&'a Pod>) {
    let mut by_node: BTreeMap<&str, Vec<&Pod>> = BTreeMap::new();
    for &pod in pods {
        by_node
            .entry(node_of(pod).unwrap_or_default())
            .or_default()
            .push(pod);
    }
    let pods_by_node = nodes.iter().map(|node| {
        let name = node.name_any();
        let mut pods = by_node.remove(name.as_str()).unwrap_or_default();
        pods.sort_by_key(|pod| (pod.creation_timestamp(), pod.name_any()));
        let (should_run, should_continue) = fits(candidate, node);
        NodePods {
            node: name,
            should_run,
            should_continue,
            pods,
        }
    });
    let pods_by_node = pods_by_node.collect();
    (pods_by_node, by_node.into_values().flatten().collect())
}

/// Whether a pod should start on the node, and whether one that is there may remain.
fn fits(candidate: &Pod, node: &Node) -> (bool, bool) {
    let spec = candidate.spec.as_ref();
    let fixed = spec
        .and_then(|spec| spec.node_name.as_deref())
        .unwrap_or_default();
    let elsewhere = !fixed.is_empty() && fixed != node.name_any();
    if elsewhere || !matches_node_affinity(candidate, node) {
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
