//! What a Job does next. Pure.

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
use neap_kit::{event::Note, wiring::ECHO};

use super::{
    count::{Count, count, is_tracked},
    pods::moves,
    verdict::{Verdict, deadline, finished_at, say, totals, verdict},
};
use crate::workload::claim;

/// What is known.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    pub(super) job: &'a Job,
    /// The pods of its namespace that are its own or nobody's.
    pub(super) pods: Vec<&'a Pod>,
    /// In whole seconds, since the API keeps no fractions.
    pub(super) now: Timestamp,
}

/// What is to be done, in this order.
#[derive(Debug, Default)]
pub(super) struct Decision<'a> {
    pub(super) adopt: Vec<&'a Pod>,
    pub(super) release: Vec<&'a Pod>,
    pub(super) status: JobStatus,
    pub(super) notes: Vec<Note>,
    /// To lose their finalizers, once the status is written.
    pub(super) free: Vec<&'a Pod>,
    pub(super) delete: Vec<&'a Pod>,
    pub(super) create: Vec<Pod>,
    /// The Job itself goes.
    pub(super) remove: bool,
    pub(super) again: Option<Duration>,
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
        return finished(spec, status, &own, over, now);
    }
    let mut decision = Decision {
        adopt: claims.adopt,
        release: claims.release,
        ..Decision::default()
    };
    pause_or_resume(spec, &mut status, &mut decision.notes, now);
    let count = count(spec, &own, &mut status);
    decision.free.clone_from(&count.counted);
    match verdict(spec, &status, &count, now) {
        Some(verdict) => end(&verdict, &count, &mut status, &mut decision, now),
        None if !leaving => go_on(job, spec, &count, &status, &mut decision, now),
        None => {}
    }
    decision.status = status;
    decision
}

/// A Job that is over stays for as long as it asks to.
fn finished<'a>(
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
    // It is seen until the watch says that it is gone, and asked to go once is enough.
    Decision {
        status,
        free: tracked.collect(),
        remove,
        again: if remove { Some(ECHO) } else { left },
        ..Decision::default()
    }
}

fn pause_or_resume(spec: &JobSpec, status: &mut JobStatus, notes: &mut Vec<Note>, now: Timestamp) {
    if spec.suspend == Some(true) {
        status.start_time = None;
        if say(
            status,
            ("Suspended", true),
            ("JobSuspended", "Job suspended"),
            now,
        ) {
            notes.push(Note::normal("Suspended", "Job suspended"));
        }
        return;
    }
    let conditions = status.conditions.iter().flatten();
    let known = conditions
        .into_iter()
        .any(|known| known.type_ == "Suspended");
    if known
        && say(
            status,
            ("Suspended", false),
            ("JobResumed", "Job resumed"),
            now,
        )
    {
        notes.push(Note::normal("Resumed", "Job resumed"));
    }
    status.start_time.get_or_insert(Time(now));
}

/// Ends what still runs; when nothing does and all is counted, the Job is over.
fn end<'a>(
    verdict: &Verdict,
    count: &Count<'a>,
    status: &mut JobStatus,
    decision: &mut Decision<'a>,
    now: Timestamp,
) {
    let (decided, over) = if verdict.well {
        ("SuccessCriteriaMet", "Complete")
    } else {
        ("FailureTarget", "Failed")
    };
    let why = (verdict.reason.as_str(), verdict.message.as_str());
    say(status, (decided, true), why, now);
    decision.delete.clone_from(&count.active);
    if verdict.well {
        // Whoever is no longer needed has not failed, and is not to be counted.
        decision.free.extend(&count.active);
    }
    let named = status.uncounted_terminated_pods.clone().unwrap_or_default();
    let all_counted = named.succeeded.is_none() && named.failed.is_none();
    let quiet = count.active.is_empty() && count.terminating.is_empty();
    if !(quiet && all_counted && count.counted.is_empty()) {
        return;
    }
    say(status, (over, true), why, now);
    if verdict.well {
        status.completion_time = Some(Time(now));
        decision
            .notes
            .push(Note::normal("Completed", "Job completed"));
    } else {
        let reason = told(&verdict.reason);
        decision
            .notes
            .push(Note::warning(reason, verdict.message.clone()));
    }
}

/// The reasons that are part of the API.
fn told(reason: &str) -> &'static str {
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

fn go_on<'a>(
    job: &Job,
    spec: &JobSpec,
    count: &Count<'a>,
    status: &JobStatus,
    decision: &mut Decision<'a>,
    now: Timestamp,
) {
    let late = deadline(spec, status).map(|end| Duration::try_from(end.duration_since(now)));
    decision.again = late.and_then(Result::ok);
    if spec.suspend == Some(true) {
        // Whoever is sent away has not failed, and is not to be counted.
        decision.free.extend(&count.active);
        decision.delete.clone_from(&count.active);
        return;
    }
    let (succeeded, _) = totals(status);
    let moves = moves(job, spec, count, succeeded, now);
    decision.free.extend(&moves.delete);
    decision.delete = moves.delete;
    decision.create = moves.create;
    let again = [decision.again, moves.again].into_iter().flatten();
    decision.again = again.min();
}
