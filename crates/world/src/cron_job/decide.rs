//! Which Job to start, and which to delete. Pure.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::{
    api::{
        batch::v1::{CronJob, CronJobSpec, CronJobStatus, Job},
        core::v1::ObjectReference,
    },
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
};
use kube::{Resource, ResourceExt};
use neap_kit::{event::EventDraft, planted};

use super::schedule::{Schedule, ScheduleError};
use crate::{job::finished_at, workload::owned_by};

/// The annotation with the scheduled time of a Job.
const SCHEDULED_TIMESTAMP: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

#[derive(Debug)]
pub(super) struct Facts<'a> {
    pub(super) cron: &'a CronJob,
    /// The Jobs that the CronJob controls.
    pub(super) jobs: Vec<&'a Job>,
    /// In whole seconds, since the API stores no fractions.
    pub(super) now: Timestamp,
}

/// The actions, executed in this order.
#[derive(Debug, Default)]
pub(super) struct Decision<'a> {
    pub(super) events: Vec<EventDraft>,
    pub(super) delete: Vec<&'a Job>,
    pub(super) create: Option<Job>,
    /// Written once the Job has been created.
    pub(super) status: CronJobStatus,
    pub(super) requeue_after: Option<Duration>,
}

pub(super) fn decide<'a>(facts: &Facts<'a>) -> Decision<'a> {
    let cron = facts.cron;
    let mut decision = Decision {
        status: cron.status.clone().unwrap_or_default(),
        ..Decision::default()
    };
    let spec = &cron.spec;
    delete_old_jobs(spec, facts, &mut decision);
    update_active(facts, &mut decision);
    if cron.metadata.deletion_timestamp.is_some() || spec.suspend == Some(true) {
        return decision;
    }
    match Schedule::parse(&spec.schedule, spec.time_zone.as_deref()) {
        Ok(schedule) => start(spec, facts, &schedule, &mut decision),
        Err(problem) => {
            let reason = match problem {
                ScheduleError::Schedule { .. } => "UnparseableSchedule",
                ScheduleError::Zone(_) => "UnknownTimeZone",
            };
            let event = EventDraft::warning(reason, problem.to_string());
            decision.events.push(event);
        }
    }
    decision
}

/// Updates the list of active Jobs, and records those that have finished since.
fn update_active(facts: &Facts<'_>, decision: &mut Decision<'_>) {
    let status = &mut decision.status;
    let before = status.active.take().unwrap_or_default();
    let mut active = Vec::new();
    for known in before {
        let job = facts.jobs.iter().find(|job| job.uid() == known.uid);
        match job.map(|job| (job, finish_condition(job))) {
            Some((job, None)) if !is_deleting(job) => active.push(known),
            Some((_, None)) => {}
            // It is deleted at once, so a user could not look at it.
            Some((job, _)) if decision.delete.iter().any(|it| it.uid() == job.uid()) => {}
            Some((job, Some(ending))) => {
                let name = job.name_any();
                let message = format!("Saw completed job: {name}, condition: {ending}");
                decision
                    .events
                    .push(EventDraft::normal("SawCompletedJob", message));
            }
            None => {
                let name = known.name.unwrap_or_default();
                let message = format!("Active job went missing: {name}");
                decision
                    .events
                    .push(EventDraft::normal("MissingJob", message));
            }
        }
    }
    for job in facts
        .jobs
        .iter()
        .filter(|job| finish_condition(job).is_none() && !is_deleting(job))
    {
        if active.iter().any(|known| known.uid == job.uid()) {
            continue;
        }
        if job.annotations().contains_key(SCHEDULED_TIMESTAMP) {
            // Created, and then the status was not written.
            active.push(reference(job));
        } else {
            // A user started it manually: it does not count for the concurrency policy.
            let name = job.name_any();
            let message = format!("Saw a job that the controller did not create or forgot: {name}");
            decision
                .events
                .push(EventDraft::warning("UnexpectedJob", message));
        }
    }
    let ends = facts.jobs.iter().filter_map(|job| {
        let succeeded = finish_condition(job) == Some("Complete");
        let end = job.status.as_ref()?.completion_time.clone();
        end.filter(|_| succeeded)
    });
    let known = status.last_successful_time.take();
    status.last_successful_time = known.into_iter().chain(ends).max_by_key(|time| time.0);
    status.active = Some(active).filter(|active| !active.is_empty());
}

fn is_deleting(job: &Job) -> bool {
    job.metadata.deletion_timestamp.is_some()
}

fn finish_condition(job: &Job) -> Option<&'static str> {
    finished_at(job)?;
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    let is_complete = |known: &k8s_openapi::api::batch::v1::JobCondition| {
        known.type_ == "Complete" && known.status == "True"
    };
    Some(if conditions.iter().any(is_complete) {
        "Complete"
    } else {
        "Failed"
    })
}

/// The reference to a Job in a status.
pub(super) fn reference(job: &Job) -> ObjectReference {
    ObjectReference {
        resource_version: job.resource_version(),
        ..job.object_ref(&())
    }
}

/// Deletes the oldest finished Jobs beyond the history limits.
fn delete_old_jobs<'a>(spec: &CronJobSpec, facts: &Facts<'a>, decision: &mut Decision<'a>) {
    let limits = [
        ("Complete", spec.successful_jobs_history_limit.unwrap_or(3)),
        ("Failed", spec.failed_jobs_history_limit.unwrap_or(1)),
    ];
    for (kind, limit) in limits {
        let ended = facts.jobs.iter().copied();
        let mut ended: Vec<_> = ended
            .filter(|job| finish_condition(job) == Some(kind) && !is_deleting(job))
            .collect();
        ended.sort_by_cached_key(|job| {
            let start = job
                .status
                .as_ref()
                .and_then(|status| status.start_time.clone());
            (start.map(|time| time.0), job.name_any())
        });
        let surplus = ended
            .len()
            .saturating_sub(usize::try_from(limit).unwrap_or(0));
        decision.delete.extend(ended.into_iter().take(surplus));
    }
}

fn start<'a>(
    spec: &CronJobSpec,
    facts: &Facts<'a>,
    schedule: &Schedule,
    decision: &mut Decision<'a>,
) {
    let (cron, now) = (facts.cron, facts.now);
    let left = schedule
        .next(now)
        .map(|next| Duration::try_from(next.duration_since(now)));
    decision.requeue_after = left.and_then(Result::ok);
    let Some(missed) = schedule.missed(handled_until(cron, spec, &decision.status, now), now)
    else {
        return;
    };
    if missed.too_many {
        let message = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew";
        decision
            .events
            .push(EventDraft::warning("TooManyMissedTimes", message));
    }
    let time = if planted!(TimeInName) {
        now
    } else {
        missed.last
    };
    let job = job(cron, spec, schedule, time);
    let made = facts
        .jobs
        .iter()
        .any(|known| known.metadata.name == job.metadata.name);
    let active = decision.status.active.clone().unwrap_or_default();
    match spec.concurrency_policy.as_deref() {
        Some("Forbid") if !made && !active.is_empty() => {
            let message = "Not starting job because prior execution is running and concurrency policy is Forbid";
            decision
                .events
                .push(EventDraft::normal("JobAlreadyActive", message));
            return;
        }
        Some("Replace") if !made => {
            let at_work = facts.jobs.iter().copied();
            let at_work = at_work.filter(|job| active.iter().any(|known| known.uid == job.uid()));
            decision.delete.extend(at_work);
            decision.status.active = None;
        }
        _ => {}
    }
    decision.status.last_schedule_time = Some(Time(missed.last));
    decision.create = Some(job).filter(|_| !made);
}

/// Scheduled times up to this have been handled, or are past the starting deadline.
fn handled_until(
    cron: &CronJob,
    spec: &CronJobSpec,
    status: &CronJobStatus,
    now: Timestamp,
) -> Timestamp {
    let born = cron.creation_timestamp();
    let last = status.last_schedule_time.clone().or(born);
    let last = last.map_or(now, |time| time.0);
    let limit = spec.starting_deadline_seconds;
    let limit = limit.and_then(|limit| Timestamp::from_second(now.as_second() - limit).ok());
    limit.map_or(last, |limit| limit.max(last))
}

/// The part of a Job's name that identifies its scheduled time.
fn name_suffix(time: Timestamp) -> i64 {
    planted!(TimeInName => return time.as_second());
    time.as_second() / 60
}

fn job(cron: &CronJob, spec: &CronJobSpec, schedule: &Schedule, time: Timestamp) -> Job {
    let meta = spec.job_template.metadata.clone().unwrap_or_default();
    let mut annotations = meta.annotations.unwrap_or_default();
    annotations.insert(SCHEDULED_TIMESTAMP.to_owned(), schedule.format(time));
    Job {
        metadata: ObjectMeta {
            name: Some(format!("{}-{}", cron.name_any(), name_suffix(time))),
            namespace: cron.namespace(),
            labels: meta.labels,
            annotations: Some(annotations),
            owner_references: owned_by(cron).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        spec: spec.job_template.spec.clone(),
        status: None,
    }
}
