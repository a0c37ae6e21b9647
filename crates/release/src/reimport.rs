//! Asks again for imports that failed, for all streams that releases are made from.
//!
//! On OpenShift the API server imports, and does not repeat a failed import of a tag that is not scheduled;
//! this asks it to, with an ImageStreamImport. Elsewhere our import controller repeats on its own; this makes
//! it do so now, with an annotation.
//!
//! A pass has a limit. Tags that keep failing are asked for less and less often, and so are registries: while a
//! registry fails, a pass asks for one tag of it, and then for none for a time that doubles. A process remembers
//! this between its passes; a pass of its own takes it from the status of the streams.

mod decide;
mod failed;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use kube::{Client, api::ApiResource};
use neap_kit::{
    apply::{DesiredObject, IfExists, PlannedChange, ResourceKind, Writer},
    clock::Clock,
    key::Key,
    why,
};
use serde_json::json;

pub use self::{
    decide::{Asked, decide},
    failed::{FailedTag, failed_tags},
};
use crate::image_stream::{
    api::{DOCKER_IMAGE, IMPORT_REQUESTED, ImageStream},
    listing,
};

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
    /// There is one pass, by a process of its own.
    pub once: bool,
}

impl Default for ReimportOptions {
    fn default() -> Self {
        Self {
            namespaces: Vec::new(),
            interval: Duration::from_mins(10),
            per_pass: 100,
            per_registry: 20,
            dry_run: false,
            once: false,
        }
    }
}

/// What a pass did.
#[derive(Debug, Default)]
pub struct ReimportReport {
    /// Tags whose last import failed.
    pub failed: usize,
    /// Such tags of streams that no releases are made from: nothing is done about them.
    pub left_out: usize,
    /// Those that were asked for.
    pub asked: Vec<FailedTag>,
    /// Why tags could not be asked for.
    pub problems: Vec<String>,
    /// The number of these tags.
    pub refused: usize,
}

impl ReimportReport {
    /// Tags that were neither asked for nor tried: they wait, or the limits were reached.
    pub fn waiting(&self) -> usize {
        self.failed.saturating_sub(self.asked.len() + self.refused)
    }
}

/// Asks for imports.
#[derive(Debug)]
pub struct Reimporter {
    writer: Writer,
    clock: Clock,
    asked: Asked,
    options: ReimportOptions,
}

impl Reimporter {
    /// With these settings.
    pub fn new(writer: Writer, clock: Clock, options: ReimportOptions) -> Self {
        Self {
            writer,
            clock,
            asked: Asked::new(&options),
            options,
        }
    }

    /// One pass over all streams.
    pub async fn pass(&mut self, client: &Client) -> Result<ReimportReport, Error> {
        let streams = self.streams(client).await?;
        let failed: Vec<_> = streams.iter().flat_map(failed_tags).collect();
        let now = self.clock.uptime();
        if self.options.once {
            self.asked = Asked::from_status(&failed, &self.options, self.clock.now(), now);
        } else {
            self.asked.learn(&failed, now);
        }
        let chosen = decide(&failed, &self.asked, &self.options, now);
        let mut report = ReimportReport {
            failed: failed.len(),
            left_out: streams.iter().map(failed::left_out).sum(),
            ..ReimportReport::default()
        };
        let imports = !chosen.is_empty()
            && has_image_stream_imports(client)
                .await
                .map_err(Error::Discovery)?;
        let mut by_stream: BTreeMap<Key, Vec<FailedTag>> = BTreeMap::new();
        for it in chosen {
            by_stream.entry(it.stream.clone()).or_default().push(it);
        }
        for stream in &streams {
            let tags = by_stream.remove(&Key::of(stream)).unwrap_or_default();
            // The annotation has all tags of a stream: after a first write, the import controller changes the stream.
            let at_once = if imports { 1 } else { tags.len().max(1) };
            for tags in tags.chunks(at_once) {
                self.ask_and_note(stream, tags, imports, &mut report).await;
            }
        }
        Ok(report)
    }

    async fn streams(&self, client: &Client) -> Result<Vec<ImageStream>, Error> {
        let mut streams = Vec::new();
        for namespace in &self.options.namespaces {
            let found = listing::list(client, namespace).await;
            streams.extend(found.map_err(|source| Error::Read {
                namespace: namespace.clone(),
                source,
            })?);
        }
        Ok(streams)
    }

    async fn ask_and_note(
        &mut self,
        stream: &ImageStream,
        tags: &[FailedTag],
        imports: bool,
        report: &mut ReimportReport,
    ) {
        let written = if self.options.dry_run {
            Ok(())
        } else {
            self.ask(stream, tags, imports).await
        };
        let now = self.clock.uptime();
        match written {
            Ok(()) => {
                for it in tags {
                    self.asked.note(it, now);
                }
                report.asked.extend_from_slice(tags);
            }
            Err(error) => {
                for it in tags {
                    self.asked.note_refused(it);
                }
                let names: Vec<_> = tags.iter().map(|it| it.tag.as_str()).collect();
                let (key, names) = (Key::of(stream), names.join(","));
                let problem = format!("{key}:{names}: {}", why::chain(&error));
                report.problems.push(problem);
                report.refused += tags.len();
            }
        }
    }

    async fn ask(
        &self,
        stream: &ImageStream,
        tags: &[FailedTag],
        imports: bool,
    ) -> Result<(), neap_kit::apply::Error> {
        if !imports {
            let change = annotation(stream, tags, self.clock.now());
            return self.writer.execute_change(change).await.map(drop);
        }
        for it in tags {
            self.writer.execute_change(import(stream, it)).await?;
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

/// The annotation that makes our import controller import these tags, added to those of other tags.
fn annotation(stream: &ImageStream, tags: &[FailedTag], now: Timestamp) -> PlannedChange {
    let mut requests = failed::requests(stream);
    // Requests for tags that are gone, and old ones, were carried out long ago.
    requests
        .retain(|tag, at| stream.spec.tag(tag).is_some() && now.duration_since(*at).as_hours() < 1);
    requests.extend(tags.iter().map(|it| (it.tag.clone(), now)));
    let text = serde_json::to_string(&requests).unwrap_or_default();
    let names: Vec<_> = tags.iter().map(|it| it.tag.as_str()).collect();
    PlannedChange::Merge {
        kind: ResourceKind::of::<ImageStream>(),
        metadata: Box::new(stream.metadata.clone()),
        subresource: None,
        patch: json!({"metadata": {"annotations": {IMPORT_REQUESTED: text}}}),
        reason: format!("the last import of {} failed", names.join(", ")),
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
