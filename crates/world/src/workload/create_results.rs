//! The results of creates.

use kube::{Resource, ResourceExt};
use neap_kit::{apply::Error, key::Key, planted, watch::Cache};

use super::wait_for_own_write;

/// The resource version of the newest created object, and the key of an object that existed
/// already.
#[derive(Debug, Default)]
pub(crate) struct CreateResults {
    newest: Option<String>,
    existing: Option<Key>,
}

impl CreateResults {
    /// Records that `object` was created as `made`, or that it existed already.
    pub(crate) fn add<K: Resource<DynamicType = ()>>(&mut self, object: &K, made: Option<&K>) {
        match made {
            Some(made) => self.newest = made.resource_version(),
            None if planted!(TakenIsMade) => {}
            None => self.existing = Some(Key::of(object)),
        }
    }

    /// Waits until `cache` contains the created objects, so that the next reconcile sees them. If
    /// an object existed already, the reconcile is repeated: only the cache shows whether it is
    /// ours, from an attempt whose answer was lost, or another owner's.
    pub(crate) async fn wait_until_cached<K>(self, cache: &Cache<K>) -> Result<(), Error>
    where
        K: Resource + Send + Sync + 'static,
    {
        wait_for_own_write(cache, self.newest).await;
        self.existing
            .map_or(Ok(()), |key| Err(Error::Conflict(key)))
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    use super::*;
    use crate::stage::TestCluster;

    #[tokio::test(start_paused = true)]
    async fn an_object_that_existed_already_causes_another_reconcile() {
        let cluster = TestCluster::start(|_| Ok(Vec::new())).await;
        let cache = cluster.context.cache::<Pod>().unwrap();
        let metadata = json!({"namespace": "default", "name": "p"});
        let pod: Pod = serde_json::from_value(json!({"metadata": metadata})).unwrap();
        assert!(
            CreateResults::default()
                .wait_until_cached(&cache)
                .await
                .is_ok()
        );
        let mut made = CreateResults::default();
        made.add(&pod, None);
        let result = made.wait_until_cached(&cache).await;
        assert!(matches!(result, Err(Error::Conflict(key)) if key == Key::of(&pod)));
    }
}
