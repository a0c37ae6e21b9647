//! When a watch has caught up with a write.

use std::{collections::BTreeMap, fmt, sync::Arc};

use futures::future::BoxFuture;
use serde_json::Value;

use crate::key::Key;

/// What a watch shows once it has caught up with a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Expectation {
    /// This version or a newer one, or a complete listing that began after the write: one with a
    /// higher number than `listings_begun`, the number of listings begun when the write returned.
    Version { version: u64, listings_begun: u64 },
    /// The object is gone or has a deletion timestamp. The response to a delete names no version.
    Gone { key: Key, uid: String },
    /// The object has left the selection of the watch. The watch shows it as a deletion; if another write
    /// has brought it back since, the version is shown.
    Left {
        key: Key,
        uid: String,
        version: u64,
        listings_begun: u64,
    },
}

impl Expectation {
    pub(crate) fn is_met_by(&self, watch: &dyn ObservedWatch) -> bool {
        match self {
            Self::Version {
                version,
                listings_begun,
            } => has_reached(watch.position(), *version, *listings_begun),
            Self::Left {
                key,
                uid,
                version,
                listings_begun,
            } => {
                !watch.contains(key, uid)
                    || has_reached(watch.position(), *version, *listings_begun)
            }
            Self::Gone { key, uid } => !watch.contains(key, uid),
        }
    }
}

fn has_reached(position: WatchPosition, version: u64, listings_begun: u64) -> bool {
    let completed = position.listing_completed;
    position.reached >= version || completed.is_some_and(|completed| completed > listings_begun)
}

/// How far a watch has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchPosition {
    /// The newest resource version that the watch has received.
    pub reached: u64,
    /// The number of listings that were begun.
    pub listings_begun: u64,
    /// The number of the last complete listing, counted from 1.
    pub listing_completed: Option<u64>,
}

/// A watch of any type, as seen by the code that waits for its own writes.
pub trait ObservedWatch: Send + Sync {
    /// How far it has come.
    fn position(&self) -> WatchPosition;

    /// Whether it shows the object with this uid, and without a deletion timestamp.
    fn contains(&self, key: &Key, uid: &str) -> bool;

    /// Resolves once the watch has received anything after this call.
    fn next_change(&self) -> BoxFuture<'static, ()>;
}

/// All watches of a process.
pub trait ObservedWatches: fmt::Debug + Send + Sync {
    /// The watches of all objects at an address of this cluster, by the types they decode to: there may be
    /// one of whole objects and one of metadata only. Watches with a selector are left out.
    fn at(&self, address: &str) -> Vec<(&'static str, Arc<dyn ObservedWatch>)>;

    /// All watches at an address of a cluster, also those of a selection.
    fn at_cluster(&self, cluster: &str, address: &str) -> Vec<WatchAt>;
}

/// Whether a watch selects an object.
pub type IsSelected = Arc<dyn Fn(&Value) -> bool + Send + Sync>;

/// A watch, and which objects it selects.
#[derive(Clone)]
pub struct WatchAt {
    /// The name of the type that it decodes to.
    pub type_name: &'static str,
    /// The watch.
    pub watch: Arc<dyn ObservedWatch>,
    /// Which objects it selects; none for all.
    pub selector: Option<IsSelected>,
}

impl fmt::Debug for WatchAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchAt")
            .field("type_name", &self.type_name)
            .field("selected", &self.selector.is_some())
            .finish_non_exhaustive()
    }
}

impl dyn ObservedWatches + '_ {
    /// How far the watches of all objects at an address have come, by the types they decode to.
    pub fn positions(&self, address: &str) -> BTreeMap<&'static str, WatchPosition> {
        let watches = self.at(address).into_iter();
        watches
            .map(|(name, watch)| (name, watch.position()))
            .collect()
    }

    /// Whether a watch of all objects at an address still shows this object without a deletion
    /// timestamp.
    pub fn contains(&self, address: &str, key: &Key, uid: &str) -> bool {
        let watches = self.at(address);
        watches.iter().any(|(_, watch)| watch.contains(key, uid))
    }
}
