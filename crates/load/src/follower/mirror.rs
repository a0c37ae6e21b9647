//! A controller that has one thing to write for each change.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use neap_kit::{apply::Hand, controller::Outcome, key::Key, watch::Cache};

/// The number that an object had when it was last looked at.
const SEEN: &str = "load.neaptide.dev/seen";
/// How long a write may take to come back.
const ECHO: Duration = Duration::from_secs(10);

/// Writes the number of each object into an annotation of it.
#[derive(Debug, Clone)]
pub(super) struct Mirror {
    pub(super) cache: Cache<ConfigMap>,
    pub(super) hand: Hand,
}

impl Mirror {
    pub(super) async fn reconcile(&self, key: &Key) -> Result<Outcome> {
        let Some(found) = self.cache.get(key) else {
            return Ok(Outcome::Gone);
        };
        let number = found.data.as_ref().and_then(|data| data.get("number"));
        if found.annotations().get(SEEN) == number {
            return Ok(Outcome::Settled);
        }
        let mut wanted = (*found).clone();
        let number = number.cloned().unwrap_or_default();
        wanted.annotations_mut().insert(SEEN.to_owned(), number);
        let written = self.hand.replace(&wanted).await?;
        let version = written.resource_version().unwrap_or_default();
        self.cache.shows(&version, ECHO).await?;
        Ok(Outcome::Settled)
    }
}
