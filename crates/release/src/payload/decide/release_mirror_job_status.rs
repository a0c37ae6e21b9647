//! How the mirror Job is doing. A payload without a mirror has nothing to wait for here.

use super::{
    Draft,
    release_creation_status::{Texts, job_result},
};
use crate::api::conditions::{MIRROR_COMPLETED, MIRROR_JOB_FAILED};

const TEXTS: Texts = Texts {
    completed: MIRROR_COMPLETED,
    failed: MIRROR_JOB_FAILED,
    pending: "Release mirror job pending",
    unknown: "Release mirror job unknown",
};

pub(super) fn decide(draft: &mut Draft<'_>) {
    let result = &draft.status.release_mirror_job_result;
    let has_mirror =
        !result.coordinates.name.is_empty() && !result.coordinates.namespace.is_empty();
    let is_over = result.status.has_ended() && !result.message.is_empty();
    if !has_mirror || is_over {
        return;
    }
    // The mirror of a payload waits for its image; what its pods say is not looked up.
    let job = draft.facts.mirror_job.clone().map(|mut job| {
        job.pod_message = None;
        job
    });
    let (status, message) = job_result(job.as_ref(), &TEXTS);
    let result = &mut draft.status.release_mirror_job_result;
    (result.status, result.message) = (status, message);
}
