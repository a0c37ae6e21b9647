//! Carries a decision about a stream out. It makes no choice, and a write that fails keeps no other from
//! being tried.

use std::collections::BTreeMap;

use kube::api::ObjectMeta;
use neap_kit::apply::{Error, ResourceKind};
use serde_json::{Value, json};

use super::StreamController;
use crate::{
    image_stream::api::{ImageStream, TagReference},
    stream::{
        decide::{Decision, StreamChange},
        facts::Facts,
    },
};

impl StreamController {
    pub(super) async fn act(&self, facts: &Facts, decision: Decision) -> Result<(), Error> {
        if facts.options.dry_run {
            for change in &decision.changes {
                tracing::info!(source = facts.source_name(), %change, "would write");
            }
            return Ok(());
        }
        let mut failed = None;
        for change in decision.changes {
            tracing::debug!(%change, "write");
            if let Err(error) = self.execute(&change).await {
                tracing::warn!(%change, %error, "a write for a stream failed");
                failed = failed.or(Some(error));
            }
        }
        for event in &decision.events {
            self.tools.record(&*facts.source, event).await;
        }
        failed.map_or(Ok(()), Err)
    }

    async fn execute(&self, change: &StreamChange) -> Result<(), Error> {
        let writer = &self.tools.writer;
        match change {
            StreamChange::UpdateStream {
                stream,
                tags,
                annotations,
                ..
            } => {
                let kind = ResourceKind::of::<ImageStream>();
                let seen = preconditions(&stream.metadata);
                let patch = patch(tags.as_deref(), annotations);
                writer.merge(&kind, &seen, None, patch).await.map(drop)
            }
            // What exists already was written by an earlier attempt whose answer was lost.
            StreamChange::CreateMirror(mirror) => writer.create(&**mirror).await.map(drop),
            StreamChange::CreatePayload(payload) => writer.create(&**payload).await.map(drop),
            StreamChange::CreateJob(job) => writer.create(&**job).await.map(drop),
            StreamChange::CreateRun(run) => writer.create(&**run).await.map(drop),
        }
    }
}

/// The tags of an ImageStream are written as one list, so only in the state that was read.
fn preconditions(seen: &ObjectMeta) -> ObjectMeta {
    ObjectMeta {
        name: seen.name.clone(),
        namespace: seen.namespace.clone(),
        uid: seen.uid.clone(),
        resource_version: seen.resource_version.clone(),
        ..ObjectMeta::default()
    }
}

fn patch(tags: Option<&[TagReference]>, annotations: &BTreeMap<String, Option<String>>) -> Value {
    let mut patch = json!({});
    if let Some(tags) = tags {
        patch["spec"] = json!({"tags": tags});
    }
    if !annotations.is_empty() {
        patch["metadata"] = json!({"annotations": annotations});
    }
    patch
}
