//! What came of creates.

use kube::{Resource, ResourceExt};
use neap_kit::{apply::Error, key::Key, planted, watch::Cache};

use super::echoed;

/// The newest object that was made, and one that was there already.
#[derive(Debug, Default)]
pub(crate) struct Made {
    newest: Option<String>,
    taken: Option<Key>,
}

impl Made {
    /// Notes that `object` was made as `made`, or was there.
    pub(crate) fn add<K: Resource<DynamicType = ()>>(&mut self, object: &K, made: Option<&K>) {
        match made {
            Some(made) => self.newest = made.resource_version(),
            None if planted!(TakenIsMade) => {}
            None => self.taken = Some(Key::of(object)),
        }
    }

    /// Waits until `cache` shows what was made, so that the next look does not miss it. If something
    /// was there already there has to be such a look: whether it is ours from an attempt whose
    /// answer was lost, or another's, only the cache says.
    pub(crate) async fn shown<K>(self, cache: &Cache<K>) -> Result<(), Error>
    where
        K: Resource + Send + Sync + 'static,
    {
        echoed(cache, self.newest).await;
        self.taken.map_or(Ok(()), |key| Err(Error::Replaced(key)))
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    use super::*;
    use crate::stage::Stage;

    #[tokio::test(start_paused = true)]
    async fn what_was_there_already_is_looked_at_again() {
        let stage = Stage::open(|_| Ok(Vec::new())).await;
        let cache = stage.site.all::<Pod>().unwrap();
        let metadata = json!({"namespace": "default", "name": "p"});
        let pod: Pod = serde_json::from_value(json!({"metadata": metadata})).unwrap();
        assert!(Made::default().shown(&cache).await.is_ok());
        let mut made = Made::default();
        made.add(&pod, None);
        let looked = made.shown(&cache).await;
        assert!(matches!(looked, Err(Error::Replaced(key)) if key == Key::of(&pod)));
    }
}
