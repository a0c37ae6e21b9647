//! The controller that imports the tags of ImageStreams where the API server does not.

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::{StreamExt, stream};
use neap_kit::{
    apply::Error,
    builder::{ControllerBuilder, Tools},
    clock::short_duration,
    context::Context,
    controller::{ControllerOptions, Outcome},
    event::EventDraft,
    key::Key,
    manager::Component,
    watch::{Cache, WatchesStopped},
};

use super::{
    api::{
        ImageSource, ImageStream, ImageStreamStatus, NamedTagEventList, REFERENCED_BY, TagEvent,
    },
    decide::{Decision, TagImport, decide},
    facts::{self, Facts, Settings},
    import::{failure, import},
    metrics::{ImportEnded, ImportMeter},
    pull_secrets::PullSecrets,
    record::{self, ImportFailure},
    registries::Registries,
};
use crate::oci::{client::RegistryClient, digest::Digest};

/// The name of the controller and of its field manager.
pub const NAME: &str = "release-image-imports";
/// A pass over a large stream at a slow registry.
const TIMEOUT: Duration = Duration::from_mins(10);
/// Imports of one stream at a time.
const AT_A_TIME: usize = 8;
/// How often a write is repeated in a newer state of the stream.
const MAX_WRITES: u32 = 5;

/// The controller of imports.
pub fn component(
    context: &Context,
    client: &RegistryClient,
    settings: Settings,
) -> Result<Component, WatchesStopped> {
    let options = ControllerOptions {
        timeout: TIMEOUT,
        ..ControllerOptions::new(NAME)
    };
    let mut builder = ControllerBuilder::with(context, options);
    let streams: Cache<ImageStream> = builder.primary()?;
    let followers = streams.clone();
    builder.on_change(&streams, move |change, enqueuer| {
        // Streams that follow the changed one; few do, and a pass without a change writes nothing.
        let changed = change.key();
        for follower in followers.list(changed.namespace()) {
            if follows(&follower, changed.name()) {
                enqueuer.enqueue(Key::of(&*follower));
            }
        }
    });
    let importer = Importer {
        meter: ImportMeter::register(context, streams.clone()),
        tools: builder.tools(),
        // A failed import is repeated by decisions, so that each request is one of the registry's budget.
        secrets: PullSecrets::new(client.without_retries(), context.clock),
        registries: Registries::new(settings.requests_per_hour),
        context: context.clone(),
        streams,
        settings,
    };
    Ok(builder.build(importer, Importer::reconcile))
}

fn follows(stream: &ImageStream, name: &str) -> bool {
    let sources = stream.spec.tags.iter().filter_map(|tag| tag.from.as_ref());
    let mut named = sources.filter_map(|from| stream_of(from).map(|(name, _)| name));
    named.any(|it| it == name)
}

/// The stream that a source names, and the tag or digest in it.
fn stream_of(from: &ImageSource) -> Option<(&str, &str)> {
    match from.kind.as_str() {
        "ImageStreamTag" => from.name.split_once(':'),
        "ImageStreamImage" => from.name.split_once('@'),
        _ => None,
    }
}

/// Whether a stream allows those of `namespace` to follow it. The controller reads all streams, and the user who
/// wrote the follower may not.
fn may_follow(stream: &ImageStream, namespace: &str) -> bool {
    let all = stream.metadata.annotations.as_ref();
    let allowed = all.and_then(|all| all.get(REFERENCED_BY));
    let mut allowed = allowed.into_iter().flat_map(|text| text.split(','));
    allowed.any(|one| matches!(one.trim(), "*") || one.trim() == namespace)
}

struct Importer {
    context: Context,
    meter: ImportMeter,
    tools: Tools,
    streams: Cache<ImageStream>,
    secrets: PullSecrets,
    registries: Registries,
    settings: Settings,
}

type Outcomes = Vec<(TagImport, Result<Digest, ImportFailure>)>;

impl Importer {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let Some(stream) = self.streams.get(&key) else {
            return Ok(Outcome::Gone);
        };
        let facts = self.gather(stream);
        let decision = decide(&facts);
        let outcomes = self.import(&facts, &decision).await;
        self.write(&facts, &decision, &outcomes).await?;
        self.tell(&facts, &outcomes).await;
        // What was imported changes when the next import is due; so does a failure of the registry.
        let again = if outcomes.is_empty() {
            decision.requeue_after
        } else {
            Some(Duration::from_secs(1))
        };
        Ok(again.map_or(Outcome::Done, Outcome::RequeueAfter))
    }

    fn gather(&self, stream: Arc<ImageStream>) -> Facts {
        let uptime = self.context.clock.uptime();
        let hosts = facts::registries(&stream);
        let allowances = hosts.into_iter().map(|host| {
            let allowance = self.registries.allowance(&host, uptime);
            (host, allowance)
        });
        let namespace = stream.metadata.namespace.clone().unwrap_or_default();
        let (mut followed, mut closed) = (BTreeMap::new(), BTreeMap::new());
        for tag in &stream.spec.tags {
            let from = tag.from.as_ref();
            if let Some((from, (name, selector))) =
                from.and_then(|from| Some((from, stream_of(from)?)))
            {
                let key = Key::new(from.namespace.as_deref().unwrap_or(&namespace), name);
                let other = self.streams.get(&key);
                if key.namespace() != namespace
                    && !other
                        .as_ref()
                        .is_some_and(|other| may_follow(other, &namespace))
                {
                    // The same for one that does not exist: what is there is not told either.
                    closed.insert(tag.name.clone(), key);
                    continue;
                }
                followed.insert(
                    tag.name.clone(),
                    other.and_then(|other| image_in(&other, selector)),
                );
            }
        }
        Facts {
            allowances: allowances.collect(),
            now: self.context.clock.now(),
            settings: self.settings.clone(),
            followed,
            closed,
            stream,
        }
    }

    /// Asks the registries about the tags that are due.
    async fn import(&self, facts: &Facts, decision: &Decision) -> Outcomes {
        if decision.imports.is_empty() {
            return Vec::new();
        }
        let namespace = facts
            .stream
            .metadata
            .namespace
            .as_deref()
            .unwrap_or_default();
        let client = match self.secrets.client(&self.context.client, namespace).await {
            Ok(client) => client,
            Err(error) => {
                let failure = ImportFailure {
                    reason: "PullSecretsUnreadable",
                    message: format!("the pull secrets of the namespace cannot be read: {error}"),
                    retry_after: None,
                    transient: true,
                };
                let all = decision.imports.iter().cloned();
                return all.map(|import| (import, Err(failure.clone()))).collect();
            }
        };
        for import in &decision.imports {
            let host = import.image.endpoint().host;
            self.registries.begin(&host, 1, self.context.clock.uptime());
        }
        let imports = stream::iter(decision.imports.clone());
        let results = imports.map(|wanted| {
            let client = client.clone();
            async move {
                let (client, sent) = client.counting();
                let result = self.import_one(&client, &wanted).await;
                let host = wanted.image.endpoint().host;
                let now = self.context.clock.uptime();
                self.registries.end(&host, sent.get(), now);
                self.meter.emit(&ImportEnded {
                    tag: &wanted.tag,
                    requests: sent.get(),
                    result: result.as_ref().map(drop),
                });
                (wanted, result)
            }
        });
        results.buffered(AT_A_TIME).collect().await
    }

    async fn import_one(
        &self,
        client: &RegistryClient,
        wanted: &TagImport,
    ) -> Result<Digest, ImportFailure> {
        let host = wanted.image.endpoint().host;
        let began = self.context.clock.uptime();
        let wait = self.registries.wait(&host, began);
        if !wait.is_zero() {
            // Another import has found out meanwhile that the registry does not work.
            return Err(ImportFailure {
                reason: "RegistryUnreachable",
                message: format!(
                    "{host} failed; it is asked again in {}",
                    whole_seconds(wait)
                ),
                retry_after: Some(wait),
                transient: true,
            });
        }
        let result = import(client, wanted).await;
        let now = self.context.clock.uptime();
        match result {
            Ok(digest) => {
                self.registries.succeeded(&host, now);
                Ok(digest)
            }
            Err(error) => {
                if error.is_transient() {
                    let retry_after = error.retry_after();
                    self.registries.failed(&host, retry_after, began, now);
                } else {
                    // It works; it only does not have this image for us.
                    self.registries.succeeded(&host, now);
                }
                Err(failure(&error))
            }
        }
    }

    /// Records the outcomes in the status. If the stream changed meanwhile, they are recorded in its newest
    /// state; those of tags that then want something else are dropped.
    async fn write(
        &self,
        facts: &Facts,
        decision: &Decision,
        outcomes: &Outcomes,
    ) -> Result<(), Error> {
        let mut after = (*facts.stream).clone();
        let mut status = decision.status.clone();
        self.apply(&mut status, outcomes, &after);
        after.status = Some(status);
        let key = Key::of(&after);
        for attempt in 1.. {
            let written = self.tools.update_status(&*facts.stream, &after).await;
            match written {
                Err(Error::Conflict(_)) if attempt < MAX_WRITES && !outcomes.is_empty() => {}
                written => return written,
            }
            let newest = self.tools.writer.find::<ImageStream>(&key).await?;
            let newest = newest.filter(|it| it.metadata.uid == facts.stream.metadata.uid);
            let Some(newest) = newest else {
                return Ok(());
            };
            let mut status = newest.status.clone().unwrap_or_default();
            self.apply(&mut status, outcomes, &newest);
            after = newest;
            after.status = Some(status);
        }
        Ok(())
    }

    fn apply(&self, status: &mut ImageStreamStatus, outcomes: &Outcomes, stream: &ImageStream) {
        let now = self.context.clock.now();
        for (import, result) in outcomes {
            let tag = stream.spec.tag(&import.tag);
            let from = tag
                .and_then(|tag| tag.from.as_ref())
                .map(|from| from.name.parse());
            if from != Some(Ok(import.image.clone())) {
                continue;
            }
            record::record(status, import, result.as_ref(), &self.settings, now);
        }
        record::complete(status, &stream.spec);
    }

    /// Tells about failures that are new.
    async fn tell(&self, facts: &Facts, outcomes: &Outcomes) {
        let before = facts.stream.status.as_ref();
        for (import, result) in outcomes {
            let Err(failure) = result else {
                continue;
            };
            let known = before
                .and_then(|status| status.tag(&import.tag))
                .is_some_and(NamedTagEventList::import_failed);
            tracing::info!(stream = %Key::of(&*facts.stream), tag = import.tag, reason = failure.reason, "{}", failure.message);
            if !known {
                let message = format!("tag {}: {}", import.tag, failure.message);
                let draft = EventDraft::warning("ImportFailed", message);
                self.tools.record(&*facts.stream, &draft).await;
            }
        }
    }
}

/// A time to wait for, as people write it: `2m`, and no fractions of a second.
fn whole_seconds(wait: Duration) -> String {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    short_duration(i64::try_from(seconds).unwrap_or(i64::MAX))
}

/// The image of a stream that a tag or digest selects.
fn image_in(stream: &ImageStream, selector: &str) -> Option<TagEvent> {
    let status = stream.status.as_ref()?;
    if selector.starts_with("sha256:") {
        let mut items = status.tags.iter().flat_map(|tag| &tag.items);
        return items.find(|item| item.image == selector).cloned();
    }
    status
        .tag(selector)?
        .items
        .first()
        .filter(|item| !item.image.is_empty())
        .cloned()
}
