//! A controller that writes once for each change.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use neap_kit::{apply::Writer, controller::Outcome, key::Key, watch::Cache};

/// Annotation with the number that the object had at the last reconcile.
const LAST_NUMBER: &str = "load.neaptide.dev/seen";
/// Time for an own write to appear in the cache.
const OWN_WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// Copies the number of each object into an annotation of it.
#[derive(Debug, Clone)]
pub(super) struct Mirror {
    pub(super) cache: Cache<ConfigMap>,
    pub(super) writer: Writer,
}

impl Mirror {
    pub(super) async fn reconcile(&self, key: &Key) -> Result<Outcome> {
        let Some(found) = self.cache.get(key) else {
            return Ok(Outcome::Gone);
        };
        let number = found.data.as_ref().and_then(|data| data.get("number"));
        if found.annotations().get(LAST_NUMBER) == number {
            return Ok(Outcome::Done);
        }
        let mut wanted = (*found).clone();
        let number = number.cloned().unwrap_or_default();
        wanted
            .annotations_mut()
            .insert(LAST_NUMBER.to_owned(), number);
        let written = self.writer.replace(&wanted).await?;
        let version = written.resource_version().unwrap_or_default();
        self.cache
            .wait_for_version(&version, OWN_WRITE_TIMEOUT)
            .await?;
        Ok(Outcome::Done)
    }
}
