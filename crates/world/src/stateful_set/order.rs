//! Who comes and who goes, one after the other or all at once.

use std::{ops::Range, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::{StatefulSet, StatefulSetSpec},
    core::v1::Pod,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;

use super::identity;
use crate::workload::{Round, has_ended, is_available, is_running, share};

/// What is done next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Step<'a> {
    /// There is no pod with this number.
    Make(i32),
    /// It has run to its end, and is made anew once it is gone.
    Renew(&'a Pod),
    /// It is of a former template.
    Replace(&'a Pod),
    /// It is one too many.
    Drop(&'a Pod),
}

/// The pods of a set by their numbers.
#[derive(Debug)]
pub(super) struct Places<'a> {
    /// The numbers that there shall be.
    pub(super) wanted: Vec<(i32, Option<&'a Pod>)>,
    /// The others, the highest first.
    pub(super) surplus: Vec<&'a Pod>,
}

impl<'a> Places<'a> {
    pub(super) fn sort(set: &StatefulSet, spec: &StatefulSetSpec, pods: &[&'a Pod]) -> Self {
        let all = numbers(spec);
        let set_name = set.name_any();
        let mut numbered: Vec<(i32, &Pod)> = pods
            .iter()
            .filter_map(|pod| Some((identity::number(&set_name, pod)?, *pod)))
            .collect();
        numbered.sort_by_key(|(number, _)| *number);
        let find = |number| {
            let place = numbered.binary_search_by_key(&number, |(number, _)| *number);
            place.ok().map(|place| numbered[place].1)
        };
        let surplus = numbered.iter().rev();
        let surplus = surplus.filter(|(number, _)| !all.contains(number));
        let surplus = surplus.map(|(_, pod)| *pod).collect();
        Self {
            wanted: all.map(|number| (number, find(number))).collect(),
            surplus,
        }
    }
}

/// The numbers that there shall be. Where the highest that can be written comes first, there is
/// room for fewer than were asked for.
pub(super) fn numbers(spec: &StatefulSetSpec) -> Range<i32> {
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

/// The number from which on pods get the present template.
pub(super) fn partition(spec: &StatefulSetSpec) -> i32 {
    let strategy = spec.update_strategy.as_ref();
    let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
    let partition = rolling.and_then(|rolling| rolling.partition).unwrap_or(0);
    first(spec).saturating_add(partition)
}

fn most_unavailable(spec: &StatefulSetSpec) -> i32 {
    let strategy = spec.update_strategy.as_ref();
    let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
    let most = rolling.and_then(|rolling| rolling.max_unavailable.clone());
    let most = most.unwrap_or(IntOrString::Int(1));
    share(&most, spec.replicas.unwrap_or(1), Round::Up).max(1)
}

/// Finds the next steps.
#[derive(Debug)]
pub(super) struct Walk<'f, 'a> {
    pub(super) spec: &'f StatefulSetSpec,
    pub(super) places: &'f Places<'a>,
    /// The name of the revision that pods shall have.
    pub(super) latest: &'f str,
    pub(super) now: Timestamp,
    pub(super) steps: Vec<Step<'a>>,
    /// A pod becomes available then, though nothing is written.
    pub(super) again: Option<Duration>,
}

/// There is something to wait for before anything else is done.
struct Halt;

impl Walk<'_, '_> {
    pub(super) fn go(&mut self) {
        let ordered = self.spec.pod_management_policy.as_deref() != Some("Parallel");
        if self.come(ordered).is_ok() && self.leave(ordered).is_ok() && !is_on_delete(self.spec) {
            self.renew();
        }
    }

    fn come(&mut self, ordered: bool) -> Result<(), Halt> {
        for &(number, pod) in &self.places.wanted {
            let waits = match pod {
                None => {
                    self.steps.push(Step::Make(number));
                    true
                }
                Some(pod) if has_ended(pod) => {
                    if pod.metadata.deletion_timestamp.is_none() {
                        self.steps.push(Step::Renew(pod));
                    }
                    true
                }
                Some(pod) => !self.is_well(pod),
            };
            if waits && ordered {
                return Err(Halt);
            }
        }
        Ok(())
    }

    fn leave(&mut self, ordered: bool) -> Result<(), Halt> {
        let all = self.places.wanted.iter().filter_map(|(_, pod)| *pod);
        let mut lowest_first = all.chain(self.places.surplus.iter().rev().copied());
        let first_unwell = lowest_first.find(|pod| self.wellness(pod).is_err());
        let first_unwell = first_unwell.map(ResourceExt::name_any);
        for &pod in &self.places.surplus {
            if pod.metadata.deletion_timestamp.is_some() {
                if ordered {
                    return Err(Halt);
                }
                continue;
            }
            // One that is not well stands in nobody's way but its own.
            let is_first = first_unwell.as_ref() == pod.metadata.name.as_ref();
            if ordered && !self.is_well(pod) && !is_first {
                return Err(Halt);
            }
            self.steps.push(Step::Drop(pod));
            if ordered {
                return Err(Halt);
            }
        }
        Ok(())
    }

    /// Replaces pods of former templates, from the highest number down, as many at a time as may be
    /// unavailable.
    fn renew(&mut self) {
        let lowest = partition(self.spec);
        let mut may_miss = most_unavailable(self.spec);
        for &(number, pod) in self.places.wanted.iter().rev() {
            if number < lowest || may_miss <= 0 {
                return;
            }
            let Some(pod) = pod else {
                may_miss -= 1;
                continue;
            };
            let is_leaving = pod.metadata.deletion_timestamp.is_some();
            let is_old = identity::revision(pod) != Some(self.latest);
            if is_old && !is_leaving && !has_ended(pod) {
                self.steps.push(Step::Replace(pod));
                may_miss -= 1;
            } else if !self.is_well(pod) {
                may_miss -= 1;
            }
        }
    }

    /// Whether it runs, stays, and has been ready for long enough; otherwise when it may be.
    fn wellness(&self, pod: &Pod) -> Result<(), Option<Duration>> {
        if pod.metadata.deletion_timestamp.is_some() || !is_running(pod) {
            return Err(None);
        }
        let seconds = self.spec.min_ready_seconds.unwrap_or(0);
        is_available(pod, seconds, self.now)
    }

    fn is_well(&mut self, pod: &Pod) -> bool {
        let wellness = self.wellness(pod);
        if let Err(left) = wellness {
            self.again = [self.again, left].into_iter().flatten().min();
        }
        wellness.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::StatefulSetOrdinals;

    use super::*;

    #[test]
    fn numbers_end_where_no_more_can_be_written() {
        let numbers = |start: i32, replicas: i32| {
            numbers(&StatefulSetSpec {
                ordinals: Some(StatefulSetOrdinals { start: Some(start) }),
                replicas: Some(replicas),
                ..StatefulSetSpec::default()
            })
        };
        assert_eq!(numbers(3, 2), 3..5);
        assert_eq!(numbers(i32::MAX, 2).count(), 0);
        assert_eq!(numbers(i32::MAX - 1, 2).count(), 1);
    }
}
