//! The custom resource of operations: `kubectl get operations` lists them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Cause, StepList};
use crate::{key::Key, schema};

/// What to do, and to which object.
#[derive(
    CustomResource, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "neaptide.dev",
    version = "v1alpha1",
    kind = "Operation",
    doc = "Long-running work in steps, and its progress.",
    namespaced,
    status = "OperationStatus",
    derive = "PartialEq",
    shortname = "op",
    category = "neaptide",
    printcolumn = r#"{"name":"Work","type":"string","jsonPath":".spec.work","description":"The kind of work"}"#,
    printcolumn = r#"{"name":"Kind","type":"string","jsonPath":".spec.target.kind","priority":1}"#,
    printcolumn = r#"{"name":"Target","type":"string","jsonPath":".spec.target.name","description":"The object that the work is done to"}"#,
    printcolumn = r#"{"name":"Phase","type":"string","jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"Step","type":"string","jsonPath":".status.step","description":"The current step, or the last one"}"#,
    printcolumn = r#"{"name":"Progress","type":"string","jsonPath":".status.progress","description":"Steps done, of all steps"}"#,
    printcolumn = r#"{"name":"Message","type":"string","jsonPath":".status.message","priority":1}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct OperationSpec {
    /// The kind of work.
    pub work: String,
    /// The object that the work is done to.
    pub target: Target,
    /// The names of all steps, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<String>,
    /// Parameters of the steps.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
    /// When the operation fails if it has not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub deadline: Option<Timestamp>,
    /// Set it to end the operation: the running attempt is interrupted. Steps that are done are not undone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancel: bool,
    /// Why the operation is cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_reason: Option<String>,
}

/// The object that an operation works on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// The group and version of the object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// The kind of the object.
    pub kind: String,
    /// The namespace of the object; empty for cluster-scoped objects.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The name of the object.
    pub name: String,
}

/// The progress of the operation.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperationStatus {
    /// The phase of the operation.
    #[serde(default)]
    pub phase: Phase,
    /// The current step, or the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The number of steps that are done, and of all steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// The state of the operation, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The steps that were started, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepStatus>,
    /// Why a program cancelled the operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<Cause>,
    /// What the operation achieved, or what was found out about its failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Why the operation failed or was cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// Ready after success, Reconciling while it runs, Stalled after a failure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// The phase of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    #[default]
    Pending,
    Running,
    Succeeded,
    Failed,
    Cancelled,
}

/// A step that was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepStatus {
    /// The name of the step.
    pub name: String,
    /// The state of the step.
    pub state: super::StepState,
    /// The number of attempts that were started.
    #[schemars(schema_with = "schema::count")]
    pub attempts: u32,
    /// The number of attempts since the last one that had a result.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(schema_with = "schema::count")]
    pub interrupted: u32,
    /// When a poll of the condition was last recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub polled: Option<Timestamp>,
    /// The last attempts that failed, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<super::FailedAttempt>,
    /// When the step was started.
    #[schemars(schema_with = "schema::time")]
    pub started: Timestamp,
    /// When the step ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub ended: Option<Timestamp>,
    /// When the next attempt is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub due: Option<Timestamp>,
    /// Why the step failed, or what it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Operation {
    /// The operation `key`, which has not started and will run `step_list` on `target`.
    pub fn planned(key: &Key, step_list: &StepList, target: Target) -> Self {
        let steps = step_list.steps.iter().map(|step| step.name.to_owned());
        Self {
            metadata: ObjectMeta {
                namespace: Some(key.namespace().to_owned()),
                name: Some(key.name().to_owned()),
                ..ObjectMeta::default()
            },
            spec: OperationSpec {
                work: step_list.kind.to_owned(),
                target,
                steps: steps.collect(),
                ..OperationSpec::default()
            },
            status: None,
        }
    }
}
