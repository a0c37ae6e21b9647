//! Sweeps up after releases that are gone, once a minute.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use kube::api::ObjectMeta;
use neap_kit::{
    apply::{Error, Object, ObjectRef, PlannedChange, ResourceKind, Writer},
    context::Context,
    key::Key,
    manager::Component,
};
use parking_lot::Mutex;
use serde_json::json;

use super::{Sources, is_source, key_of};
use crate::{
    api::{ReleasePayload, annotations},
    image_stream::api::ImageStream,
    stream::{
        facts::annotation,
        garbage::{Candidate, Kind, Sweep, Targets, sweep},
    },
};

/// The name of the component and of its field manager.
const NAME: &str = "release-garbage";
/// The time between two sweeps.
const INTERVAL: Duration = Duration::from_mins(1);

/// The component that sweeps up.
pub(super) fn component(context: &Context, sources: &Sources) -> Component {
    let sweeper = Sweeper {
        sources: sources.clone(),
        writer: context.writer(NAME),
        told: Mutex::default(),
    };
    let context = context.clone();
    Component::new(NAME, move |stop| async move {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = context.clock.sleep(INTERVAL) => {}
            }
            if sweeper.is_ready() && context.leadership.check().is_ok() {
                sweeper.sweep(context.clock.now()).await;
            }
        }
    })
}

struct Sweeper {
    sources: Sources,
    writer: Writer,
    /// What was logged in a dry run.
    told: Mutex<BTreeSet<String>>,
}

impl Sweeper {
    fn is_ready(&self) -> bool {
        let sources = &self.sources;
        sources.streams.is_synced() && sources.payloads.is_synced() && sources.jobs.is_synced()
    }

    async fn sweep(&self, now: Timestamp) {
        let options = &self.sources.services.options;
        if options.handed_over_only {
            return;
        }
        let limits = &options.garbage;
        let sweeps = sweep(self.candidates(), &self.cached_targets(), limits, now);
        // Caches say what to look at; what is deleted, the server decides.
        let doomed = sweeps.iter().filter_map(|one| match one {
            Sweep::Delete(candidate, _) => Some(candidate.target.clone()),
            Sweep::Mark(_) | Sweep::Unmark(_) => None,
        });
        let doomed: BTreeSet<_> = doomed.collect();
        let live = match self.live_targets(doomed).await {
            Ok(live) => live,
            Err(error) => {
                tracing::warn!(%error, "targets could not be read; nothing is collected");
                return;
            }
        };
        for one in sweeps {
            let is_live = |it: &Candidate| {
                live.tags
                    .get(&it.target)
                    .is_none_or(|tags| tags.contains(&it.tag))
            };
            let result = match &one {
                Sweep::Delete(candidate, _) if is_live(candidate) => continue,
                one if options.dry_run => {
                    self.tell(one);
                    continue;
                }
                Sweep::Delete(candidate, reason) => self.delete(candidate, reason).await,
                Sweep::Mark(candidate) => self.mark(candidate, Some(now)).await,
                Sweep::Unmark(candidate) => self.mark(candidate, None).await,
            };
            match result {
                Ok(()) | Err(Error::Conflict(_)) => {}
                Err(error) => tracing::warn!(%error, "garbage could not be collected"),
            }
        }
    }

    /// Logs what would be done, once.
    fn tell(&self, sweep: &Sweep) {
        let text = sweep.to_string();
        if self.told.lock().insert(text.clone()) {
            tracing::info!("would {text}");
        }
    }

    /// The objects of releases.
    fn candidates(&self) -> Vec<Candidate> {
        let sources = &self.sources;
        let options = &sources.services.options;
        let jobs = sources.jobs.list(&options.job_namespace);
        let jobs = jobs.iter().filter_map(|job| {
            let completed = job
                .status
                .as_ref()
                .and_then(|status| status.completion_time.as_ref());
            let mut candidate = annotated(Kind::Job, &**job)?;
            candidate.completed = completed.map(|time| time.0);
            Some(candidate)
        });
        let namespaces = || options.release_namespaces.iter();
        let mirrors = namespaces().flat_map(|it| sources.streams.list(it));
        let mirrors = mirrors.filter_map(|mirror| annotated(Kind::Mirror, &*mirror));
        let payloads = namespaces().flat_map(|it| sources.payloads.list(it));
        let payloads = payloads.filter_map(|payload| of_payload(&payload));
        jobs.chain(mirrors).chain(payloads).collect()
    }

    fn cached_targets(&self) -> Targets {
        let options = &self.sources.services.options;
        let mut targets = Targets::default();
        for stream in options
            .release_namespaces
            .iter()
            .flat_map(|it| self.sources.streams.list(it))
        {
            let has_releases = annotation(&stream, annotations::HAS_RELEASES) == Some("true");
            if has_releases || is_source(&stream) {
                add(&mut targets, Key::of(&*stream), &stream);
            }
        }
        targets
    }

    async fn live_targets(&self, keys: BTreeSet<Key>) -> Result<Targets, Error> {
        let mut targets = Targets::default();
        for key in keys {
            if let Some(stream) = self.writer.find::<ImageStream>(&key).await? {
                add(&mut targets, key, &stream);
            }
        }
        Ok(targets)
    }

    async fn mark(&self, candidate: &Candidate, since: Option<Timestamp>) -> Result<(), Error> {
        let seen = ObjectMeta {
            name: Some(candidate.key.name().to_owned()),
            namespace: Some(candidate.key.namespace().to_owned()),
            uid: Some(candidate.uid.clone()),
            ..ObjectMeta::default()
        };
        let since = since.and_then(|since| Timestamp::from_second(since.as_second()).ok());
        let value = since.map(|since| since.to_string());
        let patch = json!({"metadata": {"annotations": {annotations::UNREFERENCED_SINCE: value}}});
        let kind = kind_of(candidate.kind);
        self.writer.merge(&kind, &seen, None, patch).await.map(drop)
    }

    async fn delete(&self, candidate: &Candidate, reason: &str) -> Result<(), Error> {
        tracing::info!(kind = ?candidate.kind, key = %candidate.key, reason, "collect");
        let object = ObjectRef {
            kind: kind_of(candidate.kind),
            key: candidate.key.clone(),
            uid: candidate.uid.clone(),
        };
        let reason = reason.to_owned();
        self.writer
            .execute_change(PlannedChange::Delete { object, reason })
            .await
            .map(drop)
    }
}

fn kind_of(kind: Kind) -> ResourceKind {
    match kind {
        Kind::Job => ResourceKind::of::<Job>(),
        Kind::Mirror => ResourceKind::of::<ImageStream>(),
        Kind::Payload => ResourceKind::of::<ReleasePayload>(),
    }
}

fn add(targets: &mut Targets, key: Key, stream: &ImageStream) {
    let tags = stream
        .spec
        .tags
        .iter()
        .map(|tag| tag.name.clone())
        .collect();
    targets
        .generations
        .insert(key.clone(), stream.metadata.generation.unwrap_or(0));
    targets.tags.insert(key, tags);
}

/// An object with the annotations of a release.
fn annotated<K: Object>(kind: Kind, object: &K) -> Option<Candidate> {
    let meta = object.meta();
    let all = meta.annotations.as_ref()?;
    Some(Candidate {
        kind,
        key: Key::of(object),
        uid: meta.uid.clone()?,
        target: key_of(all.get(annotations::TARGET)?)?,
        tag: all.get(annotations::RELEASE_TAG)?.clone(),
        generation: Some(all.get(annotations::GENERATION)?.parse().ok()?),
        marked: marked(all),
        completed: None,
    })
}

fn of_payload(payload: &ReleasePayload) -> Option<Candidate> {
    let at = &payload.spec.payload_coordinates;
    let none = BTreeMap::new();
    Some(Candidate {
        kind: Kind::Payload,
        key: Key::of(payload),
        uid: payload.metadata.uid.clone()?,
        target: Key::new(&at.namespace, &at.imagestream_name),
        tag: at.imagestream_tag_name.clone(),
        generation: None,
        marked: marked(payload.metadata.annotations.as_ref().unwrap_or(&none)),
        completed: None,
    })
}

fn marked(annotations: &BTreeMap<String, String>) -> Option<Timestamp> {
    annotations
        .get(annotations::UNREFERENCED_SINCE)?
        .parse()
        .ok()
}
