//! A cache as a watch that shows this process its own writes.

use futures::future::BoxFuture;
use kube::Resource;

use super::Cache;
use crate::{
    key::Key,
    own_writes::{ObservedWatch, WatchPosition},
};

impl<K: Resource + Send + Sync + 'static> ObservedWatch for Cache<K> {
    fn position(&self) -> WatchPosition {
        self.position()
    }

    fn contains(&self, key: &Key, uid: &str) -> bool {
        self.get(key).is_some_and(|object| {
            let meta = object.meta();
            meta.uid.as_deref() == Some(uid) && meta.deletion_timestamp.is_none()
        })
    }

    fn next_change(&self) -> BoxFuture<'static, ()> {
        Box::pin(self.next_change())
    }
}
