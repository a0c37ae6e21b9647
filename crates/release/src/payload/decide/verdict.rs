//! The facts of a verdict, the verdict, and the record of it.

use std::collections::BTreeMap;

use aws_lc_rs::digest::{SHA256, digest};
use neap_kit::status::ConditionStatus;

use super::{aggregate, status_of};
use crate::{
    api::{
        CreationJobStatus, JobState, JobStatus, Override, ReleasePayload, ReleasePayloadStatus,
        VerdictRecord, conditions,
    },
    names::hex,
    payload::{
        Phase,
        facts::{async_jobs, extra_attempts, skipped_jobs},
    },
};

/// How many jobs a message names.
const NAMED_JOBS: usize = 10;
/// How much a message shows of a word that is no decision.
const SHOWN_WORD: usize = 40;

/// Everything that a verdict depends on.
#[derive(Debug, Clone, PartialEq)]
pub struct VerdictFacts {
    pub(super) creation: CreationJobStatus,
    pub(super) creation_message: String,
    pub(super) mirror_message: String,
    /// Whether the verdict waits for the mirror.
    pub(super) mirror_gate_closed: bool,
    pub(super) decided_by_user: Option<Override>,
    pub(super) user_reason: String,
    /// A word in the place of a user's decision that is none.
    pub(super) ignored_override: Option<String>,
    /// The jobs that were left out when the release was cut, and why.
    pub(super) skipped: BTreeMap<String, String>,
    /// Why runs cannot be told from ProwJobs of others, if that is so.
    pub(super) unproved: String,
    pub(super) blocking: Vec<(String, JobState)>,
    /// Informing and upgrade jobs, without those that are not waited for.
    pub(super) others: Vec<(String, JobState)>,
    record: VerdictRecord,
}

/// What the facts mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ruling {
    CreationFailed,
    AwaitsCreation,
    AwaitsMirror,
    ByUser(Override),
    /// No job has to pass. All others are over, or not.
    NoBlockingJobs {
        others_ended: bool,
    },
    ByJobs(JobState),
}

impl VerdictFacts {
    /// The facts in `payload` and in `status`, whose jobs have their states.
    pub fn gather(payload: &ReleasePayload, status: &ReleasePayloadStatus) -> Self {
        let mirror = &payload
            .spec
            .payload_creation_config
            .release_mirror_coordinates;
        let has_mirror = !mirror.release_mirror_job_name.is_empty();
        let mirror_result = &status.release_mirror_job_result;
        let holds = |type_| status_of(status, type_) == Some(ConditionStatus::True);
        let (creation, creation_message) = creation(status);
        let was_open = status
            .verdict
            .as_ref()
            .is_some_and(|it| it.mirror_gate_passed)
            || mirror_result.status.has_ended()
            || holds(conditions::ACCEPTED)
            || holds(conditions::REJECTED);
        // A payload without an image is rejected, and has not come to the gate.
        let has_image = creation == CreationJobStatus::Success;
        let passed = has_image && was_open;
        let states = |jobs: &[JobStatus]| -> Vec<(String, JobState)> {
            jobs.iter()
                .map(|job| (job.name.clone(), job.state))
                .collect()
        };
        let not_awaited = async_jobs(payload);
        let mut others = states(&status.informing_job_results);
        others.retain(|(name, _)| !not_awaited.contains(&name.as_str()));
        others.extend(states(&status.upgrade_job_results));
        let decision = &payload.spec.payload_override;
        let record = status.verdict.as_ref();
        let unproved = record.map(|it| it.unproved.clone()).unwrap_or_default();
        let mut facts = Self {
            creation,
            creation_message,
            mirror_message: mirror_result.message.clone(),
            mirror_gate_closed: has_mirror && !passed,
            decided_by_user: decision.decided(),
            user_reason: decision.reason.clone(),
            ignored_override: decision.ignored().map(str::to_owned),
            skipped: skipped_jobs(payload),
            unproved: unproved.clone(),
            blocking: states(&status.blocking_job_results),
            others,
            record: VerdictRecord {
                mirror_gate_passed: has_mirror && passed,
                extra_attempts: extra_attempts(payload),
                unproved,
                ..VerdictRecord::default()
            },
        };
        facts.record.facts = facts.hash(status);
        facts
    }

    /// What the facts mean. The first that applies: an override stands above jobs, and below the image.
    pub(super) fn ruling(&self) -> Ruling {
        if self.creation == CreationJobStatus::Failed {
            Ruling::CreationFailed
        } else if self.creation != CreationJobStatus::Success {
            Ruling::AwaitsCreation
        } else if self.mirror_gate_closed {
            Ruling::AwaitsMirror
        } else if let Some(decision) = self.decided_by_user {
            Ruling::ByUser(decision)
        } else if self.blocking.is_empty() {
            let others_ended = self.others.iter().all(|(_, state)| state.has_ended());
            Ruling::NoBlockingJobs { others_ended }
        } else {
            Ruling::ByJobs(aggregate(self.blocking.iter().map(|(_, state)| *state)))
        }
    }

    /// What the verdict waits for, or which jobs decided it, and what did not count.
    pub(super) fn explanation(&self, ruling: Ruling) -> String {
        let mut parts = vec![self.cause(ruling)];
        if let Ruling::NoBlockingJobs { .. } | Ruling::ByJobs(_) = ruling {
            parts.extend(self.skipped_explanation());
            parts.extend(Some(self.unproved.clone()).filter(|why| !why.is_empty()));
        }
        parts.extend(self.ignored_explanation());
        parts.retain(|part| !part.is_empty());
        parts.join("; ")
    }

    /// The override that is no decision, in words.
    pub(super) fn ignored_explanation(&self) -> Option<String> {
        let word = self.ignored_override.as_ref()?;
        let word: String = word.chars().take(SHOWN_WORD).collect();
        Some(format!(
            "the override {word:?} does not count: it is neither Accepted nor Rejected"
        ))
    }

    /// The jobs that were left out, in words.
    fn skipped_explanation(&self) -> Option<String> {
        if self.skipped.is_empty() {
            return None;
        }
        let shown = self.skipped.iter().take(NAMED_JOBS);
        let shown: Vec<_> = shown.map(|(job, why)| format!("{job} ({why})")).collect();
        let hidden = self.skipped.len() - shown.len();
        let more = match hidden {
            0 => String::new(),
            hidden => format!(" and {hidden} more"),
        };
        Some(format!("left out at the cut: {}{more}", shown.join(", ")))
    }

    fn cause(&self, ruling: Ruling) -> String {
        match ruling {
            Ruling::CreationFailed => self.creation_message.clone(),
            Ruling::AwaitsCreation => {
                after("waiting for the release image", &self.creation_message)
            }
            Ruling::AwaitsMirror => after(
                "waiting for the copy in the alternate repository",
                &self.mirror_message,
            ),
            Ruling::ByUser(_) => self.user_reason.clone(),
            Ruling::NoBlockingJobs { others_ended: true } => {
                "no blocking jobs are configured".to_owned()
            }
            Ruling::NoBlockingJobs {
                others_ended: false,
            } => {
                let awaited = named(&self.others, |state| !state.has_ended());
                format!("no blocking jobs are configured; waiting for {awaited} to end")
            }
            Ruling::ByJobs(state) => self.jobs_explanation(state),
        }
    }

    fn jobs_explanation(&self, state: JobState) -> String {
        let of = |wanted: &[JobState]| named(&self.blocking, |state| wanted.contains(&state));
        match state {
            JobState::Success => match self.blocking.len() {
                1 => "the blocking job passed".to_owned(),
                count => format!("all {count} blocking jobs passed"),
            },
            JobState::Failure => format!("blocking jobs failed: {}", of(&[JobState::Failure])),
            JobState::Pending | JobState::Unknown | JobState::Unset => {
                let awaited = [JobState::Pending, JobState::Unknown, JobState::Unset];
                let waiting = format!("waiting for blocking jobs: {}", of(&awaited));
                match of(&[JobState::Failure]) {
                    failed if failed.is_empty() => waiting,
                    failed => format!("{waiting}; failed: {failed}"),
                }
            }
        }
    }

    /// The record of a verdict with this phase.
    pub fn record(&self, phase: Phase) -> VerdictRecord {
        VerdictRecord {
            phase: phase.to_string(),
            ..self.record.clone()
        }
    }

    /// The hash of all facts, down to the runs.
    fn hash(&self, status: &ReleasePayloadStatus) -> String {
        let mut text = format!(
            "{:?}\n{:?}\n{:?}\n{:?}\n",
            (self.creation, &self.creation_message),
            (self.mirror_gate_closed, &self.record.extra_attempts),
            self.decided_by_user,
            self.user_reason
        );
        let lists: BTreeMap<&str, &[JobStatus]> = BTreeMap::from([
            ("blocking", &status.blocking_job_results[..]),
            ("informing", &status.informing_job_results[..]),
            ("upgrade", &status.upgrade_job_results[..]),
        ]);
        for (list, jobs) in lists {
            let mut lines: Vec<_> = jobs
                .iter()
                .flat_map(|job| {
                    let limits = (job.max_retries, job.analysis_job_count);
                    let line = format!("{list} {} {} {limits:?}\n", job.name, job.job_name);
                    let runs = job.results.iter().map(move |run| {
                        let at = &run.coordinates;
                        format!(
                            "{list} {} {} {} {:?}\n",
                            job.name, at.name, run.uid, run.state
                        )
                    });
                    std::iter::once(line).chain(runs)
                })
                .collect();
            lines.sort();
            text.extend(lines);
        }
        hex(&digest(&SHA256, text.as_bytes()).as_ref()[..16])
    }
}

/// How the creation ended. What the conditions say stays: a Job that was made again after the release had failed
/// takes nothing back.
fn creation(status: &ReleasePayloadStatus) -> (CreationJobStatus, String) {
    let result = &status.release_creation_job_result;
    let mut all = status.conditions.iter();
    let failed = all.find(|it| it.type_ == conditions::FAILED && it.status == "True");
    match failed {
        Some(failed) if result.status != CreationJobStatus::Failed => {
            (CreationJobStatus::Failed, failed.message.clone())
        }
        _ => (result.status, result.message.clone()),
    }
}

fn after(text: &str, detail: &str) -> String {
    if detail.is_empty() {
        text.to_owned()
    } else {
        format!("{text}: {detail}")
    }
}

/// The names of the jobs in these states.
fn named(jobs: &[(String, JobState)], matches: impl Fn(JobState) -> bool) -> String {
    let mut names: Vec<_> = jobs
        .iter()
        .filter(|(_, state)| matches(*state))
        .map(|(name, _)| name.as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    let hidden = names.len().saturating_sub(NAMED_JOBS);
    names.truncate(NAMED_JOBS);
    let names = names.join(", ");
    match hidden {
        0 => names,
        hidden => format!("{names} and {hidden} more"),
    }
}
