//! Reads the images of releases from their registries, with the pull secrets of the namespaces that refer to
//! them.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use kube::Client;
use neap_kit::{clock::Clock, why::chain};

use super::release_reader::{ReleaseInfo, ReleaseReader};
use crate::{
    image_stream::pull_secrets::PullSecrets,
    oci::{client::RegistryClient, platform::PlatformFilter, reference::ImageRef},
    payload_image::reader,
};

/// Reads with the client of registries.
#[derive(Clone)]
pub struct RegistryReader {
    api: Client,
    secrets: Arc<PullSecrets>,
}

impl std::fmt::Debug for RegistryReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RegistryReader").finish_non_exhaustive()
    }
}

impl RegistryReader {
    /// A reader that sends its requests as `registry` does, with the pull secrets that `api` has.
    pub fn new(registry: RegistryClient, api: Client, clock: Clock) -> Self {
        Self {
            api,
            secrets: Arc::new(PullSecrets::new(registry, clock)),
        }
    }

    async fn info(&self, namespace: &str, pull_spec: &str) -> Result<ReleaseInfo, String> {
        let image: ImageRef = pull_spec.parse().map_err(|error| format!("{error}"))?;
        let registry = self.secrets.client(&self.api, namespace).await;
        let registry = registry.map_err(|error| {
            let why = chain(&error);
            format!("the pull secrets of {namespace} cannot be read: {why}")
        })?;
        let platforms = [PlatformFilter::linux_amd64()];
        let payload = reader::read(&registry, &image, &platforms).await;
        let payload = payload.map_err(|error| chain(&error))?;
        // Only very old releases have no metadata; they are not adopted any more.
        let metadata = payload.contents.metadata;
        let metadata = metadata.ok_or_else(|| format!("{pull_spec} has no release-metadata"))?;
        let cli = payload.contents.references.tag("cli");
        Ok(ReleaseInfo {
            name: metadata.version,
            previous: metadata.previous,
            cli: cli.and_then(|tag| tag.pull_spec()).map(str::to_owned),
        })
    }
}

impl ReleaseReader for RegistryReader {
    fn read<'a>(
        &'a self,
        namespace: &'a str,
        pull_spec: &'a str,
    ) -> BoxFuture<'a, Result<ReleaseInfo, String>> {
        self.info(namespace, pull_spec).boxed()
    }
}
