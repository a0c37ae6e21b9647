//! The controller of streams: gathers the facts, decides, writes.

mod accepted;
mod act;
mod gather;
mod images;
mod metrics;
mod sweeper;
#[cfg(test)]
mod tests;
mod upgrades;

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use k8s_openapi::api::batch::v1::Job;
use kube::Api;
use neap_kit::{
    apply::Error,
    builder::{ControllerBuilder, Tools},
    context::Context,
    controller::{Enqueuer, Outcome},
    key::Key,
    manager::Component,
    watch::{Cache, Change, Index, Selection, WatchesStopped},
};
use tracing::{Instrument, info_span};

use self::{accepted::AcceptedReleases, images::ImageReads};
use super::{
    StreamState, decide::decide, options::StreamOptions, prow_config::SharedProwConfig,
    release_reader::CachedReader,
};
use crate::{
    api::{ProwJob, ProwJobRun, ReleasePayload, annotations, labels},
    config::{CONFIG_MAP_LIMIT, parse},
    image_stream::api::{ImageStream, TagReference},
    payload::{
        controller::{runs_by_payload, watch_runs},
        run_keys::RunKeys,
    },
    stream::facts::annotation,
};

/// The name of the controller and of its field manager.
pub const NAME: &str = "release-controller";
/// The time after which a stream is looked at again if an object exists that no cache has: a watch may be late, or
/// the object is deleted just now and nothing will be told of it.
const EXISTS_RETRY: Duration = Duration::from_mins(1);

/// What the controller needs besides the context.
#[derive(Debug, Clone)]
pub struct Services {
    /// The options.
    pub options: Arc<StreamOptions>,
    /// The job configuration of Prow.
    pub prow: SharedProwConfig,
    /// The keys of run tokens.
    pub run_keys: RunKeys,
    /// Reads the images of releases.
    pub reader: CachedReader,
}

/// The controller of all streams, and its garbage collection.
pub fn components(context: &Context, services: Services) -> Result<Vec<Component>, WatchesStopped> {
    let mut builder = ControllerBuilder::new(context, NAME);
    let mut sources = Sources::watch(&mut builder, context, services)?;
    let reader = sources.services.reader.clone();
    let (reads, images) = images::component(context.clock, reader, builder.enqueuer());
    sources.images = Some(reads);
    enqueue_changes(&builder, &sources);
    metrics::register(context, &sources.streams);
    let sweeper = sweeper::component(context, &sources);
    let upgrades = upgrades::component(context, &sources);
    let job_config = job_config(&sources, builder.enqueuer());
    let controller = StreamController {
        tools: builder.tools(),
        sources,
    };
    Ok(vec![
        builder.build(controller, StreamController::reconcile),
        sweeper,
        upgrades,
        job_config,
        images,
    ])
}

/// The component that enqueues all streams when the job configuration of Prow has changed: a job that was
/// unknown may be known now.
fn job_config(sources: &Sources, enqueuer: Enqueuer<Key>) -> Component {
    let streams = sources.streams.clone();
    let prow = sources.services.prow.clone();
    Component::new("release-job-config", move |stop| async move {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = prow.changed() => {}
            }
            for stream in streams.list("").iter().filter(|stream| is_source(stream)) {
                enqueuer.enqueue(Key::of(&**stream));
            }
        }
    })
}

/// Where facts come from.
#[derive(Clone)]
pub(super) struct Sources {
    pub(super) services: Services,
    pub(super) streams: Cache<ImageStream>,
    /// Sources by the namespace and name of their stream.
    pub(super) by_name: Index<ImageStream>,
    pub(super) payloads: Cache<ReleasePayload>,
    pub(super) jobs: Cache<Job>,
    pub(super) all_runs: Cache<ProwJobRun>,
    pub(super) runs: Index<ProwJobRun>,
    pub(super) periodic_runs: Cache<ProwJobRun>,
    /// Runs of periodics by their source.
    pub(super) periodics_by_source: Index<ProwJobRun>,
    /// The accepted releases of all streams.
    pub(super) accepted: AcceptedReleases,
    /// Reads the images of releases in the background. Without it, a look at a stream waits for them.
    pub(super) images: Option<ImageReads>,
}

impl Sources {
    pub(super) fn watch(
        builder: &mut ControllerBuilder,
        context: &Context,
        services: Services,
    ) -> Result<Self, WatchesStopped> {
        let streams: Cache<ImageStream> = builder.cache()?;
        let runs = watch_runs(builder, context)?;
        let selection = Selection {
            labels: Some(format!("{}=true,!{}", labels::VERIFY, labels::PAYLOAD)),
            fields: None,
        };
        let api: Api<ProwJob> = Api::all(context.client.clone());
        let periodic_runs = builder.compact(api, selection)?;
        Ok(Self {
            by_name: Index::new(&streams, |stream| stream_name(stream).into_iter().collect()),
            payloads: builder.cache()?,
            jobs: builder.cache()?,
            runs: runs_by_payload(&runs),
            all_runs: runs,
            periodics_by_source: Index::new(&periodic_runs, |run| {
                run.annotation(annotations::SOURCE)
                    .map(str::to_owned)
                    .into_iter()
                    .collect()
            }),
            periodic_runs,
            accepted: AcceptedReleases::watch(&streams, services.options.clone()),
            images: None,
            streams,
            services,
        })
    }

    /// Resolves once all caches are filled.
    pub(super) async fn synced(&self) {
        self.streams.synced().await;
        self.payloads.synced().await;
        self.jobs.synced().await;
        self.all_runs.synced().await;
        self.periodic_runs.synced().await;
    }

    /// The sources of the stream of this name.
    fn sources_of(&self, namespace: &str, stream: &str) -> Vec<Key> {
        let found = self.by_name.get(&format!("{namespace}/{stream}"));
        found.iter().map(|source| Key::of(&**source)).collect()
    }
}

/// The namespace and name of the stream whose source this is. The name of a stream whose configuration is in a
/// ConfigMap is in its state.
fn stream_name(source: &ImageStream) -> Option<String> {
    let name = match annotation(source, annotations::CONFIG) {
        Some(text) => parse(text, CONFIG_MAP_LIMIT).ok()?.name,
        None => recorded_state(source)?.stream,
    };
    let namespace = source.metadata.namespace.as_deref().unwrap_or_default();
    (!name.is_empty()).then(|| format!("{namespace}/{name}"))
}

/// The state of the stream of this source, as it was written last.
pub(super) fn recorded_state(source: &ImageStream) -> Option<StreamState> {
    annotation(source, annotations::CONFIG_REF)?;
    serde_json::from_str(annotation(source, annotations::STREAM_STATE)?).ok()
}

/// Whether this ImageStream is the source of a stream.
pub(super) fn is_source(stream: &ImageStream) -> bool {
    annotation(stream, annotations::CONFIG).is_some()
        || annotation(stream, annotations::CONFIG_REF).is_some()
}

/// A change enqueues the streams that it concerns, and no others.
fn enqueue_changes(builder: &ControllerBuilder, sources: &Sources) {
    let of_streams = sources.clone();
    builder.on_change(
        &sources.streams,
        move |change: &Change<ImageStream>, enqueuer| {
            stream_changed(&of_streams, change, enqueuer);
        },
    );
    let of_payloads = sources.clone();
    builder.on_change(
        &sources.payloads,
        move |change: &Change<ReleasePayload>, enqueuer| {
            let (Change::Added(payload)
            | Change::Modified { new: payload, .. }
            | Change::Deleted(payload)) = change;
            let at = &payload.spec.payload_coordinates;
            for key in of_payloads.sources_of(&at.namespace, &at.stream_name) {
                enqueuer.enqueue(key);
            }
        },
    );
    builder.on_change(&sources.jobs, |change: &Change<Job>, enqueuer| {
        // One that was of a release until now concerns its stream, too.
        let jobs = match change {
            Change::Added(job) | Change::Deleted(job) => [Some(job), None],
            Change::Modified { old, new } => [Some(old), Some(new)],
        };
        for job in jobs.into_iter().flatten() {
            let all = job.metadata.annotations.as_ref();
            if let Some(key) = all
                .and_then(|all| all.get(annotations::SOURCE))
                .and_then(|it| key_of(it))
            {
                enqueuer.enqueue(key);
            }
        }
    });
    builder.on_change(
        &sources.periodic_runs,
        |change: &Change<ProwJobRun>, enqueuer| {
            let (Change::Added(run) | Change::Modified { new: run, .. } | Change::Deleted(run)) =
                change;
            if let Some(key) = run.annotation(annotations::SOURCE).and_then(key_of) {
                enqueuer.enqueue(key);
            }
        },
    );
}

fn key_of(text: &str) -> Option<Key> {
    let (namespace, name) = text.split_once('/')?;
    Some(Key::new(namespace, name))
}

fn stream_changed<'a>(
    sources: &Sources,
    change: &'a Change<ImageStream>,
    enqueuer: &Enqueuer<Key>,
) {
    let (old, new) = match change {
        Change::Added(new) => (None, Some(new)),
        Change::Modified { old, new } => (Some(old), Some(new)),
        Change::Deleted(old) => (Some(old), None),
    };
    let Some(stream) = new.or(old) else {
        return;
    };
    if is_source(stream) {
        enqueuer.enqueue(Key::of(&**stream));
    }
    if annotation(stream, annotations::RELEASE_TAG).is_some() {
        if let Some(key) = annotation(stream, annotations::SOURCE).and_then(key_of) {
            enqueuer.enqueue(key);
        }
        return;
    }
    let tags = |stream: Option<&'a Arc<ImageStream>>| {
        stream.map_or(&[][..], |stream| stream.spec.tags.as_slice())
    };
    let namespace = stream.metadata.namespace.as_deref().unwrap_or_default();
    for name in streams_of_changed_tags(tags(old), tags(new)) {
        for key in sources.sources_of(namespace, name) {
            enqueuer.enqueue(key);
        }
    }
}

/// The streams of the tags of a target that differ. A target may have thousands of tags, so each is looked at once.
fn streams_of_changed_tags<'a>(
    old: &'a [TagReference],
    new: &'a [TagReference],
) -> BTreeSet<&'a String> {
    let mut by_name: HashMap<&str, [Vec<&TagReference>; 2]> = HashMap::new();
    for (at, tags) in [old, new].into_iter().enumerate() {
        for tag in tags {
            by_name.entry(&tag.name).or_default()[at].push(tag);
        }
    }
    let changed = by_name.into_values().filter(|[old, new]| old != new);
    changed
        .flat_map(|[old, new]| old.into_iter().chain(new))
        .filter_map(|tag| tag.annotations.get(annotations::NAME))
        .collect()
}

pub(super) struct StreamController {
    pub(super) tools: Tools,
    pub(super) sources: Sources,
}

impl StreamController {
    /// One look at a stream; a span of its trace for each part.
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let span = info_span!("release stream", %key);
        self.look(key).instrument(span).await
    }

    async fn look(&self, key: Key) -> Result<Outcome, Error> {
        let options = &self.sources.services.options;
        let is_watched = options
            .release_namespaces
            .iter()
            .any(|one| one == key.namespace())
            && (options.only_sources.is_empty()
                || options.only_sources.iter().any(|one| one == key.name()));
        let is_owned = |source: &ImageStream| {
            !options.handed_over_only || annotation(source, annotations::CONFIG).is_none()
        };
        let source = self
            .sources
            .streams
            .get(&key)
            .filter(|source| is_watched && is_source(source) && is_owned(source));
        let Some(source) = source else {
            return Ok(Outcome::Gone);
        };
        if source.metadata.deletion_timestamp.is_some() {
            return Ok(Outcome::Done);
        }
        let gathering = self.sources.gather(&self.tools, source);
        let facts = gathering.instrument(info_span!("facts")).await?;
        let decision = info_span!("decide").in_scope(|| decide(&facts));
        tracing::debug!(%key, reason = decision.state.reason, "{}", decision.state.message);
        let mut requeue_after = decision.requeue_after;
        let acting = self.act(&facts, decision);
        if !acting.instrument(info_span!("act")).await? {
            requeue_after = Some(requeue_after.map_or(EXISTS_RETRY, |it| it.min(EXISTS_RETRY)));
        }
        Ok(requeue_after.map_or(Outcome::Done, Outcome::RequeueAfter))
    }
}
