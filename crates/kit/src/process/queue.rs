//! The state of a queue, for people and metrics.

use serde::Serialize;

/// The number of keys that are listed by name; the counts include all.
const MAX_LISTED_KEYS: usize = 100;

/// A snapshot of a controller's queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueState {
    /// The name of the controller.
    pub controller: &'static str,
    /// Whether no reconcile starts because another process leads.
    pub paused: bool,
    /// The keys that are being reconciled.
    pub running: KeyList,
    /// The keys that are ready or delayed.
    pub waiting: KeyList,
    /// The keys whose last reconcile failed.
    pub failing: KeyList,
}

/// A number of keys, and the first of them by name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct KeyList {
    /// The number of all keys.
    pub count: usize,
    /// The first keys, sorted.
    pub keys: Vec<String>,
}

impl KeyList {
    pub(crate) fn new(all: impl Iterator<Item = String>) -> Self {
        let mut keys: Vec<_> = all.collect();
        keys.sort_unstable();
        let count = keys.len();
        keys.truncate(MAX_LISTED_KEYS);
        Self { count, keys }
    }
}
