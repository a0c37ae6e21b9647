//! One's own writes, as a watch shows them.

use futures::future::BoxFuture;
use kube::Resource;

use super::Cache;
use crate::{
    echo::{Echo, Stand},
    key::Key,
};

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
