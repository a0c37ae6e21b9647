//! Reads the images of releases from their registries.

use futures::future::{BoxFuture, FutureExt};

use super::release_reader::{ReleaseInfo, ReleaseReader};
use crate::{
    oci::{client::RegistryClient, platform::PlatformFilter, reference::ImageRef},
    payload_image::reader,
};

/// Reads with the client of registries.
#[derive(Debug, Clone)]
pub struct RegistryReader {
    client: RegistryClient,
}

impl RegistryReader {
    /// A reader that sends its requests with `client`.
    pub fn new(client: RegistryClient) -> Self {
        Self { client }
    }

    async fn info(&self, pull_spec: &str) -> Result<ReleaseInfo, String> {
        let image: ImageRef = pull_spec.parse().map_err(|error| format!("{error}"))?;
        let platforms = [PlatformFilter::linux_amd64()];
        let payload = reader::read(&self.client, &image, &platforms).await;
        let payload = payload.map_err(|error| neap_kit::why::chain(&error))?;
        // Only very old releases have no metadata; they are not adopted any more.
        let metadata = payload.contents.metadata;
        let metadata = metadata.ok_or_else(|| format!("{pull_spec} has no release-metadata"))?;
        Ok(ReleaseInfo {
            name: metadata.version,
            previous: metadata.previous,
        })
    }
}

impl ReleaseReader for RegistryReader {
    fn read<'a>(&'a self, pull_spec: &'a str) -> BoxFuture<'a, Result<ReleaseInfo, String>> {
        self.info(pull_spec).boxed()
    }
}
