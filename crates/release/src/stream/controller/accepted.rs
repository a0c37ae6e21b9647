//! The accepted releases of all streams, from which upgrades may start.
//!
//! An ImageStream is looked at once for each of its versions: it may have thousands of tags, and a look at any stream
//! with upgrade jobs needs the accepted ones of all.

use std::{collections::HashMap, sync::Arc};

use neap_kit::{
    key::Key,
    watch::{Cache, Index},
};
use parking_lot::Mutex;

use super::recorded_state;
use crate::{
    api::{ReleasePayload, annotations},
    config::{CONFIG_MAP_LIMIT, parse},
    image_stream::api::ImageStream,
    payload::Phase,
    stream::{
        facts::{AcceptedRelease, annotation, created, public_repository},
        options::StreamOptions,
    },
};

/// The accepted releases of the release namespaces. Cheap to clone.
#[derive(Clone)]
pub(in crate::stream) struct AcceptedReleases {
    /// The ImageStreams with releases, by namespace.
    targets: Index<ImageStream>,
    known: Arc<Mutex<HashMap<Key, Arc<TargetTags>>>>,
    options: Arc<StreamOptions>,
}

/// The tags of one version of an ImageStream that say that their releases are accepted.
#[derive(Debug)]
struct TargetTags {
    uid: Option<String>,
    version: Option<String>,
    tags: Vec<AcceptedTag>,
}

#[derive(Debug)]
struct AcceptedTag {
    /// The payload of the release.
    payload: Key,
    release: AcceptedRelease,
}

impl AcceptedReleases {
    pub(super) fn watch(streams: &Cache<ImageStream>, options: Arc<StreamOptions>) -> Self {
        let targets = Index::new(streams, |stream: &ImageStream| {
            let has_releases = annotation(stream, annotations::HAS_RELEASES) == Some("true");
            let namespace = stream.metadata.namespace.clone();
            let namespace = namespace.filter(|_| has_releases || stable_name(stream).is_some());
            namespace.into_iter().collect()
        });
        Self {
            targets,
            known: Arc::default(),
            options,
        }
    }

    /// The accepted releases of all streams: their tags and their payloads say so.
    pub(super) fn list(&self, payloads: &Cache<ReleasePayload>) -> Vec<AcceptedRelease> {
        let namespaces = self.options.release_namespaces.iter();
        let targets: Vec<_> = namespaces.flat_map(|it| self.targets.get(it)).collect();
        let mut accepted = Vec::new();
        let mut known = HashMap::new();
        for target in &targets {
            let tags = self.tags(target);
            for tag in &tags.tags {
                let payload = payloads.get(&tag.payload);
                let phase = payload.map(|payload| Phase::of_payload(&payload));
                if phase.is_none_or(|phase| phase == Phase::Accepted) {
                    accepted.push(tag.release.clone());
                }
            }
            known.insert(Key::of(&**target), tags);
        }
        // What is gone is forgotten.
        *self.known.lock() = known;
        accepted
    }

    /// The accepted tags of this version of a target.
    fn tags(&self, target: &ImageStream) -> Arc<TargetTags> {
        let known = self.known.lock().get(&Key::of(target)).cloned();
        let meta = &target.metadata;
        let is_current =
            |it: &Arc<TargetTags>| it.uid == meta.uid && it.version == meta.resource_version;
        known
            .filter(is_current)
            .unwrap_or_else(|| Arc::new(TargetTags::of(target, &self.options)))
    }
}

impl TargetTags {
    fn of(target: &ImageStream, options: &StreamOptions) -> Self {
        let stable = stable_name(target);
        let repository = public_repository(target, options);
        let namespace = target.metadata.namespace.as_deref().unwrap_or_default();
        // A release is accepted only once the controller of its stream has looked at its payload.
        let tags = target.spec.tags.iter().filter(|tag| {
            let written = tag.annotations.get(annotations::PHASE);
            written.is_some_and(|written| written == Phase::Accepted.as_str())
        });
        let tags = tags.filter_map(|tag| {
            let stream = tag.annotations.get(annotations::NAME)?;
            let pull_spec = repository.as_ref().map(|it| format!("{it}:{}", tag.name));
            Some(AcceptedTag {
                payload: Key::new(namespace, &tag.name),
                release: AcceptedRelease {
                    stream: stream.clone(),
                    is_stable: stable.as_ref() == Some(stream),
                    tag: tag.name.clone(),
                    created: created(tag),
                    pull_spec: pull_spec.unwrap_or_default(),
                },
            })
        });
        Self {
            uid: target.metadata.uid.clone(),
            version: target.metadata.resource_version.clone(),
            tags: tags.collect(),
        }
    }
}

/// The name of the Stable stream whose source this is.
fn stable_name(source: &ImageStream) -> Option<String> {
    let Some(text) = annotation(source, annotations::CONFIG) else {
        let state = recorded_state(source)?;
        return state.stable.then_some(state.stream);
    };
    let config = parse(text, CONFIG_MAP_LIMIT).ok()?;
    config.is_stable().then_some(config.name)
}
