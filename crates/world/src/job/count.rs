//! Counts the pods that ended, each once.

use std::collections::BTreeSet;

use k8s_openapi::api::{
    batch::v1::{JobSpec, JobStatus, UncountedTerminatedPods},
    core::v1::Pod,
};
use kube::ResourceExt;
use neap_kit::planted;

use super::{
    failure_policy::{FailureAction, failure_action},
    indexes::{self, Indexes},
};
use crate::workload::{is_active, is_ready, nonzero, phase, to_i32};

/// The finalizer of a pod until it is counted.
pub(super) const TRACKING_FINALIZER: &str = "batch.kubernetes.io/job-tracking";
/// The completion index of a pod.
pub(super) const COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// How often the index of a pod had failed before.
pub(super) const INDEX_FAILURE_COUNT: &str = "batch.kubernetes.io/job-index-failure-count";

/// The pods of a Job by their state.
#[derive(Debug, Default)]
pub(super) struct PodCounts<'a> {
    pub(super) active: Vec<&'a Pod>,
    /// Being deleted.
    pub(super) terminating: Vec<&'a Pod>,
    /// Failed pods that still exist.
    pub(super) failures: Vec<&'a Pod>,
    pub(super) successes: Vec<&'a Pod>,
    /// Pods whose finalizers are removed once the status is written.
    pub(super) counted: Vec<&'a Pod>,
    pub(super) completed: Indexes,
    pub(super) failed: Indexes,
    /// The message of the pod failure policy rule that fails the Job.
    pub(super) failed_by_rule: Option<String>,
}

/// Counts `pods` into `status`.
pub(super) fn count<'a>(spec: &JobSpec, pods: &[&'a Pod], status: &mut JobStatus) -> PodCounts<'a> {
    let completions = spec.completions.unwrap_or(0);
    let read =
        |text: &Option<String>| indexes::parse(text.as_deref().unwrap_or_default(), completions);
    let mut count = PodCounts {
        completed: read(&status.completed_indexes),
        failed: read(&status.failed_indexes),
        ..PodCounts::default()
    };
    let mut uncounted = count_released(pods, status);
    for &pod in pods {
        classify(spec, pod, &mut count);
        if is_tracked(pod) && has_ended(spec, pod) {
            list_uncounted(spec, pod, &mut count, &mut uncounted);
            count.counted.push(pod);
        }
    }
    write(spec, &count, uncounted, status);
    count
}

/// Adds the listed pods that have no finalizer any more to the counts; the others stay listed.
fn count_released(pods: &[&Pod], status: &mut JobStatus) -> UncountedTerminatedPods {
    let tracked: BTreeSet<String> = pods
        .iter()
        .filter(|pod| is_tracked(pod))
        .filter_map(|pod| pod.uid())
        .collect();
    let named = status.uncounted_terminated_pods.take().unwrap_or_default();
    let sort = |uids: Option<Vec<String>>, number: &mut Option<i32>| {
        let uids = uids.unwrap_or_default().into_iter();
        let stays = |uid: &String| tracked.contains(uid) && !planted!(NumberedTwice);
        let (stay, go): (Vec<_>, Vec<_>) = uids.partition(stays);
        let more = number.unwrap_or(0) + to_i32(go.len());
        *number = nonzero(more);
        Some(stay).filter(|stay| !stay.is_empty())
    };
    UncountedTerminatedPods {
        succeeded: sort(named.succeeded, &mut status.succeeded),
        failed: sort(named.failed, &mut status.failed),
    }
}

fn classify<'a>(spec: &JobSpec, pod: &'a Pod, count: &mut PodCounts<'a>) {
    if is_active(pod) {
        count.active.push(pod);
    } else if phase(pod) == "Succeeded" {
        count.successes.push(pod);
    } else {
        if phase(pod) != "Failed" {
            count.terminating.push(pod);
        }
        // A pod that the controller deleted has no finalizer while it terminates, and has not
        // failed.
        if has_ended(spec, pod) && (phase(pod) == "Failed" || is_tracked(pod)) {
            count.failures.push(pod);
        }
    }
}

/// Lists the uid of a pod that ended, if it is not listed yet.
fn list_uncounted(
    spec: &JobSpec,
    pod: &Pod,
    count: &mut PodCounts<'_>,
    uncounted: &mut UncountedTerminatedPods,
) {
    let add = |uids: &mut Option<Vec<String>>| {
        let (uids, uid) = (uids.get_or_insert_default(), pod.uid().unwrap_or_default());
        if !uids.contains(&uid) || planted!(NamedTwice) {
            uids.push(uid);
        }
    };
    let index = index_of(pod).filter(|index| Some(*index) < spec.completions);
    if phase(pod) == "Succeeded" {
        match index {
            Some(index) if is_indexed(spec) => drop(count.completed.insert(index)),
            _ if is_indexed(spec) => {}
            _ => add(&mut uncounted.succeeded),
        }
        return;
    }
    let failure_action = failure_action(spec, pod);
    let limit = spec.backoff_limit_per_index.filter(|_| is_indexed(spec));
    let index_fails = limit.is_some_and(|limit| {
        failure_action == FailureAction::FailIndex
            || (failure_action == FailureAction::Count && failures(pod) >= limit)
    });
    if let Some(index) = index.filter(|_| index_fails) {
        count.failed.insert(index);
    }
    match failure_action {
        FailureAction::Ignore => {}
        FailureAction::Count | FailureAction::FailIndex => add(&mut uncounted.failed),
        FailureAction::FailJob(why) => {
            add(&mut uncounted.failed);
            count.failed_by_rule.get_or_insert(why);
        }
    }
}

fn write(
    spec: &JobSpec,
    count: &PodCounts<'_>,
    uncounted: UncountedTerminatedPods,
    status: &mut JobStatus,
) {
    if is_indexed(spec) {
        status.succeeded = nonzero(to_i32(count.completed.len()));
        let completed = indexes::format(&count.completed);
        status.completed_indexes = Some(completed).filter(|text| !text.is_empty());
        let limited = spec.backoff_limit_per_index.is_some();
        status.failed_indexes = limited.then(|| indexes::format(&count.failed));
    }
    let ready = count.active.iter().filter(|pod| is_ready(pod)).count();
    status.active = nonzero(to_i32(count.active.len()));
    status.ready = Some(to_i32(ready));
    status.terminating = Some(to_i32(count.terminating.len()));
    status.uncounted_terminated_pods = Some(uncounted);
}

/// Whether the pod counts as ended: a pod that is being deleted counts as failed at once, unless
/// the Job replaces only pods that have failed.
fn has_ended(spec: &JobSpec, pod: &Pod) -> bool {
    let waits = spec.pod_replacement_policy.as_deref() == Some("Failed");
    let leaves = pod.metadata.deletion_timestamp.is_some();
    matches!(phase(pod), "Succeeded" | "Failed") || (leaves && !waits)
}

pub(super) fn is_tracked(pod: &Pod) -> bool {
    pod.finalizers()
        .iter()
        .any(|finalizer| finalizer == TRACKING_FINALIZER)
}

pub(super) fn is_indexed(spec: &JobSpec) -> bool {
    spec.completion_mode.as_deref() == Some("Indexed")
}

pub(super) fn index_of(pod: &Pod) -> Option<i32> {
    let index = pod.annotations().get(COMPLETION_INDEX)?.parse().ok()?;
    Some(index).filter(|&index| index >= 0)
}

/// How often the index of a pod had failed before.
pub(super) fn failures(pod: &Pod) -> i32 {
    let count = pod.annotations().get(INDEX_FAILURE_COUNT);
    count.and_then(|count| count.parse().ok()).unwrap_or(0)
}
