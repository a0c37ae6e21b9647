//! One's own writes, as a watch shows them.

use futures::future::BoxFuture;
use kube::Resource;

use super::Cache;
use crate::key::Key;

/// What a watch has shown of a write once it has caught up with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sign {
    /// This version or a newer one, or a whole listing begun after so many others.
    Version { version: u64, listings: u64 },
    /// That the object is gone or on its way out. The answer to a delete names no version.
    Gone { key: Key, uid: String },
}

/// How far a watch has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stand {
    /// The newest version of which anything was heard.
    pub reached: u64,
    /// How many listings were begun.
    pub begun: u64,
    /// Which of them was the last to be complete; the first is 1.
    pub complete: Option<u64>,
}

/// A cache of any type, to those who have written.
pub(crate) trait Echo: Send + Sync {
    fn stand(&self) -> Stand;

    /// Whether the object is there, the same, and to stay.
    fn holds(&self, key: &Key, uid: &str) -> bool;

    /// Resolves once something was taken in after this was called.
    fn moved(&self) -> BoxFuture<'static, ()>;

    fn shows(&self, sign: &Sign) -> bool {
        match sign {
            Sign::Version { version, listings } => {
                let Stand {
                    reached, complete, ..
                } = self.stand();
                reached >= *version || complete.is_some_and(|complete| complete > *listings)
            }
            Sign::Gone { key, uid } => !self.holds(key, uid),
        }
    }
}

impl<K: Resource + Send + Sync + 'static> Echo for Cache<K> {
    fn stand(&self) -> Stand {
        self.stand()
    }

    fn holds(&self, key: &Key, uid: &str) -> bool {
        self.get(key).is_some_and(|object| {
            let meta = object.meta();
            meta.uid.as_deref() == Some(uid) && meta.deletion_timestamp.is_none()
        })
    }

    fn moved(&self) -> BoxFuture<'static, ()> {
        Box::pin(self.moved())
    }
}
