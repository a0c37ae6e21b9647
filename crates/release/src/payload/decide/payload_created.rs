//! Whether the image was created. Once this is decided it stays.

use neap_kit::status::{ConditionStatus, ConditionUpdate};

use super::Draft;
use crate::api::{CreationJobStatus, conditions};

/// Whether both conditions say yes or no.
pub(super) fn is_decided(draft: &Draft<'_>) -> bool {
    [conditions::CREATED, conditions::FAILED]
        .into_iter()
        .all(|type_| {
            let status = draft.holds(type_);
            matches!(status, Some(ConditionStatus::True | ConditionStatus::False))
        })
}

pub(super) fn decide(draft: &mut Draft<'_>) {
    let (status, message) = match draft.status.release_creation_job_result.status {
        CreationJobStatus::Success => (ConditionStatus::True, conditions::CREATION_COMPLETED),
        CreationJobStatus::Failed => (ConditionStatus::False, conditions::CREATION_FAILED),
        _ => (ConditionStatus::Unknown, ""),
    };
    let reason = conditions::reasons::CREATED;
    draft.set(ConditionUpdate::new(
        conditions::CREATED,
        status,
        reason,
        message,
    ));
}
