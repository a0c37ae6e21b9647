//! The BuildbarnStorage: the shards that keep blobs and action results.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ComponentStatus, PodOptions, parse_quantity, schemas};

/// The storage of a farm. Each replica is a shard.
#[derive(CustomResource, Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "buildbarn.io",
    version = "v1alpha1",
    kind = "BuildbarnStorage",
    plural = "buildbarnstorages",
    doc = "The storage of a Buildbarn farm.",
    namespaced,
    status = "ComponentStatus",
    derive = "PartialEq",
    derive = "Default",
    printcolumn = r#"{"name":"State","type":"string","jsonPath":".status.state"}"#,
    printcolumn = r#"{"name":"Replicas","type":"integer","jsonPath":".status.replicas"}"#,
    printcolumn = r#"{"name":"Ready","type":"integer","jsonPath":".status.readyReplicas"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct BuildbarnStorageSpec {
    /// The image; a tested version of bb-storage if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The number of shards; 2 if absent. A change is staged: see `resharding`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schemas::shard_count")]
    pub replicas: Option<i32>,
    /// A ConfigMap with the user's own configuration; rendered from this spec if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_name: Option<String>,
    /// Secrets for pulling the images.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schemas::references")]
    pub image_pull_secrets: Vec<Value>,
    /// Requests and limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schemas::resources")]
    pub resources: Option<Value>,
    /// The nodes on which it may run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Taints that it tolerates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schemas::objects")]
    pub tolerations: Vec<Value>,
    /// The volumes `cas`, `ac` and `fsac`; 33Gi, 1Gi and 1Gi if absent. They may grow and never shrink.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schemas::objects")]
    pub volume_claim_templates: Vec<Value>,
    /// More settings of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<PodOptions>,
    /// The sizes of the stores on each shard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stores: Option<Stores>,
    /// The key and the weight of each shard, in the order of the replicas; the number of the replica and 1
    /// if absent. A key is the identity of a shard: a new key moves all of its blobs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 500))]
    pub shards: Vec<Shard>,
    /// How a change of the shards is carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resharding: Option<Resharding>,
    /// The id of the plan in the status that may be carried out although it loses data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged_plan: Option<String>,
    /// The largest message between the programs of the farm; 2Mi if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schemas::quantity")]
    pub maximum_message_size: Option<String>,
}

/// A shard of the storage.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Shard {
    /// The identity of the shard.
    pub key: String,
    /// Its share of the blobs, in relation to the other weights; 1 if absent.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 65_535))]
    pub weight: u32,
}

fn one() -> u32 {
    1
}

/// How a change of the shards is carried out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Resharding {
    /// How long blobs are also read from their former shard, and copied; one day if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 31_536_000))]
    pub window_seconds: Option<i64>,
}

/// The stores of a shard.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Stores {
    /// Files and directories.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cas: Option<Store>,
    /// Results of actions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ac: Option<Store>,
    /// Profiles of file accesses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fsac: Option<Store>,
}

/// A store. Changing its sizes or blocks drops its content.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Store {
    /// The size of the file with the blobs. The largest blob has the size of a block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schemas::quantity")]
    pub size: Option<String>,
    /// The size of the index; 66 bytes for each slot, of which there should be 2 to 10 for each blob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schemas::quantity")]
    pub index_size: Option<String>,
    /// Blocks whose blobs are copied to new ones when they are used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub old_blocks: Option<i32>,
    /// Blocks that are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub current_blocks: Option<i32>,
    /// Blocks that are written; 1 for all stores but `cas`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub new_blocks: Option<i32>,
    /// Blocks that are free for readers of evicted ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub spare_blocks: Option<i32>,
}

/// The numbers of a store. A store that starts with other numbers is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StoreGeometry {
    /// The size of the file with the blobs.
    pub size: u64,
    /// The size of the index.
    pub index_size: u64,
    /// Old blocks.
    pub old_blocks: i32,
    /// Current blocks.
    pub current_blocks: i32,
    /// New blocks.
    pub new_blocks: i32,
    /// Spare blocks.
    pub spare_blocks: i32,
}

impl StoreGeometry {
    /// The geometry of a store; none if a size is no quantity.
    pub fn of(store: Option<&Store>, defaults: Self) -> Option<Self> {
        let Some(store) = store else {
            return Some(defaults);
        };
        let size = |text: &Option<String>, default| match text {
            Some(text) => parse_quantity(text),
            None => Some(default),
        };
        Some(Self {
            size: size(&store.size, defaults.size)?,
            index_size: size(&store.index_size, defaults.index_size)?,
            old_blocks: store.old_blocks.unwrap_or(defaults.old_blocks),
            current_blocks: store.current_blocks.unwrap_or(defaults.current_blocks),
            new_blocks: store.new_blocks.unwrap_or(defaults.new_blocks),
            spare_blocks: store.spare_blocks.unwrap_or(defaults.spare_blocks),
        })
    }

    /// The number of blocks.
    pub fn blocks(&self) -> u64 {
        let blocks = [
            self.old_blocks,
            self.current_blocks,
            self.new_blocks,
            self.spare_blocks,
        ];
        blocks.iter().map(|it| u64::from(it.unsigned_abs())).sum()
    }

    /// The size of the largest blob that can be stored.
    pub fn block_size(&self) -> u64 {
        self.size / self.blocks().max(1)
    }

    /// Files and directories, unless the spec says otherwise.
    pub const CAS: Self = Self {
        size: 32 << 30,
        index_size: 400 << 20,
        old_blocks: 8,
        current_blocks: 24,
        new_blocks: 3,
        spare_blocks: 3,
    };
    /// Results of actions, unless the spec says otherwise. The index has twice the slots of upstream's
    /// example, whose index is smaller than its own advice.
    pub const AC: Self = Self {
        size: 20 << 20,
        index_size: 4 << 20,
        old_blocks: 8,
        current_blocks: 24,
        new_blocks: 1,
        spare_blocks: 3,
    };
}
