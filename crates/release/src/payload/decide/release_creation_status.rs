//! How the creation Job is doing.

use super::Draft;
use crate::{
    api::{
        CreationJobStatus,
        conditions::{CREATION_COMPLETED, CREATION_FAILED},
    },
    payload::facts::JobFacts,
};

/// What is said about a Job in each of its states.
pub(super) struct Texts {
    pub(super) completed: &'static str,
    pub(super) failed: &'static str,
    pub(super) pending: &'static str,
    pub(super) unknown: &'static str,
}

const TEXTS: Texts = Texts {
    completed: CREATION_COMPLETED,
    failed: CREATION_FAILED,
    pending: "Release creation job pending",
    unknown: "Release creation job unknown",
};

pub(super) fn decide(draft: &mut Draft<'_>) {
    let result = &draft.status.release_creation_job_result;
    if result.status == CreationJobStatus::Success {
        return;
    }
    if result.coordinates.name.is_empty() || result.coordinates.namespace.is_empty() {
        draft
            .warnings
            .push("unable to lookup release creation job: coordinates not set".to_owned());
        return;
    }
    let (status, message) = job_result(draft.facts.creation_job.as_ref(), &TEXTS);
    // The Job of a payload whose failure is decided may be collected; the failure stays.
    if draft.facts.creation_job.is_none() && result.status == CreationJobStatus::Failed {
        return;
    }
    let result = &mut draft.status.release_creation_job_result;
    (result.status, result.message) = (status, message);
}

/// The status of a Job, and what is said about it.
pub(super) fn job_result(job: Option<&JobFacts>, texts: &Texts) -> (CreationJobStatus, String) {
    use CreationJobStatus::{Failed, Success, Unknown};
    match job {
        Some(job) if job.completed => (Success, texts.completed.to_owned()),
        Some(JobFacts {
            failed: Some((reason, message)),
            pod_message,
            ..
        }) => {
            let said = if reason.is_empty() || message.is_empty() {
                texts.failed.to_owned()
            } else {
                format!("{reason}: {message}")
            };
            (Failed, pod_message.clone().unwrap_or(said))
        }
        Some(job) if job.active => (Unknown, texts.pending.to_owned()),
        None | Some(_) => (Unknown, texts.unknown.to_owned()),
    }
}
