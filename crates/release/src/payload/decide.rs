//! What the status of a payload should be: a pure function of [`Facts`], in the steps of the original's
//! controllers, one file for each.
//!
//! Each step reads what the steps before it decided, so one pass is enough: a second one with the same
//! facts changes nothing.

mod job_state;
mod legacy_results;
mod overrides;
mod payload_accepted;
mod payload_created;
mod payload_failed;
mod payload_mirror;
mod payload_rejected;
mod payload_stuck;
mod payload_verification;
mod prow_job_results;
mod qualifiers_summary;
mod release_creation_job;
mod release_creation_status;
mod release_mirror_job;
mod release_mirror_job_status;
#[cfg(test)]
mod tests;
pub mod verdict;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use neap_kit::{
    event::EventDraft,
    status::{ConditionStatus, ConditionUpdate, updated_conditions},
};

pub use self::{
    job_state::{aggregate, job_state},
    payload_accepted::decide as accepted,
    payload_rejected::decide as rejected,
};
use super::{Phase, facts::Facts};
use crate::api::{ReleasePayload, ReleasePayloadStatus, conditions};

/// How many ProwJobs that claim to be runs of a payload and are not are named.
const MAX_FORGED: usize = 20;

/// What to write about a payload.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The status.
    pub status: ReleasePayloadStatus,
    /// The phase that it means.
    pub phase: Phase,
    /// What happened since the last status.
    pub events: Vec<EventDraft>,
    /// When time alone may change the decision.
    pub requeue_after: Option<Duration>,
    /// What is wrong with the facts, for the log.
    pub warnings: Vec<String>,
    /// The decision of a user that this status carries out first, or takes back, for the audit.
    pub override_taken: Option<String>,
}

/// A decision in the making.
struct Draft<'a> {
    facts: &'a Facts,
    status: ReleasePayloadStatus,
    requeue_at: Option<Timestamp>,
    warnings: Vec<String>,
}

impl Draft<'_> {
    fn payload(&self) -> &ReleasePayload {
        &self.facts.payload
    }

    fn set(&mut self, update: ConditionUpdate) {
        let generation = self.payload().metadata.generation;
        let now = self.facts.now;
        self.status.conditions =
            updated_conditions(&self.status.conditions, &[update], generation, now);
    }

    fn holds(&self, type_: &str) -> Option<ConditionStatus> {
        status_of(&self.status, type_)
    }

    fn look_again_at(&mut self, moment: Timestamp) {
        self.requeue_at = Some(
            self.requeue_at
                .map_or(moment, |earlier| earlier.min(moment)),
        );
    }
}

/// Whether a condition holds; none if it was never set.
fn status_of(status: &ReleasePayloadStatus, type_: &str) -> Option<ConditionStatus> {
    let found = status.conditions.iter().find(|it| it.type_ == type_)?;
    Some(match found.status.as_str() {
        "True" => ConditionStatus::True,
        "False" => ConditionStatus::False,
        _ => ConditionStatus::Unknown,
    })
}

/// Decides what the status of a payload should be.
pub fn decide(facts: &Facts) -> Decision {
    let before = facts.payload.status.clone().unwrap_or_default();
    let mut draft = Draft {
        facts,
        status: before.clone(),
        requeue_at: None,
        warnings: Vec::new(),
    };
    payload_verification::decide(&mut draft);
    release_creation_job::decide(&mut draft);
    release_creation_status::decide(&mut draft);
    let is_decided = payload_created::is_decided(&draft);
    if !is_decided {
        payload_created::decide(&mut draft);
        payload_failed::decide(&mut draft);
    }
    release_mirror_job::decide(&mut draft);
    release_mirror_job_status::decide(&mut draft);
    payload_mirror::decide(&mut draft);
    prow_job_results::decide(&mut draft);
    legacy_results::decide(&mut draft);
    let extra = facts.extra_attempts();
    job_state::decide(&mut draft.status, &extra);
    let unproved = facts.unproved.clone().unwrap_or_default();
    draft.status.verdict.get_or_insert_default().unproved = unproved;
    let verdict = verdict::VerdictFacts::gather(&facts.payload, &draft.status);
    draft.set(accepted(&verdict));
    draft.set(rejected(&verdict));
    qualifiers_summary::decide(&mut draft);
    let phase = Phase::of(&draft.status.conditions);
    let mut record = verdict.record(phase);
    record.forged = match (&facts.unproved, &before.verdict) {
        (Some(_), Some(before)) => before.forged.clone(),
        _ => facts.forged.clone(),
    };
    record.forged.sort();
    record.forged.truncate(MAX_FORGED);
    draft.status.verdict = Some(record);
    payload_stuck::decide(&mut draft, phase);
    draft.status.observed_generation = facts.payload.metadata.generation;
    canonicalize(&mut draft.status);
    let override_taken = overrides::taken(&facts.payload, &before, &draft.status);
    let mut events = events(&before, &draft.status, verdict.ignored_explanation());
    events.extend(
        override_taken
            .as_ref()
            .map(|text| EventDraft::normal("PayloadOverridden", text)),
    );
    Decision {
        events,
        override_taken,
        phase,
        requeue_after: draft.requeue_at.map(|moment| until(facts.now, moment)),
        status: draft.status,
        warnings: draft.warnings,
    }
}

/// The order in which lists are stored, so that the same content is the same object.
fn canonicalize(status: &mut ReleasePayloadStatus) {
    for list in [
        &mut status.blocking_job_results,
        &mut status.informing_job_results,
        &mut status.upgrade_job_results,
    ] {
        list.sort_by(|a, b| (&a.name, &a.job_name).cmp(&(&b.name, &b.job_name)));
        for job in list {
            job.results
                .sort_by(|a, b| a.coordinates.name.cmp(&b.coordinates.name));
        }
    }
    status.conditions.sort_by(|a, b| a.type_.cmp(&b.type_));
    for qualifier in status
        .qualifiers_summary
        .iter_mut()
        .flat_map(|it| it.qualifiers.values_mut())
    {
        qualifier
            .jobs
            .sort_by(|a, b| (&a.name, &a.job_name).cmp(&(&b.name, &b.job_name)));
    }
}

/// At least a second: a moment that has just passed must not spin.
fn until(now: Timestamp, moment: Timestamp) -> Duration {
    let wait = moment.duration_since(now).max(SignedDuration::from_secs(1));
    wait.unsigned_abs()
}

fn events(
    before: &ReleasePayloadStatus,
    after: &ReleasePayloadStatus,
    ignored_override: Option<String>,
) -> Vec<EventDraft> {
    let mut events = Vec::new();
    let message = |type_: &str| {
        let found = after.conditions.iter().find(|it| it.type_ == type_);
        found.map(|it| it.message.clone()).unwrap_or_default()
    };
    let phase = Phase::of(&after.conditions);
    if phase != Phase::of(&before.conditions) {
        match phase {
            Phase::Pending => {}
            Phase::Ready => {
                events.push(EventDraft::normal(
                    "PayloadReady",
                    message(conditions::CREATED),
                ));
            }
            Phase::Accepted => {
                events.push(EventDraft::normal(
                    "PayloadAccepted",
                    message(conditions::ACCEPTED),
                ));
            }
            Phase::Rejected => {
                events.push(EventDraft::warning(
                    "PayloadRejected",
                    message(conditions::REJECTED),
                ));
            }
            Phase::Failed => {
                events.push(EventDraft::warning(
                    "PayloadFailed",
                    message(conditions::FAILED),
                ));
            }
        }
    }
    let is_stuck = |status| status_of(status, conditions::STUCK) == Some(ConditionStatus::True);
    if is_stuck(after) && !is_stuck(before) {
        events.push(EventDraft::warning(
            "PayloadStuck",
            message(conditions::STUCK),
        ));
    }
    let forged = |status: &ReleasePayloadStatus| {
        status
            .verdict
            .as_ref()
            .map(|it| it.forged.clone())
            .unwrap_or_default()
    };
    let names = forged(after);
    if !names.is_empty() && names != forged(before) {
        let names = names.join(", ");
        let message = format!("ProwJobs that this payload did not launch do not count: {names}");
        events.push(EventDraft::warning("ForgedProwJob", message));
    }
    events.extend(not_counted(before, after, ignored_override));
    events
}

/// What does not count since the last status: runs without a key, and an override that is no decision. Each is told
/// once: the status remembers it.
fn not_counted(
    before: &ReleasePayloadStatus,
    after: &ReleasePayloadStatus,
    ignored_override: Option<String>,
) -> Vec<EventDraft> {
    let unproved = |status: &ReleasePayloadStatus| {
        let record = status.verdict.as_ref();
        record.map(|it| it.unproved.clone()).unwrap_or_default()
    };
    let mut events = Vec::new();
    let why = unproved(after);
    if !why.is_empty() && unproved(before).is_empty() {
        events.push(EventDraft::warning("RunKeyMissing", why));
    }
    let mut known = before.conditions.iter();
    let known = known.find(|it| it.type_ == conditions::ACCEPTED);
    let is_new = |text: &String| known.is_none_or(|it| !it.message.contains(text.as_str()));
    if let Some(text) = ignored_override.filter(is_new) {
        events.push(EventDraft::warning("InvalidOverride", text));
    }
    events
}
