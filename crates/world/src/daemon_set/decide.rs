//! Which nodes get a pod and which lose theirs, and the status of the set. Pure.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::{ControllerRevision, DaemonSet, DaemonSetSpec, DaemonSetStatus},
    core::v1::{Node, Pod},
};
use kube::ResourceExt;

use super::{
    node::{NodePods, pods_by_node},
    pod::{candidate, is_of, on_node},
    rollout::{self, RollingUpdateLimits, is_on_delete},
};
use crate::workload::{
    REVISION_HASH, RevisionHistory, claim, has_ended, is_available, is_ready, new_revision,
    nonzero, to_i32,
};

/// The time from its creation for which a failed pod remains, so that a pod that always fails is
/// not recreated in a tight loop.
const FAILED_POD_RETENTION: Duration = Duration::from_secs(10);
/// The maximum number of pods created in one reconcile.
const BURST_PODS: usize = 250;

#[derive(Debug)]
pub(super) struct Facts<'a> {
    pub(super) set: &'a DaemonSet,
    /// The pods of its namespace that it controls, and the orphans.
    pub(super) pods: Vec<&'a Pod>,
    /// The revisions of its namespace that it controls, and the orphans.
    pub(super) revisions: Vec<&'a ControllerRevision>,
    pub(super) nodes: Vec<&'a Node>,
    pub(super) now: Timestamp,
}

#[derive(Debug)]
pub(super) struct Decision<'a> {
    pub(super) revisions: RevisionHistory<'a>,
    pub(super) adopt: Vec<&'a Pod>,
    pub(super) release: Vec<&'a Pod>,
    pub(super) create: Vec<Pod>,
    pub(super) delete: Vec<&'a Pod>,
    pub(super) status: DaemonSetStatus,
    /// The time until a pod becomes available or a failed one is deleted, which no watch reports.
    pub(super) requeue_after: Option<Duration>,
}

pub(super) fn decide<'a>(facts: &Facts<'a>) -> Option<Decision<'a>> {
    let set = facts.set;
    let spec = set.spec.as_ref()?;
    let leaving = set.metadata.deletion_timestamp.is_some();
    let collisions = set
        .status
        .as_ref()
        .and_then(|status| status.collision_count);
    let latest = new_revision(set, &spec.template, collisions.unwrap_or(0), REVISION_HASH);
    let mut revisions = RevisionHistory::plan(&facts.revisions, set, &spec.selector, latest);
    let hash = revisions.latest.labels().get(REVISION_HASH).cloned()?;
    let uid = set.uid().unwrap_or_default();
    let claims = claim(&facts.pods, &uid, &spec.selector, leaving);
    let own = [claims.owned, claims.adopt.clone()].concat();
    revisions.truncate(spec.revision_history_limit, |it| {
        let hash = it.labels().get(REVISION_HASH);
        hash.is_some_and(|hash| own.iter().any(|pod| is_of(pod, hash)))
    });
    let candidate = candidate(set, spec)?;
    let (pods_by_node, lost) = pods_by_node(&facts.nodes, &own, &candidate);
    let (status, requeue_after) = status(facts, spec, &pods_by_node, &hash);
    let mut decision = Decision {
        revisions,
        adopt: claims.adopt,
        release: claims.release,
        create: Vec::new(),
        delete: Vec::new(),
        status,
        requeue_after,
    };
    if !leaving {
        let stay = |pod: &&Pod| pod.metadata.deletion_timestamp.is_none();
        decision.delete.extend(lost.into_iter().filter(stay));
        decision.plan_nodes(facts, spec, &pods_by_node, &candidate, &hash);
    }
    Some(decision)
}

impl<'a> Decision<'a> {
    fn plan_nodes(
        &mut self,
        facts: &Facts<'a>,
        spec: &DaemonSetSpec,
        pods_by_node: &[NodePods<'a>],
        candidate: &Pod,
        hash: &str,
    ) {
        let limits = RollingUpdateLimits::of(spec, self.status.desired_number_scheduled);
        let mut nodes = Vec::new();
        for node_pods in pods_by_node {
            if node_pods.should_run && node_pods.pods.is_empty() {
                nodes.push(node_pods.node.clone());
            }
            self.delete_unwanted(node_pods, limits, hash, facts.now);
        }
        if !is_on_delete(spec) {
            let min_ready = spec.min_ready_seconds.unwrap_or(0);
            let steps = rollout::next(pods_by_node, hash, min_ready, limits, facts.now);
            let known = |pod: &&Pod| !self.delete.iter().any(|it| it.uid() == pod.uid());
            let old: Vec<_> = steps.delete.into_iter().filter(known).collect();
            self.delete.extend(old);
            nodes.extend(steps.create);
        }
        let pods = nodes
            .iter()
            .take(BURST_PODS)
            .map(|node| on_node(candidate, node, hash, &facts.pods));
        self.create = pods.collect();
    }

    /// Deletes the pods that a node should not have: all if the node no longer matches, else those
    /// that have ended and duplicates.
    fn delete_unwanted(
        &mut self,
        node_pods: &NodePods<'a>,
        limits: RollingUpdateLimits,
        hash: &str,
        now: Timestamp,
    ) {
        let staying = node_pods.pods.iter().copied();
        let staying = staying.filter(|pod| pod.metadata.deletion_timestamp.is_none());
        if !node_pods.should_continue {
            self.delete.extend(staying);
            return;
        }
        for pod in staying.filter(|pod| has_ended(pod)) {
            match remaining_retention(pod, now) {
                Some(left) => {
                    self.requeue_after =
                        [self.requeue_after, Some(left)].into_iter().flatten().min();
                }
                None => self.delete.push(pod),
            }
        }
        let (new, old): (Vec<_>, Vec<_>) = node_pods.live().partition(|pod| is_of(pod, hash));
        if limits.surge > 0 {
            self.delete.extend(new.into_iter().skip(1));
            self.delete.extend(old.into_iter().skip(1));
        } else {
            self.delete.extend(node_pods.live().skip(1));
        }
    }
}

/// The time for which a failed pod still remains.
fn remaining_retention(pod: &Pod, now: Timestamp) -> Option<Duration> {
    let made = pod.creation_timestamp()?.0;
    let age = Duration::try_from(now.duration_since(made)).unwrap_or_default();
    FAILED_POD_RETENTION
        .checked_sub(age)
        .filter(|left| !left.is_zero())
}

/// The counts, and the time until a pod becomes available.
fn status(
    facts: &Facts<'_>,
    spec: &DaemonSetSpec,
    pods_by_node: &[NodePods<'_>],
    hash: &str,
) -> (DaemonSetStatus, Option<Duration>) {
    let set = facts.set;
    let former = set.status.clone().unwrap_or_default();
    let min_ready = spec.min_ready_seconds.unwrap_or(0);
    let (mut ready, mut available, mut updated, mut requeue_after) = (0, 0, 0, None);
    let wanted: Vec<_> = pods_by_node
        .iter()
        .filter(|node_pods| node_pods.should_run)
        .collect();
    for pod in wanted.iter().filter_map(|node_pods| node_pods.pods.first()) {
        ready += i32::from(is_ready(pod));
        updated += i32::from(is_of(pod, hash));
        available += i32::from(is_available(pod, min_ready, facts.now).is_ok());
    }
    // A second pod of a node advances the rollout, too.
    for pod in wanted.iter().flat_map(|node_pods| &node_pods.pods) {
        let left = is_available(pod, min_ready, facts.now).err();
        requeue_after = [requeue_after, left.flatten()].into_iter().flatten().min();
    }
    let has_pods = |node_pods: &&&NodePods<'_>| !node_pods.pods.is_empty();
    let misscheduled = pods_by_node
        .iter()
        .filter(|node_pods| !node_pods.should_run);
    let status = DaemonSetStatus {
        observed_generation: set.metadata.generation,
        desired_number_scheduled: to_i32(wanted.len()),
        current_number_scheduled: to_i32(wanted.iter().filter(has_pods).count()),
        number_misscheduled: to_i32(
            misscheduled
                .filter(|node_pods| !node_pods.pods.is_empty())
                .count(),
        ),
        number_ready: ready,
        number_available: nonzero(available),
        number_unavailable: nonzero(to_i32(wanted.len()) - available),
        updated_number_scheduled: nonzero(updated),
        collision_count: former.collision_count,
        conditions: former.conditions,
    };
    (status, requeue_after)
}
