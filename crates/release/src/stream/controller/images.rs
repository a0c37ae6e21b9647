//! Reads the images of Stable releases, in the background: a registry that is slow to answer delays the release of
//! that image, and no other. Once an image was read, its stream is looked at again.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
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

/// How many images of one stream are read at the same time: a registry that does not answer takes the places of its
/// own stream only. What finds no place is asked for again once another image of the stream was read.
const READ_AT_ONCE: usize = 16;
/// How many images are read at the same time for all streams.
const READ_IN_ALL: usize = 512;

/// An image that a stream needs, as its source refers to it.
type Image = (String, String);

/// Asks for images. Cheap to clone.
#[derive(Debug, Clone)]
pub(in crate::stream) struct ImageReads {
    reader: CachedReader,
    clock: Clock,
    requests: mpsc::Sender<(Image, Key)>,
    pending: Arc<Mutex<Pending>>,
}

/// The images that are being read, or wait for it.
#[derive(Debug, Default)]
struct Pending {
    /// The streams that need each.
    streams: HashMap<Image, BTreeSet<Key>>,
    /// How many each stream has asked for.
    places: HashMap<Key, usize>,
}

impl Pending {
    /// Notes that `stream` needs an image. Whether it has to be requested.
    fn add(&mut self, image: &Image, stream: &Key) -> bool {
        if let Some(streams) = self.streams.get_mut(image) {
            streams.insert(stream.clone());
            return false;
        }
        let places = self.places.entry(stream.clone()).or_default();
        if *places >= READ_AT_ONCE {
            return false;
        }
        *places += 1;
        let first = BTreeSet::from([stream.clone()]);
        self.streams.insert(image.clone(), first);
        true
    }

    /// An image that `stream` has asked for was read. The streams that need it.
    fn remove(&mut self, image: &Image, stream: &Key) -> BTreeSet<Key> {
        if let Some(places) = self.places.get_mut(stream) {
            *places = places.saturating_sub(1);
            if *places == 0 {
                self.places.remove(stream);
            }
        }
        self.streams.remove(image).unwrap_or_default()
    }
}

/// What asks for images, and the component that reads them.
pub(super) fn component(
    clock: Clock,
    reader: CachedReader,
    enqueuer: Enqueuer<Key>,
) -> (ImageReads, Component) {
    let (requests, mut inbox) = mpsc::channel::<(Image, Key)>(READ_IN_ALL);
    let pending = Arc::<Mutex<Pending>>::default();
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
                Some((image, stream)) = inbox.recv(), if reading.len() < READ_IN_ALL => {
                    let reader = &reader;
                    reading.push(async move {
                        // The answer, also a failure, is remembered by the reader.
                        let (namespace, pull_spec) = &image;
                        let _ = reader.read(clock, namespace, pull_spec).await;
                        (image, stream)
                    });
                }
                Some((image, stream)) = reading.next() => {
                    let streams = pending.lock().remove(&image, &stream);
                    for stream in streams {
                        enqueuer.enqueue(stream);
                    }
                }
            }
        }
    });
    (reads, component)
}

impl ImageReads {
    /// What is known of the image of each tag. What is not is read for the stream, what was never read first.
    fn look(&self, facts: &mut Facts, wanted: Vec<(String, Image)>, stream: &Key) {
        let (mut unknown, mut again) = (Vec::new(), Vec::new());
        for (tag, image) in wanted {
            let known = self.reader.known(self.clock, &image.0, &image.1);
            let is_unknown = known.answer.is_none();
            match known.answer {
                Some(read) => note(facts, tag, read),
                None => _ = facts.reading.insert(tag),
            }
            if known.is_due {
                let list = if is_unknown { &mut unknown } else { &mut again };
                list.push(image);
            }
        }
        for image in unknown.into_iter().chain(again) {
            let mut pending = self.pending.lock();
            if pending.add(&image, stream) {
                let sent = self.requests.try_send((image.clone(), stream.clone()));
                if sent.is_err() {
                    pending.remove(&image, stream);
                }
            }
        }
    }
}

impl Sources {
    /// What the images of Stable releases say, as far as a decision needs it.
    pub(super) async fn images(&self, tools: &Tools, facts: &mut Facts, config: &ReleaseConfig) {
        let namespace = facts.namespace().to_owned();
        let stream = Key::of(&*facts.source);
        let wanted = wanted(facts, config);
        if let Some(reads) = &self.images {
            let in_namespace = |(tag, image)| (tag, (namespace.clone(), image));
            let wanted = wanted.into_iter().map(in_namespace).collect();
            return reads.look(facts, wanted, &stream);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_has_so_many_places_and_takes_none_of_another() {
        let image = |number: usize| ("ocp".to_owned(), format!("reg.example/i:{number}"));
        let (one, other) = (Key::new("ocp", "one"), Key::new("ocp", "other"));
        let mut pending = Pending::default();
        let requested = (0..100).filter(|number| pending.add(&image(*number), &one));
        assert_eq!(requested.count(), READ_AT_ONCE);
        assert!(pending.add(&image(100), &other));
        assert!(!pending.add(&image(0), &other), "it is read already");
        let needed = pending.remove(&image(0), &one);
        assert_eq!(needed, BTreeSet::from([one.clone(), other]));
        assert!(pending.add(&image(99), &one), "its place is free");
    }
}
