//! The conditions of a ReleasePayload and their reasons.

/// The release image was created.
pub const CREATED: &str = "PayloadCreated";
/// The release image could not be created.
pub const FAILED: &str = "PayloadFailed";
/// The release image was mirrored to the alternate repository.
pub const MIRRORED: &str = "PayloadMirrored";
/// The release image could not be mirrored.
pub const MIRROR_FAILED: &str = "PayloadMirrorFailed";
/// The release was accepted.
pub const ACCEPTED: &str = "PayloadAccepted";
/// The release was rejected.
pub const REJECTED: &str = "PayloadRejected";
/// The release has had no verdict for longer than its deadline. Ours.
pub const STUCK: &str = "PayloadStuck";

/// Reasons of conditions.
pub mod reasons {
    /// Of [`super::CREATED`], whatever its status.
    pub const CREATED: &str = "ReleasePayloadCreated";
    /// Of [`super::FAILED`], whatever its status.
    pub const FAILED: &str = "ReleasePayloadFailed";
    /// Of [`super::MIRRORED`], whatever its status.
    pub const MIRRORED: &str = "ReleasePayloadMirrored";
    /// Of [`super::MIRROR_FAILED`], whatever its status.
    pub const MIRROR_FAILED: &str = "ReleasePayloadMirrorFailed";
    /// Jobs decide.
    pub const ACCEPTED: &str = "ReleasePayloadAccepted";
    /// Jobs decide.
    pub const REJECTED: &str = "ReleasePayloadRejected";
    /// A user accepted it.
    pub const MANUALLY_ACCEPTED: &str = "ReleasePayloadManuallyAccepted";
    /// A user rejected it.
    pub const MANUALLY_REJECTED: &str = "ReleasePayloadManuallyRejected";
    /// There is no release image.
    pub const CREATION_JOB_FAILED: &str = "ReleasePayloadCreationJobFailed";
    /// Of [`super::STUCK`].
    pub const DEADLINE_EXCEEDED: &str = "DeadlineExceeded";
    /// Of [`super::STUCK`], once it is over.
    pub const PROGRESSING: &str = "Progressing";
}

/// Why a condition is neither true nor false, or what it waits for, is in its message.
pub const CREATION_COMPLETED: &str = "Release creation Job completed";
/// The creation Job failed and said nothing.
pub const CREATION_FAILED: &str = "Release creation Job failed";
/// The mirror Job completed.
pub const MIRROR_COMPLETED: &str = "Release mirror Job completed";
/// The mirror Job failed and said nothing.
pub const MIRROR_JOB_FAILED: &str = "Release mirror Job failed";
