//! One's own writes, seen again.

use kube::Resource;
use neap_kit::{watch::Cache, wiring::ECHO};

/// Waits until the write that made `version`, if there was one, is known to `cache`.
pub(crate) async fn echoed<K>(cache: &Cache<K>, version: Option<String>)
where
    K: Resource + Send + Sync + 'static,
{
    if let Some(version) = version {
        let _ = cache.shows(&version, ECHO).await;
    }
}
