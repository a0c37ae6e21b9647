//! Payloads that must not decide about a release of the stream.
//!
//! Every user who may create ReleasePayloads can create one under the name of a release, before the controller
//! does, with other jobs or none, and with a decision in it. So:
//!
//! - A payload that the controller created proves it by a token, and is always believed.
//! - A release that the controller cut believes no other payload.
//! - A release that another controller cut, as before a hand-over, believes a payload with the coordinates and the
//!   blocking jobs that the stream gives it, and the decision of a user on any payload with these coordinates.
//! - A decision that was in a payload when it was created is not that of a user who may decide.
//!
//! What a controller has written into the tag already stays as it is.

use super::payload::{creation_config, release_payload};
use crate::{
    api::{PayloadCoordinates, ReleaseMirrorCoordinates, ReleasePayload, annotations},
    config::ReleaseConfig,
    image_stream::api::TagReference,
    names,
    payload::Phase,
    stream::facts::Facts,
};

/// The reason of Events and of tags about them.
pub(super) const REASON: &str = "PayloadConflict";

/// Whether the tag says what its payload says, and there is nothing left to decide.
pub(in crate::stream) fn is_settled(tag: &TagReference, payload: &ReleasePayload) -> bool {
    let written = tag.annotations.get(annotations::PHASE);
    let phase = Phase::of_payload(payload);
    written.is_some_and(|written| written == phase.as_str())
        && matches!(phase, Phase::Accepted | Phase::Rejected | Phase::Failed)
}

/// Why the payload must not decide about the release `tag`; none if it may.
pub(super) fn conflict(
    facts: &Facts,
    config: &ReleaseConfig,
    tag: &TagReference,
    payload: &ReleasePayload,
) -> Option<String> {
    if is_settled(tag, payload) {
        return None;
    }
    let is_proved = facts.proved.contains(&tag.name);
    let why = if decided_at_creation(payload) {
        "it was created with a decision in it".to_owned()
    } else if is_proved {
        return None;
    } else if tag.annotations.contains_key(annotations::RUN_KEY) {
        "the release controller did not create it".to_owned()
    } else {
        difference(facts, config, tag, payload)?
    };
    let namespace = facts.namespace();
    Some(format!(
        "the ReleasePayload {namespace}/{} does not decide about the release: {why}; find out who created it, and \
         delete it",
        tag.name
    ))
}

/// Whether a decision is in the payload since it exists: every later one makes another generation of its spec.
fn decided_at_creation(payload: &ReleasePayload) -> bool {
    payload.spec.payload_override.decided().is_some()
        && payload.metadata.generation.is_none_or(|it| it <= 1)
}

/// In what the payload of another controller differs from what the stream gives the release.
fn difference(
    facts: &Facts,
    config: &ReleaseConfig,
    tag: &TagReference,
    payload: &ReleasePayload,
) -> Option<String> {
    let at = PayloadCoordinates {
        namespace: facts.namespace().to_owned(),
        stream_name: config.name.clone(),
        imagestream_name: facts.target_name().to_owned(),
        imagestream_tag_name: tag.name.clone(),
    };
    let differs = |field: &str| Some(format!("its {field} is not what the stream gives it"));
    let spec = &payload.spec;
    if spec.payload_coordinates != at {
        return differs("spec.payloadCoordinates");
    }
    let wanted = creation_config(facts, config, &tag.name);
    let creation = &spec.payload_creation_config;
    // The stream may have got an alternate repository, or lost it, since the release was cut.
    let mirrors = [
        ReleaseMirrorCoordinates::default(),
        ReleaseMirrorCoordinates {
            namespace: facts.options.job_namespace.clone(),
            release_mirror_job_name: names::alternate_mirror_job(&tag.name),
        },
    ];
    if creation.release_creation_coordinates != wanted.release_creation_coordinates
        || creation.prow_coordinates != wanted.prow_coordinates
        || !mirrors.contains(&creation.release_mirror_coordinates)
    {
        return differs("spec.payloadCreationConfig");
    }
    if spec.payload_override.decided().is_some() {
        return None;
    }
    let wanted = match release_payload(facts, config, tag) {
        Ok(wanted) => wanted.spec.payload_verification_config.blocking_jobs,
        Err(problem) => return Some(format!("its jobs cannot be compared: {problem}")),
    };
    let blocking = &spec.payload_verification_config.blocking_jobs;
    let missing = wanted.iter().find(|job| !blocking.contains(job))?;
    Some(format!(
        "its blocking jobs lack {}, or have it with other settings than the stream",
        missing.name
    ))
}
