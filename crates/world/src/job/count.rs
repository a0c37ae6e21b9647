//! Counts pods that ended, each once.

use std::collections::BTreeSet;

use k8s_openapi::api::{
    batch::v1::{JobSpec, JobStatus, UncountedTerminatedPods},
    core::v1::Pod,
};
use kube::ResourceExt;
use neap_kit::planted;

use super::{
    indexes::{self, Indexes},
    policy::{Meaning, meaning},
};
use crate::workload::{is_active, is_ready, phase, some, whole};

/// On a pod until it is counted.
pub(super) const TRACKING: &str = "batch.kubernetes.io/job-tracking";
/// Which of its Job's parts a pod does.
pub(super) const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// How often its part had failed before.
pub(super) const FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";

/// How the pods of a Job are.
#[derive(Debug, Default)]
pub(super) struct Count<'a> {
    pub(super) active: Vec<&'a Pod>,
    /// On their way out.
    pub(super) terminating: Vec<&'a Pod>,
    /// Those that failed and are still there.
    pub(super) failures: Vec<&'a Pod>,
    pub(super) successes: Vec<&'a Pod>,
    /// Whose finalizers can go once the status is written.
    pub(super) counted: Vec<&'a Pod>,
    pub(super) completed: Indexes,
    pub(super) failed: Indexes,
    /// The Job has failed by a rule of its own.
    pub(super) failed_by_rule: Option<String>,
}

/// Counts `pods` into `status`.
pub(super) fn count<'a>(spec: &JobSpec, pods: &[&'a Pod], status: &mut JobStatus) -> Count<'a> {
    let completions = spec.completions.unwrap_or(0);
    let read =
        |text: &Option<String>| indexes::parse(text.as_deref().unwrap_or_default(), completions);
    let mut count = Count {
        completed: read(&status.completed_indexes),
        failed: read(&status.failed_indexes),
        ..Count::default()
    };
    let mut uncounted = settle(pods, status);
    for &pod in pods {
        sort(spec, pod, &mut count);
        if is_tracked(pod) && has_ended(spec, pod) {
            name(spec, pod, &mut count, &mut uncounted);
            count.counted.push(pod);
        }
    }
    write(spec, &count, uncounted, status);
    count
}

/// Those that are named and have no finalizer any more become numbers; the others stay named.
fn settle(pods: &[&Pod], status: &mut JobStatus) -> UncountedTerminatedPods {
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
        let more = number.unwrap_or(0) + whole(go.len());
        *number = some(more);
        Some(stay).filter(|stay| !stay.is_empty())
    };
    UncountedTerminatedPods {
        succeeded: sort(named.succeeded, &mut status.succeeded),
        failed: sort(named.failed, &mut status.failed),
    }
}

fn sort<'a>(spec: &JobSpec, pod: &'a Pod, count: &mut Count<'a>) {
    if is_active(pod) {
        count.active.push(pod);
    } else if phase(pod) == "Succeeded" {
        count.successes.push(pod);
    } else {
        if phase(pod) != "Failed" {
            count.terminating.push(pod);
        }
        // One that was taken away by us has no finalizer while it goes, and has not failed.
        if has_ended(spec, pod) && (phase(pod) == "Failed" || is_tracked(pod)) {
            count.failures.push(pod);
        }
    }
}

/// Names a pod that ended, if it is not named yet.
fn name(spec: &JobSpec, pod: &Pod, count: &mut Count<'_>, uncounted: &mut UncountedTerminatedPods) {
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
    let meaning = meaning(spec, pod);
    let limit = spec.backoff_limit_per_index.filter(|_| is_indexed(spec));
    let index_fails = limit.is_some_and(|limit| {
        meaning == Meaning::FailIndex || (meaning == Meaning::Count && failures(pod) >= limit)
    });
    if let Some(index) = index.filter(|_| index_fails) {
        count.failed.insert(index);
    }
    match meaning {
        Meaning::Ignore => {}
        Meaning::Count | Meaning::FailIndex => add(&mut uncounted.failed),
        Meaning::FailJob(why) => {
            add(&mut uncounted.failed);
            count.failed_by_rule.get_or_insert(why);
        }
    }
}

fn write(
    spec: &JobSpec,
    count: &Count<'_>,
    uncounted: UncountedTerminatedPods,
    status: &mut JobStatus,
) {
    if is_indexed(spec) {
        status.succeeded = some(whole(count.completed.len()));
        let completed = indexes::format(&count.completed);
        status.completed_indexes = Some(completed).filter(|text| !text.is_empty());
        let limited = spec.backoff_limit_per_index.is_some();
        status.failed_indexes = limited.then(|| indexes::format(&count.failed));
    }
    let ready = count.active.iter().filter(|pod| is_ready(pod)).count();
    status.active = some(whole(count.active.len()));
    status.ready = Some(whole(ready));
    status.terminating = Some(whole(count.terminating.len()));
    status.uncounted_terminated_pods = Some(uncounted);
}

/// Whether it is over for the Job: a pod that was told to go counts as failed at once, unless the
/// Job replaces only those that have.
fn has_ended(spec: &JobSpec, pod: &Pod) -> bool {
    let waits = spec.pod_replacement_policy.as_deref() == Some("Failed");
    let leaves = pod.metadata.deletion_timestamp.is_some();
    matches!(phase(pod), "Succeeded" | "Failed") || (leaves && !waits)
}

pub(super) fn is_tracked(pod: &Pod) -> bool {
    pod.finalizers()
        .iter()
        .any(|finalizer| finalizer == TRACKING)
}

pub(super) fn is_indexed(spec: &JobSpec) -> bool {
    spec.completion_mode.as_deref() == Some("Indexed")
}

pub(super) fn index_of(pod: &Pod) -> Option<i32> {
    let index = pod.annotations().get(INDEX)?.parse().ok()?;
    Some(index).filter(|&index| index >= 0)
}

/// How often the part of a pod had failed before.
pub(super) fn failures(pod: &Pod) -> i32 {
    let count = pod.annotations().get(FAILURES);
    count.and_then(|count| count.parse().ok()).unwrap_or(0)
}
