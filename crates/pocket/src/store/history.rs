//! Events: watches deliver them, and reads of the past undo them.

use std::sync::Arc;

use jiff::Timestamp;

use super::Object;

/// The effect of a write on its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Added,
    Modified,
    Deleted,
}

/// One committed or sequenced write.
#[derive(Debug)]
pub struct Event {
    pub change: Change,
    /// The resource, such as `apps/deployments`.
    pub resource: Arc<str>,
    /// The path within the resource: `namespace/name`, or `name`.
    pub path: Arc<str>,
    /// The state after the write; after a delete, the last state at the delete's revision.
    pub object: Arc<Object>,
    pub previous: Option<Arc<Object>>,
    /// When it was sequenced.
    pub at: Timestamp,
}

/// Bytes of an event beside the object's.
const EVENT_OVERHEAD_BYTES: usize = 256;

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
        EVENT_OVERHEAD_BYTES + self.object.json().len()
    }
}
