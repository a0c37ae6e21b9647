//! ProwJobs: whole ones, which are created, and the part of them that results are read from.

mod run;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use self::run::ProwJobRun;

/// What Prow runs.
#[derive(CustomResource, Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[kube(
    group = "prow.k8s.io",
    version = "v1",
    kind = "ProwJob",
    plural = "prowjobs",
    namespaced,
    status = "ProwJobStatus",
    derive = "PartialEq",
    derive = "Default",
    schema = "disabled"
)]
pub struct ProwJobSpec {
    /// The kind of job; ours are `periodic`.
    #[serde(rename = "type", default, skip_serializing_if = "String::is_empty")]
    pub type_: String,
    /// What runs it, such as `kubernetes`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub agent: String,
    /// The build cluster.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cluster: String,
    /// The namespace of the pod.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The name of the job.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub job: String,
    /// The pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_spec: Option<Value>,
    /// Everything else that the periodic has.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// How a ProwJob is doing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProwJobStatus {
    /// When it was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When it began to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_time: Option<Time>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// Its state.
    #[serde(default)]
    pub state: ProwJobState,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Where its results are shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// The state of a ProwJob.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProwJobState {
    /// None yet.
    #[default]
    #[serde(rename = "")]
    Unset,
    /// Prow looks for a build cluster.
    Scheduling,
    /// Prow knows it.
    Triggered,
    /// It runs.
    Pending,
    /// It passed.
    Success,
    /// It failed.
    Failure,
    /// It was ended.
    Aborted,
    /// Prow could not run it.
    Error,
    /// A state of no known name.
    #[serde(other)]
    Unknown,
}
