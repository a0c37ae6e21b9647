//! Which pods are created and deleted next, in order or in parallel.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::{StatefulSet, StatefulSetSpec},
    core::v1::Pod,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;

use super::identity;
use crate::workload::{Round, has_ended, is_available, is_running, scaled_value, to_i32};

/// The maximum number of pods created, replaced or deleted in one reconcile. The watch reports each of them,
/// and the reconcile that follows continues.
pub(super) const BURST_REPLICAS: usize = 100;

/// A create or delete that is due.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum PodStep<'a> {
    /// There is no pod with this ordinal.
    Create(i32),
    /// The pod has ended; it is created again once it is gone.
    Recreate(&'a Pod),
    /// The pod is of a former template.
    Replace(&'a Pod),
    /// The pod is beyond the replica count.
    ScaleDown(&'a Pod),
}

/// The pods of a set by their ordinals.
#[derive(Debug)]
pub(super) struct PodsByOrdinal<'a> {
    /// The desired ordinals of [`ordinals_in_view`], each with its pod if there is one.
    pub(super) wanted: Vec<(i32, Option<&'a Pod>)>,
    /// The number of desired ordinals beyond these, all without a pod.
    pub(super) unseen: usize,
    /// Pods with other ordinals, the highest first.
    pub(super) surplus: Vec<&'a Pod>,
}

impl<'a> PodsByOrdinal<'a> {
    pub(super) fn classify(set: &StatefulSet, spec: &StatefulSetSpec, pods: &[&'a Pod]) -> Self {
        let all = ordinals(spec);
        let set_name = set.name_any();
        let numbered: BTreeMap<i32, &Pod> = pods
            .iter()
            .filter_map(|pod| Some((identity::ordinal(&set_name, pod)?, *pod)))
            .collect();
        let wanted: Vec<_> = ordinals_in_view(spec, &numbered.keys().copied().collect())
            .into_iter()
            .map(|ordinal| (ordinal, numbered.get(&ordinal).copied()))
            .collect();
        let surplus = numbered.iter().rev();
        let surplus = surplus.filter(|(ordinal, _)| !all.contains(*ordinal));
        Self {
            unseen: all.len() - wanted.len(),
            wanted,
            surplus: surplus.map(|(_, pod)| *pod).collect(),
        }
    }
}

/// The desired ordinals that a reconcile looks at: all that have a pod, and the first of those that have
/// none. A set may ask for two thousand million of the latter.
pub(super) fn ordinals_in_view(spec: &StatefulSetSpec, existing: &BTreeSet<i32>) -> BTreeSet<i32> {
    let all = ordinals(spec);
    let missing = all.clone().filter(|ordinal| !existing.contains(ordinal));
    let mut view: BTreeSet<i32> = missing.take(BURST_REPLICAS).collect();
    view.extend(existing.iter().filter(|&ordinal| all.contains(ordinal)));
    view
}

/// The desired ordinals. The range ends at the largest `int32`, even if more replicas are
/// specified.
pub(super) fn ordinals(spec: &StatefulSetSpec) -> Range<i32> {
    let first = first(spec);
    first..first.saturating_add(spec.replicas.unwrap_or(1))
}

fn first(spec: &StatefulSetSpec) -> i32 {
    spec.ordinals
        .as_ref()
        .and_then(|ordinals| ordinals.start)
        .unwrap_or(0)
}

pub(super) fn is_on_delete(spec: &StatefulSetSpec) -> bool {
    let strategy = spec.update_strategy.as_ref();
    strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("OnDelete")
}

/// The ordinal from which on pods get the current template.
pub(super) fn partition(spec: &StatefulSetSpec) -> i32 {
    let strategy = spec.update_strategy.as_ref();
    let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
    let partition = rolling.and_then(|rolling| rolling.partition).unwrap_or(0);
    first(spec).saturating_add(partition)
}

fn max_unavailable(spec: &StatefulSetSpec) -> i32 {
    let strategy = spec.update_strategy.as_ref();
    let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
    let most = rolling.and_then(|rolling| rolling.max_unavailable.clone());
    let most = most.unwrap_or(IntOrString::Int(1));
    scaled_value(&most, spec.replicas.unwrap_or(1), Round::Up).max(1)
}

/// Finds the steps that are due.
#[derive(Debug)]
pub(super) struct StepPlanner<'f, 'a> {
    pub(super) spec: &'f StatefulSetSpec,
    pub(super) pods: &'f PodsByOrdinal<'a>,
    /// The name of the revision of the current template.
    pub(super) latest: &'f str,
    pub(super) now: Timestamp,
    pub(super) steps: Vec<PodStep<'a>>,
    /// The time until a pod becomes available, which no watch reports.
    pub(super) requeue_after: Option<Duration>,
}

/// Nothing more may be done until something changes.
struct MustWait;

impl StepPlanner<'_, '_> {
    pub(super) fn plan(&mut self) {
        let ordered = self.spec.pod_management_policy.as_deref() != Some("Parallel");
        if self.create_or_recreate(ordered).is_ok()
            && self.scale_down(ordered).is_ok()
            && !is_on_delete(self.spec)
        {
            self.roll_out();
        }
        self.steps.truncate(BURST_REPLICAS);
    }

    fn create_or_recreate(&mut self, ordered: bool) -> Result<(), MustWait> {
        for &(ordinal, pod) in &self.pods.wanted {
            let waits = match pod {
                None => {
                    self.steps.push(PodStep::Create(ordinal));
                    true
                }
                Some(pod) if has_ended(pod) => {
                    if pod.metadata.deletion_timestamp.is_none() {
                        self.steps.push(PodStep::Recreate(pod));
                    }
                    true
                }
                Some(pod) => !self.check_available(pod),
            };
            if waits && ordered {
                return Err(MustWait);
            }
        }
        Ok(())
    }

    fn scale_down(&mut self, ordered: bool) -> Result<(), MustWait> {
        let all = self.pods.wanted.iter().filter_map(|(_, pod)| *pod);
        let mut lowest_first = all.chain(self.pods.surplus.iter().rev().copied());
        let first_unavailable = lowest_first.find(|pod| self.availability(pod).is_err());
        let first_unavailable = first_unavailable.map(ResourceExt::name_any);
        for &pod in &self.pods.surplus {
            if pod.metadata.deletion_timestamp.is_some() {
                if ordered {
                    return Err(MustWait);
                }
                continue;
            }
            // An unavailable pod blocks the deletion of other pods, not its own.
            let is_first = first_unavailable.as_ref() == pod.metadata.name.as_ref();
            if ordered && !self.check_available(pod) && !is_first {
                return Err(MustWait);
            }
            self.steps.push(PodStep::ScaleDown(pod));
            if ordered {
                return Err(MustWait);
            }
        }
        Ok(())
    }

    /// Replaces pods of former templates, from the highest ordinal down, as many at a time as may
    /// be unavailable.
    fn roll_out(&mut self) {
        let lowest = partition(self.spec);
        let unseen = to_i32(self.pods.unseen);
        let mut may_miss = max_unavailable(self.spec).saturating_sub(unseen);
        for &(ordinal, pod) in self.pods.wanted.iter().rev() {
            if ordinal < lowest || may_miss <= 0 {
                return;
            }
            let Some(pod) = pod else {
                may_miss -= 1;
                continue;
            };
            let is_leaving = pod.metadata.deletion_timestamp.is_some();
            let is_old = identity::revision(pod) != Some(self.latest);
            if is_old && !is_leaving && !has_ended(pod) {
                self.steps.push(PodStep::Replace(pod));
                may_miss -= 1;
            } else if !self.check_available(pod) {
                may_miss -= 1;
            }
        }
    }

    /// Succeeds if the pod runs, is not being deleted, and has been ready for long enough;
    /// otherwise fails with the remaining time, if it is known.
    fn availability(&self, pod: &Pod) -> Result<(), Option<Duration>> {
        if pod.metadata.deletion_timestamp.is_some() || !is_running(pod) {
            return Err(None);
        }
        let seconds = self.spec.min_ready_seconds.unwrap_or(0);
        is_available(pod, seconds, self.now)
    }

    fn check_available(&mut self, pod: &Pod) -> bool {
        let availability = self.availability(pod);
        if let Err(left) = availability {
            self.requeue_after = [self.requeue_after, left].into_iter().flatten().min();
        }
        availability.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::StatefulSetOrdinals;

    use super::*;

    #[test]
    fn ordinals_end_at_the_largest_int32() {
        let ordinals = |start: i32, replicas: i32| {
            ordinals(&StatefulSetSpec {
                ordinals: Some(StatefulSetOrdinals { start: Some(start) }),
                replicas: Some(replicas),
                ..StatefulSetSpec::default()
            })
        };
        assert_eq!(ordinals(3, 2), 3..5);
        assert_eq!(ordinals(i32::MAX, 2).count(), 0);
        assert_eq!(ordinals(i32::MAX - 1, 2).count(), 1);
    }

    #[test]
    fn a_reconcile_looks_at_existing_pods_and_at_the_first_ordinals_without_one() {
        let view = |replicas: i32, existing: &[i32]| {
            let spec = StatefulSetSpec {
                replicas: Some(replicas),
                ..StatefulSetSpec::default()
            };
            ordinals_in_view(&spec, &existing.iter().copied().collect())
        };
        assert_eq!(view(3, &[1, 7]), BTreeSet::from([0, 1, 2]));
        let existing = [0, 2, 1_000_000];
        let all = view(i32::MAX, &existing);
        assert_eq!(all.len(), BURST_REPLICAS + existing.len());
        assert!(existing.iter().all(|ordinal| all.contains(ordinal)));
        assert!(all.contains(&101) && !all.contains(&102));
        assert_eq!(view(-1, &[0]), BTreeSet::new());
    }
}
