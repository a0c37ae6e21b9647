//! One's own writes, seen again.

use std::time::Duration;

use kube::Resource;
use neap_kit::watch::Cache;

/// So long a write may take to come back by the watch. Late is no harm: names and victims are
/// chosen the same again.
pub(crate) const ECHO: Duration = Duration::from_secs(5);

/// Waits until the write that made `version`, if there was one, is known to `cache`.
pub(crate) async fn echoed<K>(cache: &Cache<K>, version: Option<String>)
where
    K: Resource + Send + Sync + 'static,
{
    if let Some(version) = version {
        let _ = cache.shows(&version, ECHO).await;
    }
}
