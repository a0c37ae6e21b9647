//! `neap release streams` and `list`.

use std::io::Write;

use jiff::Timestamp;
use neap_kit::{clock::short_duration, key::Key};
use neap_release::{
    api::{JobState, ReleasePayload, annotations, conditions},
    image_stream::api::ImageStream,
    payload::Phase,
    stream::StreamState,
};
use serde_json::json;

use super::{
    ListOptions,
    releases::{Releases, Stream},
};
use crate::{
    exit::Failure,
    inspect::listing::{self, Column, Listed, Listing},
};

const STREAM_COLUMNS: &[Column] = &[
    Column::new("NAMESPACE"),
    Column::new("STREAM"),
    Column::new("SOURCE"),
    Column::new("STATE"),
    Column::new("NEWEST ACCEPTED"),
    Column::new("NEWEST").wide(),
    Column::new("WHY"),
];

const RELEASE_COLUMNS: &[Column] = &[
    Column::new("NAMESPACE"),
    Column::new("RELEASE"),
    Column::new("PHASE"),
    Column::new("JOBS"),
    Column::age("AGE"),
    Column::new("STREAM").wide(),
    Column::new("WHY"),
];

pub(super) async fn streams(options: &ListOptions, out: &mut dyn Write) -> Result<(), Failure> {
    let releases = Releases::of(&options.scope).await?;
    let read = async || {
        let mut streams = releases.streams().await?;
        if let Some(name) = &options.stream {
            releases.known_stream(name, &streams)?;
        }
        streams.retain(|stream| {
            options
                .stream
                .as_ref()
                .is_none_or(|name| stream.is_called(name))
        });
        Ok(Listing {
            kind: "ReleaseStreamList",
            resource: "stream",
            columns: STREAM_COLUMNS,
            items: streams.iter().map(listed_stream).collect(),
            empty: releases.none_of("stream"),
        })
    };
    listing::show(options.listing, releases.clock, out, read).await
}

fn listed_stream(stream: &Stream) -> Listed {
    let meta = &stream.source.metadata;
    let all = meta.annotations.as_ref();
    let state = all.and_then(|all| all.get(annotations::STREAM_STATE));
    let state: Option<StreamState> = state.and_then(|text| serde_json::from_str(text).ok());
    let state = state.unwrap_or_default();
    let namespace = meta.namespace.clone().unwrap_or_default();
    let source = meta.name.clone().unwrap_or_default();
    let name = &stream.name;
    let data = json!({"namespace": namespace, "name": name, "source": source, "state": state});
    let mut why = vec![state.message];
    if state.reason.is_empty() {
        // Without a namespace that a controller serves, a stream has no state.
        why.push(format!(
            "no release controller has looked at it: {namespace} may not be among its --release-namespace"
        ));
    }
    why.extend(state.problems);
    why.retain(|text| !text.is_empty());
    let accepted = state.newest_accepted.unwrap_or_else(|| "-".to_owned());
    Listed {
        name: name.clone(),
        cells: vec![
            namespace,
            name.clone(),
            source,
            or_dash(state.reason),
            accepted,
            or_dash(state.newest.unwrap_or_default()),
            why.join("; "),
        ],
        data,
    }
}

fn or_dash(text: String) -> String {
    if text.is_empty() {
        "-".to_owned()
    } else {
        text
    }
}

pub(super) async fn releases(options: &ListOptions, out: &mut dyn Write) -> Result<(), Failure> {
    let releases = Releases::of(&options.scope).await?;
    let read = async || {
        let mut payloads = releases.payloads().await?;
        let of_stream = |payload: &ReleasePayload, name: &str| {
            payload.spec.payload_coordinates.stream_name == name
        };
        // The releases of a stream that is gone are still there.
        if let Some(name) = &options.stream
            && !payloads.iter().any(|payload| of_stream(payload, name))
        {
            releases.known_stream(name, &releases.streams().await?)?;
        }
        payloads.retain(|payload| {
            let stream = &payload.spec.payload_coordinates.stream_name;
            options.stream.as_ref().is_none_or(|name| name == stream)
        });
        let now = releases.clock.now();
        let streams = releases.publishing(&payloads).await;
        Ok(Listing {
            kind: "ReleasePayloadList",
            resource: "releasepayload.release.openshift.io",
            columns: RELEASE_COLUMNS,
            items: payloads
                .iter()
                .map(|payload| listed(payload, &streams, now))
                .collect(),
            empty: releases.none_of("release"),
        })
    };
    listing::show(options.listing, releases.clock, out, read).await
}

fn listed(payload: &ReleasePayload, streams: &[ImageStream], now: Timestamp) -> Listed {
    let meta = &payload.metadata;
    let created = meta.creation_timestamp.as_ref().map(|time| time.0);
    let name = meta.name.clone().unwrap_or_default();
    Listed {
        name: name.clone(),
        cells: vec![
            meta.namespace.clone().unwrap_or_default(),
            name,
            Phase::of_payload(payload).to_string(),
            jobs(payload),
            created.map_or_else(|| "-".to_owned(), |created| age(created, now)),
            payload.spec.payload_coordinates.stream_name.clone(),
            why_and_published(payload, streams),
        ],
        data: serde_json::to_value(payload).unwrap_or_default(),
    }
}

/// How many blocking jobs passed, of how many.
fn jobs(payload: &ReleasePayload) -> String {
    let jobs = payload
        .status
        .iter()
        .flat_map(|status| &status.blocking_job_results);
    let (passed, all) = jobs.fold((0, 0), |(passed, all), job| {
        (
            passed + usize::from(job.state == JobState::Success),
            all + 1,
        )
    });
    format!("{passed}/{all}")
}

pub(in crate::areas::release) fn why(payload: &ReleasePayload) -> String {
    let conditions = payload.status.iter().flat_map(|status| &status.conditions);
    let mut accepted = conditions.filter(|it| it.type_ == conditions::ACCEPTED);
    accepted
        .next()
        .map(|it| it.message.clone())
        .unwrap_or_default()
}

fn why_and_published(payload: &ReleasePayload, streams: &[ImageStream]) -> String {
    let published = published_as(payload, streams);
    if !needs_note(payload) || published.is_empty() {
        return why(payload);
    }
    format!(
        "{}; {} still points to it",
        why(payload),
        published.join(", ")
    )
}

/// Whether users have to know that the release is published nevertheless.
pub(super) fn needs_note(payload: &ReleasePayload) -> bool {
    matches!(Phase::of_payload(payload), Phase::Rejected | Phase::Failed)
}

/// The tags and ImageStreams that stand for the release.
pub(super) fn published_as(payload: &ReleasePayload, streams: &[ImageStream]) -> Vec<String> {
    let at = &payload.spec.payload_coordinates;
    let release = payload.metadata.name.as_deref().unwrap_or_default();
    let marker = format!("{}{}", annotations::PUBLISHED_SOURCE_PREFIX, at.stream_name);
    let mut found = Vec::new();
    for stream in streams {
        let meta = &stream.metadata;
        let is_target = meta.namespace.as_ref() == Some(&at.namespace)
            && meta.name.as_ref() == Some(&at.imagestream_name);
        if is_target {
            let tags = stream.spec.tags.iter().filter(|tag| {
                let from = tag.from.as_ref();
                from.is_some_and(|from| from.kind == "ImageStreamTag" && from.name == release)
            });
            found.extend(tags.map(|tag| tag.name.clone()));
        }
        let all = meta.annotations.as_ref();
        if all.and_then(|all| all.get(&marker)).map(String::as_str) == Some(release) {
            found.push(format!("ImageStream {}", Key::of(stream)));
        }
    }
    found
}

pub(super) fn age(since: Timestamp, now: Timestamp) -> String {
    short_duration(now.duration_since(since).as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rejected_release_that_is_published_says_so() {
        let payload = |type_: &str| -> ReleasePayload {
            let condition = json!({
                "type": type_, "status": "True", "reason": "R", "message": "m",
                "lastTransitionTime": "2026-01-02T03:04:05Z",
            });
            serde_json::from_value(json!({
                "metadata": {"name": "r-1", "namespace": "ocp"},
                "spec": {"payloadCoordinates": {
                    "namespace": "ocp", "streamName": "s", "imagestreamName": "release", "imagestreamTagName": "r-1",
                }},
                "status": {"conditions": [condition]},
            }))
            .unwrap()
        };
        let stream = |name: &str, tag: &str, from: &str| -> ImageStream {
            let marker = format!("{}s", annotations::PUBLISHED_SOURCE_PREFIX);
            let from = json!({"kind": "ImageStreamTag", "name": from});
            serde_json::from_value(json!({
                "metadata": {"name": name, "namespace": "ocp", "annotations": {marker: tag}},
                "spec": {"tags": [{"name": "4.21", "from": from}]},
            }))
            .unwrap()
        };
        let streams = [stream("release", "", "r-1"), stream("copy", "r-1", "")];
        let rejected = why_and_published(&payload(conditions::REJECTED), &streams);
        assert!(
            rejected.ends_with("4.21, ImageStream ocp/copy still points to it"),
            "{rejected}"
        );
        let others = [stream("release", "", "r-2"), stream("other", "r-2", "r-1")];
        let of_another = why_and_published(&payload(conditions::REJECTED), &others);
        assert!(!of_another.contains("points to it"), "{of_another}");
        let accepted = why_and_published(&payload(conditions::ACCEPTED), &streams);
        assert_eq!(accepted, "m");
    }

    #[test]
    fn a_stream_without_a_state_says_that_no_controller_serves_it() {
        let source = json!({"metadata": {"name": "s", "namespace": "elsewhere"}, "spec": {}});
        let stream = Stream {
            name: "s".to_owned(),
            source: serde_json::from_value(source).unwrap(),
        };
        let cells = listed_stream(&stream).cells;
        let why = cells.last().unwrap();
        assert!(
            why.starts_with("no release controller has looked at it: elsewhere"),
            "{why}"
        );
    }
}
