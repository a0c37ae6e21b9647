//! The contract with users and other programs: the ReleasePayload, the annotations and labels of objects,
//! and the part of Prow's ProwJob that is used. No I/O.

pub mod annotations;
pub mod conditions;
pub mod labels;
mod payload_spec;
mod payload_status;
mod prow_job;
mod shared_text;

pub use payload_spec::{
    CIConfiguration, Override, PayloadCoordinates, PayloadCreationConfig, PayloadOverride,
    PayloadType, PayloadVerificationConfig, ProwCoordinates, ReleaseCoordinates,
    ReleaseCreationCoordinates, ReleaseMirrorCoordinates, ReleasePayload, ReleasePayloadSpec,
    VerificationDataSource, release_payload_definition,
};
pub use payload_status::{
    CreationJobCoordinates, CreationJobStatus, JiraNotification, JobReference, JobRunCoordinates,
    JobRunResult, JobRunState, JobState, JobStatus, QualifierStatus, QualifiersSummary,
    ReleaseJobResult, ReleasePayloadStatus, UpgradeType, VerdictRecord,
};
pub use prow_job::{ProwJob, ProwJobRun, ProwJobSpec, ProwJobState, ProwJobStatus};
