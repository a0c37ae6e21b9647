//! Which Job to start, and which to forget. Pure.

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
use neap_kit::{event::Note, planted};

use super::times::{Problem, Times};
use crate::{job::finished_at, workload::owned_by};

/// For when a Job was meant.
const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/// What is known.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    pub(super) cron: &'a CronJob,
    /// Its own.
    pub(super) jobs: Vec<&'a Job>,
    /// In whole seconds, since the API keeps no fractions.
    pub(super) now: Timestamp,
}

/// What is to be done, in this order.
#[derive(Debug, Default)]
pub(super) struct Decision<'a> {
    pub(super) notes: Vec<Note>,
    pub(super) delete: Vec<&'a Job>,
    pub(super) create: Option<Job>,
    /// For when the Job is there.
    pub(super) status: CronJobStatus,
    pub(super) again: Option<Duration>,
}

pub(super) fn decide<'a>(facts: &Facts<'a>) -> Decision<'a> {
    let cron = facts.cron;
    let mut decision = Decision {
        status: cron.status.clone().unwrap_or_default(),
        ..Decision::default()
    };
    let spec = &cron.spec;
    forget(spec, facts, &mut decision);
    look_at_jobs(facts, &mut decision);
    if cron.metadata.deletion_timestamp.is_some() || spec.suspend == Some(true) {
        return decision;
    }
    match Times::parse(&spec.schedule, spec.time_zone.as_deref()) {
        Ok(times) => start(spec, facts, &times, &mut decision),
        Err(problem) => {
            let reason = match problem {
                Problem::Schedule { .. } => "UnparseableSchedule",
                Problem::Zone(_) => "UnknownTimeZone",
            };
            let note = Note::warning(reason, problem.to_string());
            decision.notes.push(note);
        }
    }
    decision
}

/// Which Jobs are at work, and which have ended since.
fn look_at_jobs(facts: &Facts<'_>, decision: &mut Decision<'_>) {
    let status = &mut decision.status;
    let before = status.active.take().unwrap_or_default();
    let mut active = Vec::new();
    for known in before {
        let job = facts.jobs.iter().find(|job| job.uid() == known.uid);
        match job.map(|job| (job, ending(job))) {
            Some((job, None)) if !leaves(job) => active.push(known),
            Some((_, None)) => {}
            // Nobody could look at it.
            Some((job, _)) if decision.delete.iter().any(|it| it.uid() == job.uid()) => {}
            Some((job, Some(ending))) => {
                let name = job.name_any();
                let message = format!("Saw completed job: {name}, condition: {ending}");
                decision
                    .notes
                    .push(Note::normal("SawCompletedJob", message));
            }
            None => {
                let name = known.name.unwrap_or_default();
                let message = format!("Active job went missing: {name}");
                decision.notes.push(Note::normal("MissingJob", message));
            }
        }
    }
    for job in facts
        .jobs
        .iter()
        .filter(|job| ending(job).is_none() && !leaves(job))
    {
        if active.iter().any(|known| known.uid == job.uid()) {
            continue;
        }
        if job.annotations().contains_key(SCHEDULED) {
            // Made, and then nothing was written of it.
            active.push(reference(job));
        } else {
            // Somebody started it by hand: it stands in no other's way.
            let name = job.name_any();
            let message = format!("Saw a job that the controller did not create or forgot: {name}");
            decision.notes.push(Note::warning("UnexpectedJob", message));
        }
    }
    let ends = facts.jobs.iter().filter_map(|job| {
        let well = ending(job) == Some("Complete");
        let end = job.status.as_ref()?.completion_time.clone();
        end.filter(|_| well)
    });
    let known = status.last_successful_time.take();
    status.last_successful_time = known.into_iter().chain(ends).max_by_key(|time| time.0);
    status.active = Some(active).filter(|active| !active.is_empty());
}

fn leaves(job: &Job) -> bool {
    job.metadata.deletion_timestamp.is_some()
}

fn ending(job: &Job) -> Option<&'static str> {
    finished_at(job)?;
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    let well = |known: &k8s_openapi::api::batch::v1::JobCondition| {
        known.type_ == "Complete" && known.status == "True"
    };
    Some(if conditions.iter().any(well) {
        "Complete"
    } else {
        "Failed"
    })
}

/// As a status tells of a Job.
pub(super) fn reference(job: &Job) -> ObjectReference {
    ObjectReference {
        resource_version: job.resource_version(),
        ..job.object_ref(&())
    }
}

/// The oldest of what ended, beyond what is to be kept.
fn forget<'a>(spec: &CronJobSpec, facts: &Facts<'a>, decision: &mut Decision<'a>) {
    let limits = [
        ("Complete", spec.successful_jobs_history_limit.unwrap_or(3)),
        ("Failed", spec.failed_jobs_history_limit.unwrap_or(1)),
    ];
    for (kind, limit) in limits {
        let ended = facts.jobs.iter().copied();
        let mut ended: Vec<_> = ended
            .filter(|job| ending(job) == Some(kind) && !leaves(job))
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

fn start<'a>(spec: &CronJobSpec, facts: &Facts<'a>, times: &Times, decision: &mut Decision<'a>) {
    let (cron, now) = (facts.cron, facts.now);
    let left = times
        .next(now)
        .map(|next| Duration::try_from(next.duration_since(now)));
    decision.again = left.and_then(Result::ok);
    let Some(missed) = times.missed(since(cron, spec, &decision.status, now), now) else {
        return;
    };
    if missed.too_many {
        let message = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew";
        decision
            .notes
            .push(Note::warning("TooManyMissedTimes", message));
    }
    let time = if planted!(TimeInName) {
        now
    } else {
        missed.last
    };
    let job = job(cron, spec, times, time);
    let made = facts
        .jobs
        .iter()
        .any(|known| known.metadata.name == job.metadata.name);
    let active = decision.status.active.clone().unwrap_or_default();
    match spec.concurrency_policy.as_deref() {
        Some("Forbid") if !made && !active.is_empty() => {
            let message = "Not starting job because prior execution is running and concurrency policy is Forbid";
            decision
                .notes
                .push(Note::normal("JobAlreadyActive", message));
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

/// Times up to this were seen to, or are too long ago.
fn since(cron: &CronJob, spec: &CronJobSpec, status: &CronJobStatus, now: Timestamp) -> Timestamp {
    let born = cron.creation_timestamp();
    let last = status.last_schedule_time.clone().or(born);
    let last = last.map_or(now, |time| time.0);
    let limit = spec.starting_deadline_seconds;
    let limit = limit.and_then(|limit| Timestamp::from_second(now.as_second() - limit).ok());
    limit.map_or(last, |limit| limit.max(last))
}

/// What tells one time from another, in a name.
fn number(time: Timestamp) -> i64 {
    planted!(TimeInName => return time.as_second());
    time.as_second() / 60
}

fn job(cron: &CronJob, spec: &CronJobSpec, times: &Times, time: Timestamp) -> Job {
    let meta = spec.job_template.metadata.clone().unwrap_or_default();
    let mut annotations = meta.annotations.unwrap_or_default();
    annotations.insert(SCHEDULED.to_owned(), times.written(time));
    Job {
        metadata: ObjectMeta {
            name: Some(format!("{}-{}", cron.name_any(), number(time))),
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
