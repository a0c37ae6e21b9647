//! Copies a payload and all its images to another repository.

mod names;
pub mod stream_tags;
#[cfg(test)]
mod tests;

use std::fmt::Write;

use futures::{StreamExt, stream};

pub use self::names::{Error, ImageCopy, Mirror, MirrorOptions, Target, plan};
use crate::oci::{
    client::{Error as RegistryError, RegistryClient},
    image_folder::ImageFolder,
    reference::ImageRef,
    transfer::{self, Progress},
};

/// Images whose parts are looked up at a time. The client bounds requests and transfers of blobs over all of them.
const IMAGES_AT_A_TIME: usize = 4;

/// An image that was not copied.
#[derive(Debug)]
pub struct Failure {
    /// The component.
    pub component: String,
    /// Why.
    pub error: RegistryError,
}

/// Copies the images, and the payload itself when all of them are there. Returns what failed; the payload is
/// then not copied.
pub async fn run(client: &RegistryClient, mirror: &Mirror, progress: &Progress) -> Vec<Failure> {
    run_with(mirror, async |image: &ImageCopy| {
        let copied = transfer::copy(client, &image.source, &image.target, progress);
        copied.await.map(drop)
    })
    .await
}

/// Copies all images with `copy`, and then the payload.
async fn run_with(
    mirror: &Mirror,
    copy: impl AsyncFn(&ImageCopy) -> Result<(), RegistryError>,
) -> Vec<Failure> {
    let copy = &copy;
    let failure = |image: &ImageCopy, error| Failure {
        component: image.component.clone(),
        error,
    };
    let copies = stream::iter(&mirror.images).map(|image| async move {
        let copied = copy(image).await;
        copied.err().map(|error| failure(image, error))
    });
    let failures: Vec<_> = copies
        .buffer_unordered(IMAGES_AT_A_TIME)
        .filter_map(|it| async { it })
        .collect()
        .await;
    let Some(payload) = mirror.payload.as_ref().filter(|_| failures.is_empty()) else {
        return failures;
    };
    let copied = copy(payload).await;
    copied
        .err()
        .map(|error| failure(payload, error))
        .into_iter()
        .collect()
}

/// Copies the images into a folder, and the payload itself when all of them are there. Returns what failed; the
/// payload is then not written.
pub async fn download(
    client: &RegistryClient,
    mirror: &Mirror,
    folder: &ImageFolder,
    progress: &Progress,
) -> Vec<Failure> {
    run_with(mirror, async |image: &ImageCopy| {
        let copied = transfer::download(client, &image.source, folder, &image.target, progress);
        copied.await.map(drop)
    })
    .await
}

/// Copies the images from a folder, where all are in the repository `from` by their digests, to a registry; the
/// payload itself last.
pub async fn upload(
    folder: &ImageFolder,
    from: &ImageRef,
    client: &RegistryClient,
    mirror: &Mirror,
    progress: &Progress,
) -> Vec<Failure> {
    run_with(mirror, async |image: &ImageCopy| {
        let source = match image.source.digest() {
            Some(digest) => from.at_digest(&digest),
            None => image.source.clone(),
        };
        let copied = transfer::upload(folder, &source, client, &image.target, progress);
        copied.await.map(drop)
    })
    .await
}

/// How clusters are told about a mirror.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instructions {
    /// An ImageContentSourcePolicy.
    Icsp,
    /// An ImageDigestMirrorSet.
    Idms,
    /// Not at all.
    None,
}

/// The object that tells a cluster about the mirror.
pub fn instructions(mirror: &Mirror, kind: Instructions) -> String {
    let (head, list) = match kind {
        Instructions::Icsp => (
            "apiVersion: operator.openshift.io/v1alpha1\nkind: ImageContentSourcePolicy\n",
            "repositoryDigestMirrors",
        ),
        Instructions::Idms => (
            "apiVersion: config.openshift.io/v1\nkind: ImageDigestMirrorSet\n",
            "imageDigestMirrors",
        ),
        Instructions::None => return String::new(),
    };
    let repositories = mirror.repositories();
    if repositories.is_empty() {
        return String::new();
    }
    let mut out = format!("{head}metadata:\n  name: example\nspec:\n  {list}:\n");
    for (source, target) in repositories {
        let _ = write!(out, "  - mirrors:\n    - {target}\n    source: {source}\n");
    }
    out
}
