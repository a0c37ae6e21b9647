//! Copies of images between repositories: blobs in parallel, then manifests, and the tag last.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use futures::{StreamExt, TryStreamExt, stream};

use super::{
    client::{Error, RegistryClient},
    digest::Digest,
    image_folder::ImageFolder,
    manifest::{Descriptor, Manifest},
    reference::ImageRef,
};

/// How far a transfer has got. Clones count the same transfer.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    blobs: AtomicU64,
    blobs_done: AtomicU64,
    bytes: AtomicU64,
    bytes_done: AtomicU64,
    mounted: AtomicU64,
    present: AtomicU64,
    copied: AtomicU64,
}

/// A [`Progress`] at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Snapshot {
    /// Blobs that are needed.
    pub blobs: u64,
    /// Blobs that are there.
    pub blobs_done: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The bytes that are there.
    pub bytes_done: u64,
    /// Blobs that the registry took from another repository.
    pub mounted: u64,
    /// Blobs that were there before.
    pub present: u64,
    /// Blobs that were sent.
    pub copied: u64,
}

impl Progress {
    /// The state now.
    pub fn snapshot(&self) -> Snapshot {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let it = &self.0;
        Snapshot {
            blobs: read(&it.blobs),
            blobs_done: read(&it.blobs_done),
            bytes: read(&it.bytes),
            bytes_done: read(&it.bytes_done),
            mounted: read(&it.mounted),
            present: read(&it.present),
            copied: read(&it.copied),
        }
    }

    /// Blobs that will be needed.
    pub fn expect(&self, descriptors: &[Descriptor]) {
        let bytes = descriptors.iter().map(Descriptor::size).sum();
        self.0
            .blobs
            .fetch_add(descriptors.len() as u64, Ordering::Relaxed);
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn done(&self, counter: &AtomicU64, bytes: u64) {
        counter.fetch_add(1, Ordering::Relaxed);
        self.0.blobs_done.fetch_add(1, Ordering::Relaxed);
        self.0.bytes_done.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Copies the image at `source` to `target`, which has the tag under which it is to be found, or no tag. The
/// bytes of the manifests are not changed. Returns the manifest.
pub async fn copy(
    client: &RegistryClient,
    source: &ImageRef,
    target: &ImageRef,
    progress: &Progress,
) -> Result<Manifest, Error> {
    let manifest = client.manifest(source).await?;
    copy_manifest(client, source, target, &manifest, progress).await?;
    Ok(manifest)
}

/// The same for a manifest that was read before.
pub async fn copy_manifest(
    client: &RegistryClient,
    source: &ImageRef,
    target: &ImageRef,
    manifest: &Manifest,
    progress: &Progress,
) -> Result<(), Error> {
    if let Some(list) = manifest.list() {
        let repository = target.bare();
        // The children of a list are pushed by digest before the list that names them.
        let children = stream::iter(list.manifests()).map(|child| {
            let source = source.at_digest(child.digest());
            let target = repository.at_digest(child.digest());
            async move {
                let found = client.manifest(&source).await?;
                copy_blobs(client, &source, &target, &blobs(&found), progress).await?;
                client.push_manifest(&target, &found).await
            }
        });
        let limited = children.buffer_unordered(client.parallelism());
        limited.try_for_each(|()| async { Ok(()) }).await?;
    } else {
        copy_blobs(client, source, target, &blobs(manifest), progress).await?;
    }
    client.push_manifest(target, manifest).await
}

/// The configuration and layers of an image, each once.
pub fn blobs(manifest: &Manifest) -> Vec<Descriptor> {
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let all = manifest.descriptors().cloned();
    all.filter(|it| seen.insert(it.digest().to_string()))
        .collect()
}

/// Makes these blobs of the repository `source` exist in the repository `target`.
pub async fn copy_blobs(
    client: &RegistryClient,
    source: &ImageRef,
    target: &ImageRef,
    descriptors: &[Descriptor],
    progress: &Progress,
) -> Result<(), Error> {
    if source.endpoint() == target.endpoint() {
        return Ok(());
    }
    progress.expect(descriptors);
    let copies =
        stream::iter(descriptors).map(|it| copy_blob(client, source, target, it, progress));
    let limited = copies.buffer_unordered(client.parallelism());
    limited.try_for_each(|()| async { Ok(()) }).await
}

async fn copy_blob(
    client: &RegistryClient,
    source: &ImageRef,
    target: &ImageRef,
    descriptor: &Descriptor,
    progress: &Progress,
) -> Result<(), Error> {
    let digest: &Digest = descriptor.digest();
    let counters = &progress.0;
    // A mount also finds a blob that is there, and saves the question on one registry.
    if client.mount(target, digest, source).await? {
        progress.done(&counters.mounted, descriptor.size());
        return Ok(());
    }
    if client.has_blob(target, descriptor).await? {
        progress.done(&counters.present, descriptor.size());
        return Ok(());
    }
    let stream = client.blob(source, descriptor)?;
    let sent = |bytes| {
        counters.bytes_done.fetch_add(bytes, Ordering::Relaxed);
    };
    client.push_stream(target, digest, stream, sent).await?;
    progress.done(&counters.copied, 0);
    Ok(())
}

/// Copies the image at `source` into a folder, under the repository and the tag of `target`. The bytes of the
/// manifests are not changed; the tag is written last.
pub async fn download(
    client: &RegistryClient,
    source: &ImageRef,
    folder: &ImageFolder,
    target: &ImageRef,
    progress: &Progress,
) -> Result<Manifest, Error> {
    let manifest = client.manifest(source).await?;
    if let Some(list) = manifest.list() {
        for child in list.manifests() {
            let source = source.at_digest(child.digest());
            let found = client.manifest(&source).await?;
            download_blobs(client, &source, folder, target, &found, progress).await?;
            folder.write_manifest(&target.bare(), &found)?;
        }
    } else {
        download_blobs(client, source, folder, target, &manifest, progress).await?;
    }
    folder.write_manifest(target, &manifest)?;
    Ok(manifest)
}

async fn download_blobs(
    client: &RegistryClient,
    source: &ImageRef,
    folder: &ImageFolder,
    target: &ImageRef,
    manifest: &Manifest,
    progress: &Progress,
) -> Result<(), Error> {
    let all = blobs(manifest);
    progress.expect(&all);
    let counters = &progress.0;
    let copies = stream::iter(&all).map(|descriptor| async move {
        if folder.has_blob(target, descriptor) {
            progress.done(&counters.present, descriptor.size());
            return Ok(());
        }
        let content = client.blob(source, descriptor)?;
        let written = |bytes| {
            counters.bytes_done.fetch_add(bytes, Ordering::Relaxed);
        };
        folder
            .write_blob(target, descriptor, content, written)
            .await?;
        progress.done(&counters.copied, 0);
        Ok(())
    });
    let limited = copies.buffer_unordered(client.parallelism());
    limited.try_for_each(|()| async { Ok(()) }).await
}

/// Copies the image at `source` in a folder to a registry; its tag last.
pub async fn upload(
    folder: &ImageFolder,
    source: &ImageRef,
    client: &RegistryClient,
    target: &ImageRef,
    progress: &Progress,
) -> Result<Manifest, Error> {
    let manifest = folder.manifest(source)?;
    if let Some(list) = manifest.list() {
        let repository = target.bare();
        for child in list.manifests() {
            let found = folder.manifest(&source.at_digest(child.digest()))?;
            upload_blobs(folder, source, client, target, &found, progress).await?;
            let by_digest = repository.at_digest(child.digest());
            client.push_manifest(&by_digest, &found).await?;
        }
    } else {
        upload_blobs(folder, source, client, target, &manifest, progress).await?;
    }
    client.push_manifest(target, &manifest).await?;
    Ok(manifest)
}

async fn upload_blobs(
    folder: &ImageFolder,
    source: &ImageRef,
    client: &RegistryClient,
    target: &ImageRef,
    manifest: &Manifest,
    progress: &Progress,
) -> Result<(), Error> {
    let all = blobs(manifest);
    progress.expect(&all);
    let counters = &progress.0;
    let copies = stream::iter(&all).map(|descriptor| async move {
        if client.has_blob(target, descriptor).await? {
            progress.done(&counters.present, descriptor.size());
            return Ok(());
        }
        let _place = client.transfer().await;
        let content = folder.blob(source, descriptor)?;
        let sent = |bytes| {
            counters.bytes_done.fetch_add(bytes, Ordering::Relaxed);
        };
        client
            .push_stream(target, descriptor.digest(), content, sent)
            .await?;
        progress.done(&counters.copied, 0);
        Ok(())
    });
    let limited = copies.buffer_unordered(client.parallelism());
    limited.try_for_each(|()| async { Ok(()) }).await
}
