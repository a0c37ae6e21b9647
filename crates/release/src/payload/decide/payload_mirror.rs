//! Whether the image was mirrored. Without a mirror both conditions stay unknown.

use neap_kit::status::{ConditionStatus, ConditionUpdate};

use super::Draft;
use crate::api::{CreationJobStatus, conditions};

pub(super) fn decide(draft: &mut Draft<'_>) {
    use ConditionStatus::{False, True, Unknown};
    let is_decided = [conditions::MIRRORED, conditions::MIRROR_FAILED]
        .into_iter()
        .all(|type_| matches!(draft.holds(type_), Some(True | False)));
    if is_decided {
        return;
    }
    let (mirrored, failed, message) = match draft.status.release_mirror_job_result.status {
        CreationJobStatus::Success => (True, False, conditions::MIRROR_COMPLETED),
        CreationJobStatus::Failed => (False, True, conditions::MIRROR_JOB_FAILED),
        _ => (Unknown, Unknown, ""),
    };
    let reason = conditions::reasons::MIRRORED;
    draft.set(ConditionUpdate::new(
        conditions::MIRRORED,
        mirrored,
        reason,
        message,
    ));
    let reason = conditions::reasons::MIRROR_FAILED;
    draft.set(ConditionUpdate::new(
        conditions::MIRROR_FAILED,
        failed,
        reason,
        message,
    ));
}
