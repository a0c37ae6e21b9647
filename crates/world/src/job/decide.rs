//! The next step of a Job. Pure.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::{
    api::{
        batch::v1::{Job, JobSpec, JobStatus},
        core::v1::Pod,
    },
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::ResourceExt;
use neap_kit::{builder::OWN_WRITE_TIMEOUT, event::EventDraft};

use super::{
    count::{PodCounts, count, is_tracked},
    pods::pod_changes,
    result::{JobResult, deadline, finished_at, job_result, set_condition, totals},
};
use crate::workload::claim;

#[derive(Debug)]
pub(super) struct Facts<'a> {
    pub(super) job: &'a Job,
    /// The pods of its namespace that it controls, and the orphans.
    pub(super) pods: Vec<&'a Pod>,
    /// In whole seconds, since the API stores no fractions.
    pub(super) now: Timestamp,
}

/// The actions, executed in this order.
#[derive(Debug, Default)]
pub(super) struct Decision<'a> {
    pub(super) adopt: Vec<&'a Pod>,
    pub(super) release: Vec<&'a Pod>,
    pub(super) status: JobStatus,
    pub(super) events: Vec<EventDraft>,
    /// Pods whose finalizers are removed once the status is written.
    pub(super) untrack: Vec<&'a Pod>,
    pub(super) delete: Vec<&'a Pod>,
    pub(super) create: Vec<Pod>,
    /// Whether the Job itself is deleted.
    pub(super) remove: bool,
    pub(super) requeue_after: Option<Duration>,
}

pub(super) fn decide<'a>(facts: &Facts<'a>) -> Decision<'a> {
    let (job, now) = (facts.job, facts.now);
    let mut status = job.status.clone().unwrap_or_default();
    let (Some(spec), Some(selector)) = (
        &job.spec,
        job.spec.as_ref().and_then(|spec| spec.selector.as_ref()),
    ) else {
        return Decision {
            status,
            ..Decision::default()
        };
    };
    let leaving = job.metadata.deletion_timestamp.is_some();
    let over = finished_at(job);
    let uid = job.uid().unwrap_or_default();
    let claims = claim(&facts.pods, &uid, selector, leaving || over.is_some());
    let mut own = claims.owned;
    own.extend(&claims.adopt);
    if let Some(over) = over {
        return finished_decision(spec, status, &own, over, now);
    }
    let mut decision = Decision {
        adopt: claims.adopt,
        release: claims.release,
        ..Decision::default()
    };
    pause_or_resume(spec, &mut status, &mut decision.events, now);
    let count = count(spec, &own, &mut status);
    decision.untrack.clone_from(&count.counted);
    match job_result(spec, &status, &count, now) {
        Some(job_result) => finish(&job_result, &count, &mut status, &mut decision, now),
        None if !leaving => manage_pods(job, spec, &count, &status, &mut decision, now),
        None => {}
    }
    decision.status = status;
    decision
}

/// A finished Job remains until its TTL has passed.
fn finished_decision<'a>(
    spec: &JobSpec,
    status: JobStatus,
    own: &[&'a Pod],
    over: Timestamp,
    now: Timestamp,
) -> Decision<'a> {
    let tracked = own.iter().copied().filter(|pod| is_tracked(pod));
    let ttl = spec.ttl_seconds_after_finished.map(i64::from);
    let end = ttl.and_then(|ttl| Timestamp::from_second(over.as_second().saturating_add(ttl)).ok());
    let left = end.map(|end| Duration::try_from(end.duration_since(now)).unwrap_or_default());
    let remove = left.is_some_and(|left| left.is_zero());
    // The Job stays in the cache until the watch reports its deletion; one delete is enough.
    Decision {
        status,
        untrack: tracked.collect(),
        remove,
        requeue_after: if remove {
            Some(OWN_WRITE_TIMEOUT)
        } else {
            left
        },
        ..Decision::default()
    }
}

fn pause_or_resume(
    spec: &JobSpec,
    status: &mut JobStatus,
    events: &mut Vec<EventDraft>,
    now: Timestamp,
) {
    if spec.suspend == Some(true) {
        status.start_time = None;
        if set_condition(
            status,
            ("Suspended", true),
            ("JobSuspended", "Job suspended"),
            now,
        ) {
            events.push(EventDraft::normal("Suspended", "Job suspended"));
        }
        return;
    }
    let conditions = status.conditions.iter().flatten();
    let was_suspended = conditions
        .into_iter()
        .any(|condition| condition.type_ == "Suspended");
    if was_suspended
        && set_condition(
            status,
            ("Suspended", false),
            ("JobResumed", "Job resumed"),
            now,
        )
    {
        events.push(EventDraft::normal("Resumed", "Job resumed"));
    }
    status.start_time.get_or_insert(Time(now));
}

/// Deletes the pods that still run; once none does and all are counted, the Job is finished.
fn finish<'a>(
    job_result: &JobResult,
    count: &PodCounts<'a>,
    status: &mut JobStatus,
    decision: &mut Decision<'a>,
    now: Timestamp,
) {
    let (decided, over) = if job_result.succeeded {
        ("SuccessCriteriaMet", "Complete")
    } else {
        ("FailureTarget", "Failed")
    };
    let why = (job_result.reason.as_str(), job_result.message.as_str());
    set_condition(status, (decided, true), why, now);
    decision.delete.clone_from(&count.active);
    if job_result.succeeded {
        // Pods that are no longer needed have not failed, and must not be counted.
        decision.untrack.extend(&count.active);
    }
    let named = status.uncounted_terminated_pods.clone().unwrap_or_default();
    let all_counted = named.succeeded.is_none() && named.failed.is_none();
    let idle = count.active.is_empty() && count.terminating.is_empty();
    if !(idle && all_counted && count.counted.is_empty()) {
        return;
    }
    set_condition(status, (over, true), why, now);
    if job_result.succeeded {
        status.completion_time = Some(Time(now));
        decision
            .events
            .push(EventDraft::normal("Completed", "Job completed"));
    } else {
        let reason = event_reason(&job_result.reason);
        decision
            .events
            .push(EventDraft::warning(reason, job_result.message.clone()));
    }
}

/// The Event reason of a failure: the reasons of the API, or `Failed`.
fn event_reason(reason: &str) -> &'static str {
    const KNOWN: [&str; 5] = [
        "BackoffLimitExceeded",
        "DeadlineExceeded",
        "FailedIndexes",
        "MaxFailedIndexesExceeded",
        "PodFailurePolicy",
    ];
    let known = KNOWN.into_iter().find(|known| *known == reason);
    known.unwrap_or("Failed")
}

fn manage_pods<'a>(
    job: &Job,
    spec: &JobSpec,
    count: &PodCounts<'a>,
    status: &JobStatus,
    decision: &mut Decision<'a>,
    now: Timestamp,
) {
    let late = deadline(spec, status).map(|end| Duration::try_from(end.duration_since(now)));
    decision.requeue_after = late.and_then(Result::ok);
    if spec.suspend == Some(true) {
        // Pods deleted by suspension have not failed, and must not be counted.
        decision.untrack.extend(&count.active);
        decision.delete.clone_from(&count.active);
        return;
    }
    let (succeeded, _) = totals(status);
    let pod_changes = pod_changes(job, spec, count, succeeded, now);
    decision.untrack.extend(&pod_changes.delete);
    decision.delete = pod_changes.delete;
    decision.create = pod_changes.create;
    let requeue_after = [decision.requeue_after, pod_changes.requeue_after]
        .into_iter()
        .flatten();
    decision.requeue_after = requeue_after.min();
}
