//! An operation as an object, so that `kubectl get operations` shows what is under way.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Cause, Script};
use crate::{key::Key, schema};

/// What is to be done, and to what.
#[derive(
    CustomResource, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "neaptide.dev",
    version = "v1alpha1",
    kind = "Operation",
    doc = "Long work in steps: what is to be done, and what became of it so far.",
    namespaced,
    status = "OperationStatus",
    derive = "PartialEq",
    shortname = "op",
    category = "neaptide",
    printcolumn = r#"{"name":"Work","type":"string","jsonPath":".spec.work","description":"What kind of work it is"}"#,
    printcolumn = r#"{"name":"Kind","type":"string","jsonPath":".spec.target.kind","priority":1}"#,
    printcolumn = r#"{"name":"Target","type":"string","jsonPath":".spec.target.name","description":"What it is done to"}"#,
    printcolumn = r#"{"name":"Phase","type":"string","jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"Step","type":"string","jsonPath":".status.step","description":"The step that is under way or was the last"}"#,
    printcolumn = r#"{"name":"Progress","type":"string","jsonPath":".status.progress","description":"Steps that are done, of all"}"#,
    printcolumn = r#"{"name":"Message","type":"string","jsonPath":".status.message","priority":1}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct OperationSpec {
    /// What kind of work it is.
    pub work: String,
    /// What it is done to.
    pub target: Target,
    /// The names of all steps, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<String>,
    /// What the steps need to know.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
    /// Set it to end the operation before its next step. Steps that are done are not undone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancel: bool,
    /// Why it shall end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_reason: Option<String>,
}

/// An object that something is done to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// Its group and version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace, if it is in one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// What became of it so far.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperationStatus {
    /// Where it stands.
    #[serde(default)]
    pub phase: Phase,
    /// The step that is under way, or was the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// How many steps are done, of how many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// Where it stands, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The steps that were begun, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepStatus>,
    /// Why it shall not go on, if a program said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<Cause>,
    /// Why it ended without having succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// Ready once it has succeeded; Reconciling while it goes on; Stalled if it failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// The generation of the spec that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// Where an operation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    #[default]
    Pending,
    Running,
    Succeeded,
    Failed,
    Cancelled,
}

/// One step that was begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepStatus {
    /// The step's name.
    pub name: String,
    /// Where it stands.
    pub state: super::State,
    /// How many attempts were begun.
    #[schemars(schema_with = "schema::count")]
    pub attempts: u32,
    /// When it was begun.
    #[schemars(schema_with = "schema::time")]
    pub started: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub ended: Option<Timestamp>,
    /// When the next attempt is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub due: Option<Timestamp>,
    /// Why it failed, or what it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
}

impl Operation {
    /// The operation `key`, which does what `script` says to `target` and has not begun.
    pub fn planned(key: &Key, script: &Script, target: Target) -> Self {
        let steps = script.steps.iter().map(|step| step.name.to_owned());
        Self {
            metadata: ObjectMeta {
                namespace: Some(key.namespace().to_owned()),
                name: Some(key.name().to_owned()),
                ..ObjectMeta::default()
            },
            spec: OperationSpec {
                work: script.kind.to_owned(),
                target,
                steps: steps.collect(),
                ..OperationSpec::default()
            },
            status: None,
        }
    }
}
