//! The status of a ReleasePayload: results of its jobs, and the verdict as conditions.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use neap_kit::schema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::payload_spec::is_zero;

/// What has become of a release.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReleasePayloadStatus {
    /// The verdict, and what it is based on. Ordered by type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// The creation Job.
    #[serde(default)]
    pub release_creation_job_result: ReleaseJobResult,
    /// The mirror Job.
    #[serde(default)]
    pub release_mirror_job_result: ReleaseJobResult,
    /// Results of the jobs that have to pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocking_job_results: Vec<JobStatus>,
    /// Results of the jobs that inform.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub informing_job_results: Vec<JobStatus>,
    /// Results of the upgrade jobs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub upgrade_job_results: Vec<JobStatus>,
    /// The qualifiers that the release has earned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qualifiers_summary: Option<QualifiersSummary>,
    /// The generation of the spec that this status describes. Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What the verdict depends on and no other field has, so that it can be computed again. Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<VerdictRecord>,
}

/// A Job of the release and how it ended.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ReleaseJobResult {
    /// Which Job.
    #[serde(default)]
    pub coordinates: CreationJobCoordinates,
    /// How it ended.
    #[serde(default, skip_serializing_if = "CreationJobStatus::is_unset")]
    pub status: CreationJobStatus,
    /// What it does or did, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// Name and namespace of a Job.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CreationJobCoordinates {
    /// Its name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its namespace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
}

/// How a Job of the release ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum CreationJobStatus {
    /// Not looked at yet.
    #[default]
    #[serde(rename = "")]
    Unset,
    /// It completed.
    Success,
    /// It failed.
    Failed,
    /// It has not ended, or is not there.
    #[serde(other)]
    Unknown,
}

impl CreationJobStatus {
    /// Whether the Job has ended.
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Success | Self::Failed)
    }

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde passes a reference"
    )]
    fn is_unset(&self) -> bool {
        *self == Self::Unset
    }
}

/// A verification job and its runs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobStatus {
    /// Its key in the configuration of the stream.
    #[serde(
        rename = "ciConfigurationName",
        default,
        skip_serializing_if = "String::is_empty"
    )]
    pub name: String,
    /// The name of its Prow periodic.
    #[serde(
        rename = "ciConfigurationJobName",
        default,
        skip_serializing_if = "String::is_empty"
    )]
    pub job_name: String,
    /// How often it is run again after a failure.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub max_retries: i32,
    /// How many runs are analysed together.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub analysis_job_count: i32,
    /// The result of all runs together.
    #[serde(default, skip_serializing_if = "JobState::is_unset")]
    pub state: JobState,
    /// The runs, ordered by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<JobRunResult>,
}

/// The result of a verification job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum JobState {
    /// Not computed yet.
    #[default]
    #[serde(rename = "")]
    Unset,
    /// A run has not ended, or will be tried again.
    Pending,
    /// It failed, and will not be tried again.
    Failure,
    /// It passed.
    Success,
    /// It cannot be told.
    #[serde(other)]
    Unknown,
}

impl JobState {
    /// Whether the job has passed or failed.
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Success | Self::Failure)
    }

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde passes a reference"
    )]
    fn is_unset(&self) -> bool {
        *self == Self::Unset
    }
}

/// One run of a verification job.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobRunResult {
    /// Its ProwJob.
    #[serde(default)]
    pub coordinates: JobRunCoordinates,
    /// When it started.
    #[serde(default)]
    #[schemars(schema_with = "schema::time")]
    pub start_time: Option<Time>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub completion_time: Option<Time>,
    /// Its state.
    #[serde(default, skip_serializing_if = "JobRunState::is_unset")]
    pub state: JobRunState,
    /// Where its results are shown.
    #[serde(
        rename = "humanProwResultsURL",
        default,
        skip_serializing_if = "String::is_empty"
    )]
    pub url: String,
    /// Which kind of upgrade it tests.
    #[serde(default, skip_serializing_if = "UpgradeType::is_none")]
    pub upgrade_type: UpgradeType,
    /// The uid of its ProwJob. Ours.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Since when its ProwJob is gone, although it had not ended. Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub missing_since: Option<Time>,
}

/// Name, namespace and build cluster of a ProwJob.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct JobRunCoordinates {
    /// Its name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its namespace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The build cluster on which it runs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cluster: String,
}

/// The state of a run, as Prow names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum JobRunState {
    /// None was recorded.
    #[default]
    #[serde(rename = "")]
    Unset,
    /// Prow knows it.
    Triggered,
    /// Prow looks for a build cluster.
    Scheduling,
    /// It runs.
    Pending,
    /// It failed.
    Failure,
    /// It passed.
    Success,
    /// It was ended.
    Aborted,
    /// Prow could not run it.
    Error,
    /// Its ProwJob is gone, or has a state of no known name.
    #[serde(other)]
    Unknown,
}

impl JobRunState {
    /// Whether the run is over.
    pub fn has_ended(self) -> bool {
        matches!(
            self,
            Self::Failure | Self::Success | Self::Aborted | Self::Error
        )
    }

    /// Whether the run is over and did not pass.
    pub fn has_failed(self) -> bool {
        self.has_ended() && self != Self::Success
    }

    /// Whether the run is on its way.
    pub fn is_running(self) -> bool {
        matches!(self, Self::Triggered | Self::Scheduling | Self::Pending)
    }

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde passes a reference"
    )]
    fn is_unset(&self) -> bool {
        *self == Self::Unset
    }
}

/// Which kind of upgrade a run tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum UpgradeType {
    /// Within a minor version.
    #[serde(rename = "upgrade")]
    Upgrade,
    /// To a later minor version.
    #[serde(rename = "upgrade-minor")]
    UpgradeMinor,
    /// None.
    #[default]
    #[serde(rename = "", other)]
    None,
}

impl UpgradeType {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde passes a reference"
    )]
    fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// The qualifiers of a release.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QualifiersSummary {
    /// What the failed qualifiers forbid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failure_labels: Vec<String>,
    /// The qualifiers by id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub qualifiers: BTreeMap<String, QualifierStatus>,
}

/// One qualifier of a release.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QualifierStatus {
    /// The jobs that decide it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<JobReference>,
    /// The result of these jobs together.
    #[serde(default, skip_serializing_if = "JobState::is_unset")]
    pub aggregate_state: JobState,
    /// The name of its badge.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub badge_name: String,
    /// Whether the release has the badge.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub badge_earned: bool,
    /// Whether the badge is shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub badge_propagated: bool,
    /// Whether a team decides it and not a job.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub approval: bool,
    /// What it forbids when it fails.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failure_labels: Vec<String>,
    /// Issues that were opened about it, by thread.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub jira_notifications: BTreeMap<String, JiraNotification>,
}

/// Names a verification job.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct JobReference {
    /// Its key in the configuration of the stream.
    #[serde(rename = "ciConfigurationName", default)]
    pub name: String,
    /// The name of its Prow periodic.
    #[serde(rename = "ciConfigurationJobName", default)]
    pub job_name: String,
}

/// An issue that was opened about a qualifier.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JiraNotification {
    /// The issue.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub issue_key: String,
    /// The escalation that is active.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub active_escalation: String,
    /// Its priority.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub active_priority: String,
    /// Whether conditions have improved since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub abated: bool,
    /// When it changed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub last_transition_time: Option<Time>,
}

/// What a verdict depends on besides the spec and the results: its memory. With the fields above it is
/// everything that `neap release replay` needs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerdictRecord {
    /// The phase that the conditions mean.
    #[serde(default)]
    pub phase: String,
    /// The gate of the mirror has been open. It does not close again, so that a mirror that is looked at
    /// again cannot take a verdict back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mirror_gate_passed: bool,
    /// A hash of all facts of the verdict. It shows whether a status was edited.
    #[serde(default)]
    pub facts: String,
    /// Runs beyond the configured retries that users asked for, by job.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra_attempts: BTreeMap<String, i32>,
    /// ProwJobs that claim to be runs of the payload and are not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forged: Vec<String>,
    /// Why ProwJobs could not be told from those of others, so that nothing new was known of any run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unproved: String,
}
