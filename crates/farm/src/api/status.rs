//! The status of all five kinds.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use neap_kit::schema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Shard;

/// The status of a component.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComponentStatus {
    /// The state in a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub state: Option<State>,
    /// The number of pods.
    #[serde(default)]
    pub replicas: i32,
    /// The number of ready pods.
    #[serde(default)]
    pub ready_replicas: i32,
    /// The generation of the spec that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// The roll-out that runs, or that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<RolloutStatus>,
    /// Workers that are being drained. What is listed here is drained again after a restart of the
    /// scheduler.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drains: Vec<DrainStatus>,
    /// The shards that clients use, and their change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<StorageStatus>,
}

/// The state of a component in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// It has never been ready.
    Creating,
    /// It is being changed.
    Reconciling,
    /// All pods are ready and up to date.
    Ready,
    /// It was ready, and pods are not.
    NotReady,
    /// The workload does not exist; written by the original only.
    NotFound,
    /// It is being deleted.
    Deleting,
    /// A state of a later version.
    #[serde(other)]
    Unknown,
}

/// A roll-out of a component.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutStatus {
    /// What is rolled out.
    pub revision: String,
    /// When its first pod could be replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub started_at: Option<Timestamp>,
    /// Whether it has stopped because it does not succeed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// Operations that ran on the scheduler when it was restarted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_operations: Option<u32>,
}

/// A drain: workers that match the pattern get no new actions.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DrainStatus {
    /// The fields of the ids of the drained workers; all of the pool if empty.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pattern: BTreeMap<String, String>,
    /// Why: ScaleDown, RollOut, SchedulerRestart, Deletion or Cordon.
    pub reason: String,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub since: Option<Timestamp>,
    /// Since when the scheduler has it; absent before, and again after a restart of the scheduler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub applied_at: Option<Timestamp>,
    /// When its workers are stopped although actions run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub deadline: Option<Timestamp>,
    /// The number of actions that still ran when this was last counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<u32>,
    /// Whether it is over: its workers are idle or its deadline has passed, and its pods may end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub released: bool,
}

/// The shards of the storage.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StorageStatus {
    /// The shards that clients use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shards: Vec<Shard>,
    /// The hash of the sizes and blocks of the stores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub geometry: Option<String>,
    /// The change of the shards that is carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resharding: Option<ReshardingStatus>,
    /// The change that the spec asks for and that is not carried out yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<StoragePlanStatus>,
}

/// A change of the shards that is carried out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReshardingStatus {
    /// The shards before.
    pub from: Vec<Shard>,
    /// The shards after.
    pub to: Vec<Shard>,
    /// The stage.
    pub stage: ReshardingStage,
    /// Since when it is in this stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub since: Option<Timestamp>,
    /// The share of the keys that move, in percent.
    pub moved_percent: String,
}

/// The stages of a change of the shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum ReshardingStage {
    /// New shards start. Clients do not use them yet.
    #[default]
    Provisioning,
    /// Clients use the new shards, and read from the former where a blob is missing.
    Copying,
    /// Clients use only the new shards; those that are not used any more are stopped next.
    Finishing,
}

/// A change of the storage that waits.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StoragePlanStatus {
    /// What `spec.acknowledgedPlan` has to be set to.
    pub id: String,
    /// What it does.
    pub summary: String,
    /// The share of the keys that move, in percent.
    pub moved_percent: String,
    /// Whether it is carried out without an acknowledgement.
    pub safe: bool,
}
