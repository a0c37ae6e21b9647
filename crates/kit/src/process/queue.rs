//! What can be seen of a queue.

use serde::Serialize;

/// No more keys are named than this; the numbers are right all the same.
const NAMED: usize = 100;

/// A queue as it was when somebody looked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueState {
    /// Whose queue it is.
    pub controller: &'static str,
    /// Whether nothing is begun because another process leads.
    pub paused: bool,
    /// How many keys are worked on, and which.
    pub running: Keys,
    /// How many keys wait for their turn or for their time, and which.
    pub waiting: Keys,
    /// The keys that failed last time.
    pub failing: Keys,
}

/// Some keys by name, and how many there are.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Keys {
    /// How many there are.
    pub count: usize,
    /// The first of them, in order.
    pub keys: Vec<String>,
}

impl Keys {
    pub(crate) fn of(all: impl Iterator<Item = String>) -> Self {
        let mut keys: Vec<_> = all.collect();
        keys.sort_unstable();
        let count = keys.len();
        keys.truncate(NAMED);
        Self { count, keys }
    }
}
