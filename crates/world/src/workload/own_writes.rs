//! Waiting for own writes to reach the cache.

use kube::Resource;
use neap_kit::{builder::OWN_WRITE_TIMEOUT, watch::Cache};

/// Waits until `cache` has reached `version`, if a write returned one.
pub(crate) async fn wait_for_own_write<K>(cache: &Cache<K>, version: Option<String>)
where
    K: Resource + Send + Sync + 'static,
{
    if let Some(version) = version {
        let _ = cache.wait_for_version(&version, OWN_WRITE_TIMEOUT).await;
    }
}
