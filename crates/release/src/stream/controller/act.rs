//! Carries a decision about a stream out. It makes no choice, and a write that fails keeps no other from
//! being tried.

use std::collections::BTreeMap;

use kube::api::ObjectMeta;
use neap_kit::{
    apply::{Error, ResourceKind},
    event::EventDraft,
};
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
                if let Some(event) = refused(&change, &error) {
                    self.tools.record(&*facts.source, &event).await;
                }
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

/// What the stream says about a write that the server will refuse again: an object that is not valid, or that is
/// too large to be stored.
fn refused(change: &StreamChange, error: &Error) -> Option<EventDraft> {
    let Error::Refused { source, .. } = error else {
        return None;
    };
    let kube::Error::Api(status) = &**source else {
        return None;
    };
    let is_large = status.code == 413 || status.message.contains("too large");
    if !is_large && status.code != 422 && status.code != 403 {
        return None;
    }
    let (kind, key) = (change.kind(), change.key());
    let message = &status.message;
    let way_out = if is_large {
        "; remove tags that are not needed, or set expires"
    } else {
        ""
    };
    Some(EventDraft::warning(
        "WriteRefused",
        format!("{kind} {key} was not written: {message}{way_out}"),
    ))
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use neap_kit::key::Key;

    use super::*;

    fn failed(code: u16, message: &str) -> Error {
        let status = json!({"status": "Failure", "code": code, "message": message, "reason": ""});
        let status: kube::core::Status = serde_json::from_value(status).unwrap();
        Error::Refused {
            key: Key::new("ocp", "release"),
            source: Box::new(kube::Error::Api(Box::new(status))),
        }
    }

    #[test]
    fn a_write_that_would_be_refused_again_is_told() {
        let stream = json!({"metadata": {"name": "release", "namespace": "ocp"}, "spec": {}});
        let change = StreamChange::UpdateStream {
            stream: Arc::new(serde_json::from_value(stream).unwrap()),
            tags: None,
            annotations: BTreeMap::new(),
            reason: String::new(),
        };
        let told = |error: &Error| refused(&change, error).map(|event| event.message);
        let large = told(&failed(500, "etcdserver: request is too large")).unwrap();
        assert_eq!(
            large,
            "ImageStream ocp/release was not written: etcdserver: request is too large; \
             remove tags that are not needed, or set expires"
        );
        assert!(
            told(&failed(413, "limit exceeded"))
                .unwrap()
                .contains("set expires")
        );
        assert!(
            told(&failed(422, "spec is invalid"))
                .unwrap()
                .ends_with("spec is invalid")
        );
        assert_eq!(told(&failed(503, "try again")), None);
        assert_eq!(told(&Error::Conflict(Key::new("ocp", "release"))), None);
    }
}
