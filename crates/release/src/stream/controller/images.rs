//! Reads the images of Stable releases, in the background: a registry that is slow to answer delays the release of
//! that image, and no other. Once an image was read, its stream is looked at again.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use futures::stream::{self as streams, FuturesUnordered, StreamExt};
use neap_kit::{builder::Tools, clock::Clock, controller::Enqueuer, key::Key, manager::Component};
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::Sources;
use crate::{
    api::annotations,
    config::ReleaseConfig,
    payload::Phase,
    stream::{
        facts::{Facts, Release},
        release_reader::{CachedReader, ReleaseInfo},
    },
};

/// How many images are read at the same time.
const READ_AT_ONCE: usize = 16;
/// How many images wait to be read. What finds no place is asked for again with a later look at its stream.
const MAX_WAITING: usize = 1024;

/// An image that a stream needs, as its source refers to it.
type Image = (String, String);

/// Asks for images. Cheap to clone.
#[derive(Debug, Clone)]
pub(in crate::stream) struct ImageReads {
    reader: CachedReader,
    clock: Clock,
    requests: mpsc::Sender<(Image, Key)>,
    /// The images that are being read, or wait for it.
    pending: Arc<Mutex<HashSet<Image>>>,
}

/// What asks for images, and the component that reads them.
pub(super) fn component(
    clock: Clock,
    reader: CachedReader,
    enqueuer: Enqueuer<Key>,
) -> (ImageReads, Component) {
    let (requests, mut inbox) = mpsc::channel::<(Image, Key)>(MAX_WAITING);
    let pending = Arc::<Mutex<HashSet<Image>>>::default();
    let reads = ImageReads {
        reader: reader.clone(),
        clock,
        requests,
        pending: pending.clone(),
    };
    let component = Component::new("release-images", move |stop| async move {
        let mut reading = FuturesUnordered::new();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                Some((image, stream)) = inbox.recv(), if reading.len() < READ_AT_ONCE => {
                    let reader = &reader;
                    reading.push(async move {
                        // The answer, also a failure, is remembered by the reader.
                        let (namespace, pull_spec) = &image;
                        let _ = reader.read(clock, namespace, pull_spec).await;
                        (image, stream)
                    });
                }
                Some((image, stream)) = reading.next() => {
                    pending.lock().remove(&image);
                    enqueuer.enqueue(stream);
                }
            }
        }
    });
    (reads, component)
}

impl ImageReads {
    /// What is known of an image. It is read for `stream` if that is too little.
    fn look(&self, image: Image, stream: &Key) -> Option<Result<Arc<ReleaseInfo>, String>> {
        let (namespace, pull_spec) = &image;
        let known = self.reader.known(self.clock, namespace, pull_spec);
        if known.is_due && self.pending.lock().insert(image.clone()) {
            let request = (image.clone(), stream.clone());
            if self.requests.try_send(request).is_err() {
                self.pending.lock().remove(&image);
            }
        }
        known.answer
    }
}

impl Sources {
    /// What the images of Stable releases say, as far as a decision needs it.
    pub(super) async fn images(&self, tools: &Tools, facts: &mut Facts, config: &ReleaseConfig) {
        let namespace = facts.namespace().to_owned();
        let stream = Key::of(&*facts.source);
        let wanted = wanted(facts, config);
        if let Some(reads) = &self.images {
            for (tag, image) in wanted {
                match reads.look((namespace.clone(), image), &stream) {
                    Some(read) => note(facts, tag, read),
                    None => _ = facts.reading.insert(tag),
                }
            }
            return;
        }
        let reader = &self.services.reader;
        let mut answers = streams::iter(wanted)
            .map(async |(tag, image)| (tag, reader.read(tools.clock, &namespace, &image).await))
            .buffer_unordered(READ_AT_ONCE);
        while let Some((tag, read)) = answers.next().await {
            note(facts, tag, read);
        }
    }
}

/// The tags whose image is needed, and the image.
fn wanted(facts: &Facts, config: &ReleaseConfig) -> Vec<(String, String)> {
    let samples_upgrades = config.upgraded_on().next().is_some();
    let needs_cli = config.override_cli_image.is_empty() && facts.options.tools.image.is_none();
    let status = facts.source.status.iter().flat_map(|status| &status.tags);
    let imports: BTreeMap<_, _> = status.map(|tag| (tag.tag.as_str(), tag)).collect();
    let mut wanted = Vec::new();
    for tag in &facts.source.spec.tags {
        let release = Release::of(tag, &facts.payloads);
        let needs_name = matches!(release.phase, None | Some(Phase::Pending))
            && release.annotation(annotations::REWRITE).is_none();
        let needs_previous = samples_upgrades && release.phase == Some(Phase::Ready);
        let needs_cli = needs_cli
            && matches!(release.phase, None | Some(Phase::Pending))
            && !facts.jobs.contains_key(&tag.name);
        let imported = imports.get(tag.name.as_str());
        let item = imported.and_then(|imported| imported.items.first());
        if let Some(item) = item.filter(|_| needs_name || needs_previous || needs_cli) {
            wanted.push((tag.name.clone(), item.docker_image_reference.clone()));
        }
    }
    wanted
}

/// Notes what the image of a tag says, or why that is not known.
fn note(facts: &mut Facts, tag: String, read: Result<Arc<ReleaseInfo>, String>) {
    match read {
        Ok(info) => {
            facts.release_names.insert(tag.clone(), info.name.clone());
            if let Some(cli) = &info.cli {
                facts.cli_images.insert(tag.clone(), cli.clone());
            }
            facts.previous.insert(tag, info.previous.clone());
        }
        Err(error) => {
            tracing::debug!(tag, error, "a release image cannot be read");
            facts.unread.insert(tag, error);
        }
    }
}
