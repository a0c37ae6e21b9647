//! Whether a Job has finished, and with which result.

use jiff::Timestamp;
use k8s_openapi::{
    api::{
        batch::v1::{Job, JobCondition, JobSpec, JobStatus},
        core::v1::Pod,
    },
    apimachinery::pkg::apis::meta::v1::Time,
};

use super::{
    count::{PodCounts, is_indexed},
    indexes,
};
use crate::workload::to_i32;

/// The decided result of a Job.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct JobResult {
    pub(super) succeeded: bool,
    pub(super) reason: String,
    pub(super) message: String,
}

fn failure(reason: &str, message: &str) -> JobResult {
    let (reason, message) = (reason.to_owned(), message.to_owned());
    JobResult {
        succeeded: false,
        reason,
        message,
    }
}

fn success(reason: &str, message: &str) -> JobResult {
    let succeeded = true;
    JobResult {
        succeeded,
        ..failure(reason, message)
    }
}

/// The result of the Job, if it is decided. A result that the status already has never changes.
pub(super) fn job_result(
    spec: &JobSpec,
    status: &JobStatus,
    count: &PodCounts<'_>,
    now: Timestamp,
) -> Option<JobResult> {
    if let Some(known) = condition(status, "FailureTarget") {
        return Some(failure(&known.0, &known.1));
    }
    if let Some(known) = condition(status, "SuccessCriteriaMet") {
        return Some(success(&known.0, &known.1));
    }
    if let Some(why) = &count.failed_by_rule {
        return Some(failure("PodFailurePolicy", why));
    }
    too_many_failures(spec, status, count)
        .or_else(|| too_late(spec, status, now))
        .or_else(|| by_policy(spec, count))
        .or_else(|| all_done(spec, status, count))
}

fn too_many_failures(
    spec: &JobSpec,
    status: &JobStatus,
    count: &PodCounts<'_>,
) -> Option<JobResult> {
    let limit = spec.backoff_limit.unwrap_or(6);
    let (_, failed) = totals(status);
    let in_place = spec
        .template
        .spec
        .as_ref()
        .and_then(|pod| pod.restart_policy.as_deref());
    let restarts: i32 = count.active.iter().map(|pod| restarts(pod)).sum();
    let restarted = in_place == Some("OnFailure") && restarts > 0 && restarts >= limit;
    if failed > limit || restarted {
        let message = "Job has reached the specified backoff limit";
        return Some(failure("BackoffLimitExceeded", message));
    }
    let limit = spec.max_failed_indexes?;
    let message = "Job has exceeded the specified maximal number of failed indexes";
    (to_i32(count.failed.len()) > limit).then(|| failure("MaxFailedIndexesExceeded", message))
}

fn restarts(pod: &Pod) -> i32 {
    let Some(status) = &pod.status else {
        return 0;
    };
    let lists = [&status.init_container_statuses, &status.container_statuses];
    let all = lists.into_iter().flat_map(|list| list.iter().flatten());
    all.map(|container| container.restart_count).sum()
}

fn too_late(spec: &JobSpec, status: &JobStatus, now: Timestamp) -> Option<JobResult> {
    let end = deadline(spec, status)?;
    let message = "Job was active longer than specified deadline";
    (now >= end).then(|| failure("DeadlineExceeded", message))
}

/// The time at which the active deadline passes.
pub(super) fn deadline(spec: &JobSpec, status: &JobStatus) -> Option<Timestamp> {
    if spec.suspend == Some(true) {
        return None;
    }
    let seconds = spec.active_deadline_seconds?;
    let start = status.start_time.as_ref()?.0;
    Timestamp::from_second(start.as_second().saturating_add(seconds)).ok()
}

/// Succeeds if a rule of the success policy is met.
fn by_policy(spec: &JobSpec, count: &PodCounts<'_>) -> Option<JobResult> {
    let rules = spec.success_policy.iter().flat_map(|policy| &policy.rules);
    let met = rules.enumerate().find(|(_, rule)| {
        let completions = spec.completions.unwrap_or(0);
        let named = rule.succeeded_indexes.as_deref();
        let named = named.map(|text| indexes::parse(text, completions));
        let done = match &named {
            Some(named) => count.completed.intersection(named).count(),
            None => count.completed.len(),
        };
        let all = named.map_or(completions, |named| to_i32(named.len()));
        to_i32(done) >= rule.succeeded_count.unwrap_or(all)
    });
    met.map(|(index, _)| success("SuccessPolicy", &format!("Matched rules at index {index}")))
}

fn all_done(spec: &JobSpec, status: &JobStatus, count: &PodCounts<'_>) -> Option<JobResult> {
    if !count.active.is_empty() {
        return None;
    }
    let (succeeded, _) = totals(status);
    if is_indexed(spec) && !count.failed.is_empty() {
        let over = count.completed.union(&count.failed).count();
        let all = to_i32(over) >= spec.completions.unwrap_or(0);
        return all.then(|| failure("FailedIndexes", "Job has failed indexes"));
    }
    let enough = match spec.completions {
        None => succeeded > 0,
        Some(completions) => succeeded >= completions,
    };
    let message = "Reached expected number of succeeded pods";
    enough.then(|| success("CompletionsReached", message))
}

/// The succeeded and failed pods, including those that are listed and not counted yet.
pub(super) fn totals(status: &JobStatus) -> (i32, i32) {
    let named = status.uncounted_terminated_pods.as_ref();
    let of = |uids: Option<&Vec<String>>| uids.map_or(0, |uids| to_i32(uids.len()));
    let succeeded = named.and_then(|named| named.succeeded.as_ref());
    let failed = named.and_then(|named| named.failed.as_ref());
    (
        status.succeeded.unwrap_or(0) + of(succeeded),
        status.failed.unwrap_or(0) + of(failed),
    )
}

/// Reason and message of a condition that is true.
fn condition(status: &JobStatus, kind: &str) -> Option<(String, String)> {
    let mut conditions = status.conditions.iter().flatten();
    let known = conditions.find(|known| known.type_ == kind && known.status == "True")?;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    Some((text(&known.reason), text(&known.message)))
}

/// The time at which the Job finished, if it has.
pub(crate) fn finished_at(job: &Job) -> Option<Timestamp> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    let mut over = conditions.iter().filter(|known| {
        matches!(known.type_.as_str(), "Complete" | "Failed") && known.status == "True"
    });
    over.next()?
        .last_transition_time
        .as_ref()
        .map(|time| time.0)
}

/// Sets the condition `kind`; true if it changed.
pub(super) fn set_condition(
    status: &mut JobStatus,
    (kind, is_true): (&str, bool),
    (reason, message): (&str, &str),
    now: Timestamp,
) -> bool {
    let value = if is_true { "True" } else { "False" };
    let conditions = status.conditions.get_or_insert_default();
    let former = conditions
        .iter()
        .position(|condition| condition.type_ == kind);
    if former.is_some_and(|place| conditions[place].status == value) {
        return false;
    }
    let time = Some(Time(now));
    let condition = JobCondition {
        type_: kind.to_owned(),
        status: value.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_probe_time: time.clone(),
        last_transition_time: time,
    };
    match former {
        Some(place) => conditions[place] = condition,
        None => conditions.push(condition),
    }
    true
}
