//! Asks again for imports that failed, for all streams that releases are made from.
//!
//! On OpenShift the API server imports, and does not repeat a failed import of a tag that is not scheduled;
//! this asks it to, with an ImageStreamImport. Elsewhere our import controller repeats on its own; this makes
//! it do so now, with an annotation.
//!
//! A pass has a limit, and registries that keep failing are asked less and less often: [`decide`] is pure.

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use kube::{Client, api::ApiResource};
use neap_kit::{
    apply::{DesiredObject, IfExists, PlannedChange, ResourceKind, Writer},
    clock::{Clock, Uptime},
    key::Key,
};
use serde_json::json;

use crate::{
    api::annotations::CONFIG,
    image_stream::{
        api::{DOCKER_IMAGE, IMPORT_REQUESTED, ImageStream},
        listing,
    },
    oci::reference::ImageRef,
};

/// The longest time between two requests for a tag that keeps failing.
const MAX_DELAY: Duration = Duration::from_hours(6);

/// Why a pass was not made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The streams cannot be read.
    #[error("the image streams of namespace {namespace} cannot be read")]
    Read {
        /// The namespace.
        namespace: String,
        /// Why.
        source: kube::Error,
    },
    /// The kinds of the server cannot be read.
    #[error("the kinds that the server has cannot be read")]
    Discovery(#[source] kube::Error),
}

/// The settings of a pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReimportOptions {
    /// The namespaces of the streams.
    pub namespaces: Vec<String>,
    /// The time between two passes.
    pub interval: Duration,
    /// Requests in one pass.
    pub per_pass: usize,
    /// Requests to one registry in one pass.
    pub per_registry: usize,
    /// Nothing is asked for.
    pub dry_run: bool,
}

impl Default for ReimportOptions {
    fn default() -> Self {
        Self {
            namespaces: Vec::new(),
            interval: Duration::from_mins(10),
            per_pass: 100,
            per_registry: 20,
            dry_run: false,
        }
    }
}

/// A tag whose last import failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedTag {
    /// The stream.
    pub stream: Key,
    /// The tag.
    pub tag: String,
    /// The image.
    pub image: String,
    /// Its registry.
    pub registry: String,
}

/// What was asked for before, by stream and tag.
pub type Asked = BTreeMap<(Key, String), (u32, Uptime)>;

/// The tags of a stream whose last import failed. Streams without a release configuration are not ours.
pub fn failed_tags(stream: &ImageStream) -> Vec<FailedTag> {
    let annotations = stream.metadata.annotations.as_ref();
    if !annotations.is_some_and(|it| it.contains_key(CONFIG)) {
        return Vec::new();
    }
    let status = stream.status.iter().flat_map(|status| &status.tags);
    let failed = status.filter(|tag| tag.import_failed());
    let known = failed.filter_map(|tag| {
        let from = stream.spec.tag(&tag.tag)?.from.as_ref()?;
        let image: ImageRef = from
            .name
            .parse()
            .ok()
            .filter(|_| from.kind == DOCKER_IMAGE)?;
        Some(FailedTag {
            stream: Key::of(stream),
            tag: tag.tag.clone(),
            registry: image.endpoint().host,
            image: from.name.clone(),
        })
    });
    known.collect()
}

/// Which of the failed tags are asked for now. A tag that failed again waits twice as long as before.
pub fn decide(
    failed: &[FailedTag],
    asked: &Asked,
    options: &ReimportOptions,
    now: Uptime,
) -> Vec<FailedTag> {
    let mut by_registry: BTreeMap<&str, usize> = BTreeMap::new();
    let due = failed.iter().filter(|it| {
        let before = asked.get(&(it.stream.clone(), it.tag.clone()));
        before.is_none_or(|(_, next)| now >= *next)
    });
    // Those that were asked for least are first: none waits for ever behind tags that keep failing.
    let mut due: Vec<_> = due.collect();
    due.sort_by_key(|it| {
        asked
            .get(&(it.stream.clone(), it.tag.clone()))
            .map_or(0, |(times, _)| *times)
    });
    let chosen = due.into_iter().filter(|it| {
        let count = by_registry.entry(&it.registry).or_default();
        *count += 1;
        *count <= options.per_registry
    });
    chosen.take(options.per_pass).cloned().collect()
}

/// Notes what was asked for, and forgets what no longer fails.
pub fn note(
    asked: &mut Asked,
    failed: &[FailedTag],
    chosen: &[FailedTag],
    options: &ReimportOptions,
    now: Uptime,
) {
    asked.retain(|(stream, tag), _| {
        failed
            .iter()
            .any(|it| it.stream == *stream && it.tag == *tag)
    });
    for it in chosen {
        let entry = asked
            .entry((it.stream.clone(), it.tag.clone()))
            .or_insert((0, now));
        let delay = options.interval.saturating_mul(1 << entry.0.min(10));
        *entry = (entry.0.saturating_add(1), now + delay.min(MAX_DELAY));
    }
}

/// What a pass did.
#[derive(Debug, Default)]
pub struct ReimportReport {
    /// Tags whose last import failed.
    pub failed: usize,
    /// Those that were asked for.
    pub asked: Vec<FailedTag>,
    /// Those that could not be asked for, and why.
    pub problems: Vec<String>,
}

/// Asks for imports.
#[derive(Debug)]
pub struct Reimporter {
    writer: Writer,
    clock: Clock,
    options: ReimportOptions,
    asked: Asked,
}

impl Reimporter {
    /// With these settings.
    pub fn new(writer: Writer, clock: Clock, options: ReimportOptions) -> Self {
        Self {
            writer,
            clock,
            options,
            asked: Asked::new(),
        }
    }

    /// One pass over all streams.
    pub async fn pass(&mut self, client: &Client) -> Result<ReimportReport, Error> {
        let mut streams = Vec::new();
        for namespace in &self.options.namespaces {
            let found = listing::list(client, namespace).await;
            streams.extend(found.map_err(|source| Error::Read {
                namespace: namespace.clone(),
                source,
            })?);
        }
        let failed: Vec<_> = streams.iter().flat_map(failed_tags).collect();
        let now = self.clock.uptime();
        let chosen = decide(&failed, &self.asked, &self.options, now);
        note(&mut self.asked, &failed, &chosen, &self.options, now);
        let mut report = ReimportReport {
            failed: failed.len(),
            ..ReimportReport::default()
        };
        let imports = !chosen.is_empty()
            && has_image_stream_imports(client)
                .await
                .map_err(Error::Discovery)?;
        for it in chosen {
            if !self.options.dry_run {
                let stream = streams
                    .iter_mut()
                    .find(|stream| Key::of(*stream) == it.stream);
                let Some(stream) = stream else {
                    continue;
                };
                if let Err(error) = self.ask(stream, &it, imports).await {
                    let key = &it.stream;
                    report.problems.push(format!(
                        "{key}:{}: {}",
                        it.tag,
                        neap_kit::why::chain(&error)
                    ));
                    continue;
                }
            }
            report.asked.push(it);
        }
        Ok(report)
    }

    async fn ask(
        &self,
        stream: &mut ImageStream,
        failed: &FailedTag,
        imports: bool,
    ) -> Result<(), neap_kit::apply::Error> {
        let change = if imports {
            import(stream, failed)
        } else {
            annotation(stream, failed, self.clock.now())
        };
        let written = self.writer.execute_change(change).await?;
        if let Some(written) = written.filter(|_| !imports) {
            // The next tag of the stream is asked for in its newest state.
            stream.metadata = written.metadata;
        }
        Ok(())
    }
}

/// An ImageStreamImport of one tag, which OpenShift carries out and does not store.
fn import(stream: &ImageStream, failed: &FailedTag) -> PlannedChange {
    let tag = stream.spec.tag(&failed.tag);
    let policy = tag.map(|tag| json!(tag.import_policy)).unwrap_or_default();
    let resource = ApiResource::from_gvk_with_plural(&import_kind(), "imagestreamimports");
    let object = json!({
        "apiVersion": "image.openshift.io/v1",
        "kind": "ImageStreamImport",
        "metadata": {"name": failed.stream.name(), "namespace": failed.stream.namespace()},
        "spec": {"import": true, "images": [{
            "from": {"kind": DOCKER_IMAGE, "name": failed.image},
            "to": {"name": failed.tag},
            "importPolicy": policy,
        }]},
    });
    PlannedChange::Post {
        object: DesiredObject {
            kind: ResourceKind {
                resource,
                namespaced: true,
            },
            object,
        },
        owner: None,
        if_exists: IfExists::Conflict,
        reason: format!("the last import of tag {} failed", failed.tag),
    }
}

fn import_kind() -> kube::core::GroupVersionKind {
    kube::core::GroupVersionKind::gvk("image.openshift.io", "v1", "ImageStreamImport")
}

/// The annotation that makes our import controller import one tag, added to those of other tags.
fn annotation(stream: &ImageStream, failed: &FailedTag, now: Timestamp) -> PlannedChange {
    let annotations = stream.metadata.annotations.as_ref();
    let before = annotations.and_then(|it| it.get(IMPORT_REQUESTED));
    let before =
        before.and_then(|text| serde_json::from_str::<BTreeMap<String, Timestamp>>(text).ok());
    let mut requests = before.unwrap_or_default();
    // Requests for tags that are gone, and old ones, were carried out long ago.
    requests
        .retain(|tag, at| stream.spec.tag(tag).is_some() && now.duration_since(*at).as_hours() < 1);
    requests.insert(failed.tag.clone(), now);
    let text = serde_json::to_string(&requests).unwrap_or_default();
    PlannedChange::Merge {
        kind: ResourceKind::of::<ImageStream>(),
        metadata: Box::new(stream.metadata.clone()),
        subresource: None,
        patch: json!({"metadata": {"annotations": {IMPORT_REQUESTED: text}}}),
        reason: format!("the last import of tag {} failed", failed.tag),
    }
}

/// Whether the server imports when it is asked to, as OpenShift does.
pub async fn has_image_stream_imports(client: &Client) -> Result<bool, kube::Error> {
    let resources = client
        .list_api_group_resources("image.openshift.io/v1")
        .await;
    let resources = match resources {
        // No server of the group, not even a definition.
        Err(kube::Error::Api(status)) if status.is_not_found() => return Ok(false),
        resources => resources?,
    };
    Ok(resources
        .resources
        .iter()
        .any(|it| it.name == "imagestreamimports"))
}

/// A line of a report.
impl std::fmt::Display for FailedTag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{} from {}", self.stream, self.tag, self.image)
    }
}
