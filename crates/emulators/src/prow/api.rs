//! ProwJobs, as far as they are used here.

use std::fmt;

use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResource;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What is to be run. Fields that are not here are kept by the API server and not looked at.
#[derive(CustomResource, Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[kube(
    group = "prow.k8s.io",
    version = "v1",
    kind = "ProwJob",
    plural = "prowjobs",
    shortname = "pj",
    namespaced,
    status = "ProwJobStatus",
    derive = "PartialEq",
    schema = "disabled"
)]
pub struct ProwJobSpec {
    /// `periodic`, `presubmit`, `postsubmit` or `batch`.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// Who runs it; only `kubernetes` is taken.
    #[serde(default)]
    pub agent: String,
    /// The build cluster.
    #[serde(default)]
    pub cluster: String,
    /// The namespace of its pods.
    #[serde(default)]
    pub namespace: String,
    /// The name of the job, which many ProwJobs have.
    #[serde(default)]
    pub job: String,
    /// The code under test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refs: Option<Value>,
    /// More code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra_refs: Vec<Value>,
    /// The most ProwJobs of this job that run at a time; zero for any number.
    #[serde(default)]
    pub max_concurrency: i64,
    /// The pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_spec: Option<Value>,
    /// Of it, the timeout counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decoration_config: Option<Value>,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProwJobStatus {
    /// When it was triggered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Timestamp>,
    /// When its Job was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_time: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Timestamp>,
    /// Where it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<ProwJobState>,
    /// The same in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Where its log is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Its pod.
    #[serde(default, rename = "pod_name", skip_serializing_if = "Option::is_none")]
    pub pod_name: Option<String>,
    /// The number of the run.
    #[serde(default, rename = "build_id", skip_serializing_if = "Option::is_none")]
    pub build_id: Option<String>,
}

/// The state of a ProwJob.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProwJobState {
    /// A build cluster is being chosen.
    Scheduling,
    /// It is to be started.
    Triggered,
    /// Its Job exists.
    Pending,
    /// It ended well.
    Success,
    /// It ended badly.
    Failure,
    /// It was stopped.
    Aborted,
    /// It could not be run.
    Error,
}

impl ProwJobState {
    /// Whether nothing follows.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Scheduling | Self::Triggered | Self::Pending)
    }
}

impl fmt::Display for ProwJobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scheduling => "scheduling",
            Self::Triggered => "triggered",
            Self::Pending => "pending",
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Aborted => "aborted",
            Self::Error => "error",
        })
    }
}

/// The definition. As in Prow, the status is no subresource: clients set it when they create a ProwJob.
pub(super) fn definition() -> Result<CustomResourceDefinition, serde_json::Error> {
    let (text, any) = (json!({"type": "string"}), json!({"type": "object"}));
    let column =
        |name: &str, path: &str, kind: &str| json!({"name": name, "jsonPath": path, "type": kind});
    let version = json!({
        "name": "v1",
        "served": true,
        "storage": true,
        "schema": {"openAPIV3Schema": {
            "type": "object",
            "properties": {
                "apiVersion": text, "kind": text, "metadata": any,
                "spec": spec_schema(), "status": status_schema(),
            },
        }},
        "additionalPrinterColumns": [
            column("Job", ".spec.job", "string"),
            column("BuildId", ".status.build_id", "string"),
            column("Type", ".spec.type", "string"),
            column("StartTime", ".status.startTime", "date"),
            column("CompletionTime", ".status.completionTime", "date"),
            column("State", ".status.state", "string"),
        ],
    });
    serde_json::from_value(json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "prowjobs.prow.k8s.io",
            // The API server asks for it in groups that end in k8s.io.
            "annotations": {
                "api-approved.kubernetes.io": "https://github.com/kubernetes/test-infra/pull/8669",
            },
        },
        "spec": {
            "group": "prow.k8s.io",
            "scope": "Namespaced",
            "names": {
                "kind": "ProwJob", "listKind": "ProwJobList",
                "plural": "prowjobs", "singular": "prowjob", "shortNames": ["pj"],
            },
            "versions": [version],
        },
    }))
}

fn spec_schema() -> Value {
    let text = json!({"type": "string"});
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "properties": {
            "type": {"type": "string", "enum": ["presubmit", "postsubmit", "periodic", "batch"]},
            "agent": text, "cluster": text, "namespace": text, "job": text,
            "max_concurrency": {"type": "integer", "minimum": 0},
            "refs": any, "pod_spec": any, "decoration_config": any,
            "extra_refs": {"type": "array", "items": any},
        },
    })
}

fn status_schema() -> Value {
    let text = json!({"type": "string"});
    let time = json!({"type": "string", "format": "date-time"});
    let states = [
        "",
        "scheduling",
        "triggered",
        "pending",
        "success",
        "failure",
        "aborted",
        "error",
    ];
    json!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "properties": {
            "state": {"type": "string", "enum": states},
            "startTime": time, "pendingTime": time, "completionTime": time,
            "description": text, "url": text, "pod_name": text, "build_id": text,
        },
    })
}
