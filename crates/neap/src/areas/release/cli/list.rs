//! `neap release streams` and `list`.

use std::io::Write;

use jiff::Timestamp;
use neap_kit::clock::short_duration;
use neap_release::{
    api::{JobState, ReleasePayload, annotations, conditions},
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
            empty: "There is no stream.".to_owned(),
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
    let why = std::iter::once(state.message).chain(state.problems);
    let why: Vec<_> = why.filter(|text| !text.is_empty()).collect();
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
        Ok(Listing {
            kind: "ReleasePayloadList",
            resource: "releasepayload.release.openshift.io",
            columns: RELEASE_COLUMNS,
            items: payloads
                .iter()
                .map(|payload| listed(payload, now))
                .collect(),
            empty: "There is no release.".to_owned(),
        })
    };
    listing::show(options.listing, releases.clock, out, read).await
}

fn listed(payload: &ReleasePayload, now: Timestamp) -> Listed {
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
            why(payload),
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

pub(super) fn age(since: Timestamp, now: Timestamp) -> String {
    short_duration(now.duration_since(since).as_secs())
}
