//! Whether there will be no image.

use neap_kit::status::{ConditionStatus, ConditionUpdate};

use super::Draft;
use crate::api::{CreationJobStatus, conditions};

pub(super) fn decide(draft: &mut Draft<'_>) {
    let (status, message) = match draft.status.release_creation_job_result.status {
        CreationJobStatus::Success => (ConditionStatus::False, conditions::CREATION_COMPLETED),
        CreationJobStatus::Failed => (ConditionStatus::True, conditions::CREATION_FAILED),
        _ => (ConditionStatus::Unknown, ""),
    };
    let reason = conditions::reasons::FAILED;
    draft.set(ConditionUpdate::new(
        conditions::FAILED,
        status,
        reason,
        message,
    ));
}
