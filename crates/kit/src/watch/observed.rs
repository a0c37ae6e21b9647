//! A cache as a watch that shows this process its own writes.

use futures::future::BoxFuture;

use super::{Cache, CachedObject};
use crate::{
    key::Key,
    own_writes::{ObservedWatch, WatchPosition},
};

impl<K: CachedObject + Send + Sync + 'static> ObservedWatch for Cache<K> {
    fn position(&self) -> WatchPosition {
        self.position()
    }

    fn contains(&self, key: &Key, uid: &str) -> bool {
        self.get(key)
            .is_some_and(|object| object.has_uid(uid) && !object.is_terminating())
    }

    fn next_change(&self) -> BoxFuture<'static, ()> {
        Box::pin(self.next_change())
    }
}
