//! The backends through which clients reach the shards.

use serde_json::{Map, Value, json};

use crate::api::{Shard, ports};

/// The shards of a farm, as clients use them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SharedStorage {
    /// The name of the BuildbarnStorage.
    pub name: String,
    /// The shards in the order of the replicas.
    pub shards: Vec<Shard>,
    /// The former shards, from which blobs are still read.
    pub former: Option<Vec<Shard>>,
    /// The number of shards that are reachable, if some are still to start.
    pub replicas: usize,
}

/// The address of a shard.
pub fn shard_address(storage: &str, namespace: &str, replica: usize) -> String {
    let port = ports::STORAGE;
    format!("{storage}-{replica}.{storage}.{namespace}:{port}")
}

impl SharedStorage {
    /// The backend of any store: shards, or while they change, the new ones with the former as a fallback.
    pub(super) fn backend(&self, namespace: &str) -> Value {
        let current = self.sharding(&self.shards, namespace);
        match &self.former {
            None => current,
            Some(former) => json!({"readFallback": {
                "primary": current,
                "secondary": self.sharding(former, namespace),
                "replicator": {"local": {}},
            }}),
        }
    }

    fn sharding(&self, shards: &[Shard], namespace: &str) -> Value {
        let shards: Map<_, _> = shards
            .iter()
            .enumerate()
            .map(|(replica, shard)| {
                let address = shard_address(&self.name, namespace, replica);
                let backend = json!({"grpc": {"client": {"address": address}}});
                let value = json!({"backend": backend, "weight": shard.weight});
                (shard.key.clone(), value)
            })
            .collect();
        json!({"sharding": {"shards": shards}})
    }
}
