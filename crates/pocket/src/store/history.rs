//! What happened: the events that watches deliver and reads of the past undo.

use std::sync::Arc;

use jiff::Timestamp;

use super::Object;

/// What a write did to its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// There was none before.
    Added,
    /// It was there before.
    Modified,
    /// It is gone.
    Deleted,
}

/// One committed or sequenced write.
#[derive(Debug)]
pub struct Event {
    /// What it did.
    pub change: Change,
    /// The resource, such as `apps/deployments`.
    pub resource: Arc<str>,
    /// The place within the resource: `namespace/name`, or `name`.
    pub path: Arc<str>,
    /// The state after the write; after a delete, the last state at the delete's revision.
    pub object: Arc<Object>,
    /// The state before.
    pub previous: Option<Arc<Object>>,
    /// When it was sequenced.
    pub at: Timestamp,
}

/// What an event and its bookkeeping take beside the object's bytes.
const OVERHEAD: usize = 256;

impl Event {
    /// The revision of the write.
    pub fn revision(&self) -> u64 {
        self.object.revision()
    }

    /// The object after the write, if there is one.
    pub fn present(&self) -> Option<&Arc<Object>> {
        (self.change != Change::Deleted).then_some(&self.object)
    }

    /// Bytes that the history holds because of this event.
    pub(super) fn weight(&self) -> usize {
        OVERHEAD + self.object.json().len()
    }
}
