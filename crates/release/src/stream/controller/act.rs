//! Carries a decision about a stream out. It makes no choice, and a write that fails keeps no other from
//! being tried, but for the mirror of a release whose tag was not written: the next attempt has another name, and
//! each would leave a mirror.

use std::collections::BTreeMap;

use kube::api::ObjectMeta;
use neap_kit::{
    apply::{Error, ResourceKind},
    event::EventDraft,
    why,
};
use serde_json::{Value, json};

use super::StreamController;
use crate::{
    api::annotations,
    image_stream::api::{ImageStream, TagReference},
    stream::{
        StreamState,
        decide::{Decision, StreamChange, known_state},
        facts::{Facts, annotation},
    },
};

impl StreamController {
    /// Whether everything that was to be created was: an object that exists already, though no cache has it, may be
    /// on its way here or on its way out.
    pub(super) async fn act(&self, facts: &Facts, decision: Decision) -> Result<bool, Error> {
        if facts.options.dry_run {
            for change in &decision.changes {
                tracing::info!(source = facts.source_name(), %change, "would write");
            }
            return Ok(true);
        }
        let mut failed = None;
        let mut created_all = true;
        let mut tags_unwritten = false;
        for change in decision.changes {
            if tags_unwritten && follows_tags(facts, &change) {
                tracing::debug!(%change, "the tags of the target were not written");
                continue;
            }
            tracing::debug!(%change, "write");
            match self.execute(&change).await {
                Ok(is_written) => created_all &= is_written,
                Err(error) => {
                    if matches!(error, Error::Conflict(_)) {
                        // The next look at the stream resolves it.
                        tracing::debug!(%change, %error, "a write for a stream was overtaken");
                    } else {
                        let error = why::chain(&error);
                        tracing::warn!(%change, error, "a write for a stream failed");
                    }
                    let is_of_tags = writes_tags(facts, &change);
                    if let Some(event) = refused(&change, &error) {
                        self.tell_refusal(facts, &decision.state, event, is_of_tags)
                            .await;
                    }
                    tags_unwritten |= is_of_tags;
                    failed = failed.or(Some(error));
                }
            }
        }
        for event in &decision.events {
            self.tools.record(&*facts.source, event).await;
        }
        failed.map_or(Ok(created_all), Err)
    }

    /// Says that the server refuses a write: once in an Event, and in the state of the stream while its tags cannot
    /// be written.
    async fn tell_refusal(
        &self,
        facts: &Facts,
        state: &StreamState,
        event: EventDraft,
        is_of_tags: bool,
    ) {
        let known = known_state(facts);
        if known.reason == REFUSED && known.message == event.message {
            return;
        }
        self.tools.record(&*facts.source, &event).await;
        if !is_of_tags {
            return;
        }
        let state = StreamState {
            reason: REFUSED.to_owned(),
            message: event.message,
            ..state.clone()
        };
        let text = serde_json::to_string(&state).unwrap_or_default();
        let told = StreamChange::UpdateStream {
            stream: facts.source.clone(),
            tags: None,
            annotations: [(annotations::STREAM_STATE.to_owned(), Some(text))].into(),
            reason: REFUSED.to_owned(),
        };
        if let Err(error) = self.execute(&told).await {
            tracing::warn!(%error, "the state of a stream was not written");
        }
    }

    /// Writes. False if what was to be created exists already: an earlier attempt whose answer was lost may have
    /// created it.
    async fn execute(&self, change: &StreamChange) -> Result<bool, Error> {
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
                writer.merge(&kind, &seen, None, patch).await.map(|_| true)
            }
            StreamChange::CreateMirror(mirror) => {
                writer.create(&**mirror).await.map(|made| made.is_some())
            }
            StreamChange::CreatePayload(payload) => {
                writer.create(&**payload).await.map(|made| made.is_some())
            }
            StreamChange::CreateJob(job) => writer.create(&**job).await.map(|made| made.is_some()),
            StreamChange::CreateRun(run) => writer.create(&**run).await.map(|made| made.is_some()),
        }
    }
}

/// The reason of a stream whose tags the server refuses, and of the Event about it.
const REFUSED: &str = "WriteRefused";

/// Whether this writes the tags of the target.
fn writes_tags(facts: &Facts, change: &StreamChange) -> bool {
    let StreamChange::UpdateStream {
        stream,
        tags: Some(_),
        ..
    } = change
    else {
        return false;
    };
    let target = facts.target.as_ref();
    target.is_some_and(|target| target.metadata.uid == stream.metadata.uid)
}

/// Whether this makes sense only after the tags of the target were written: the mirror of a release that is cut
/// now, and the state that tells of it.
fn follows_tags(facts: &Facts, change: &StreamChange) -> bool {
    match change {
        StreamChange::CreateMirror(mirror) => {
            let tag = annotation(mirror, annotations::RELEASE_TAG);
            let target = facts.target.as_ref();
            tag.is_some_and(|tag| target.is_none_or(|target| target.spec.tag(tag).is_none()))
        }
        StreamChange::UpdateStream {
            tags: None,
            annotations,
            ..
        } => annotations.contains_key(annotations::STREAM_STATE),
        _ => false,
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
        REFUSED,
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
