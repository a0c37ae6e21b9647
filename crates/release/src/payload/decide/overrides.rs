//! What a user decided about a payload, as the audit and Events say it.

use crate::{
    api::{
        ReleasePayload, ReleasePayloadStatus, annotations,
        conditions::{self, reasons},
    },
    payload::Phase,
};

/// The decision of a user that `after` carries out and `before` did not, or that it takes back. It names the user
/// that the command has noted; what the API server knows of the user is in its own audit log.
pub(super) fn taken(
    payload: &ReleasePayload,
    before: &ReleasePayloadStatus,
    after: &ReleasePayloadStatus,
) -> Option<String> {
    let (was, is) = (by_user(before), by_user(after));
    if was == is {
        return None;
    }
    let Some((_, reason)) = is else {
        return Some(format!(
            "the override is taken back: {}",
            Phase::of(&after.conditions)
        ));
    };
    let decision = &payload.spec.payload_override.decision;
    let all = payload.metadata.annotations.as_ref();
    let user = all.and_then(|all| all.get(annotations::OVERRIDE_BY));
    let user = user.map_or("a user who did not give a name", String::as_str);
    Some(format!("override {decision} by {user}: {reason}"))
}

/// The reason and message of a verdict that a user gave.
fn by_user(status: &ReleasePayloadStatus) -> Option<(&str, &str)> {
    let mut all = status.conditions.iter();
    let accepted = all.find(|it| it.type_ == conditions::ACCEPTED)?;
    let is_manual = [reasons::MANUALLY_ACCEPTED, reasons::MANUALLY_REJECTED]
        .contains(&accepted.reason.as_str());
    is_manual.then_some((&accepted.reason, &accepted.message))
}
