//! Copies a payload and all its images to another repository.

mod names;
#[cfg(test)]
mod tests;

use std::fmt::Write;

use futures::{StreamExt, stream};

pub use self::names::{Error, Mirror, MirrorOptions, Target, plan};
use crate::oci::{
    client::{Error as RegistryError, RegistryClient},
    transfer::{self, Progress},
};

/// Images that are copied at a time; their blobs have limits of their own.
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
    let copies = stream::iter(&mirror.images).map(|image| async move {
        let copied = transfer::copy(client, &image.source, &image.target, progress).await;
        copied.err().map(|error| Failure {
            component: image.component.clone(),
            error,
        })
    });
    let failures: Vec<_> = copies
        .buffer_unordered(IMAGES_AT_A_TIME)
        .filter_map(|it| async { it })
        .collect()
        .await;
    if !failures.is_empty() {
        return failures;
    }
    let Some(payload) = &mirror.payload else {
        return failures;
    };
    let copied = transfer::copy(client, &payload.source, &payload.target, progress).await;
    let failure = copied.err().map(|error| Failure {
        component: payload.component.clone(),
        error,
    });
    failure.into_iter().collect()
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
    let mut out = format!("{head}metadata:\n  name: example\nspec:\n  {list}:\n");
    for (source, target) in mirror.repositories() {
        let _ = write!(out, "  - mirrors:\n    - {target}\n    source: {source}\n");
    }
    out
}
