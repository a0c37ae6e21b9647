//! `neap release streams` and `list`.

use std::io::Write;

use jiff::Timestamp;
use neap_release::{
    api::{JobState, ReleasePayload, annotations, conditions},
    payload::Phase,
    stream::StreamState,
};
use serde_json::json;

use super::{ListOptions, releases::Releases};
use crate::{
    cli::Output,
    exit::Failure,
    inspect::{print, table::table},
};

pub(super) async fn streams(options: &ListOptions, out: &mut dyn Write) -> Result<(), Failure> {
    let releases = Releases::of(&options.scope).await?;
    let mut streams = releases.streams().await?;
    streams.retain(|stream| {
        options
            .stream
            .as_ref()
            .is_none_or(|name| *name == stream.name)
    });
    let rows = streams.iter().map(|stream| {
        let meta = &stream.source.metadata;
        let all = meta.annotations.as_ref();
        let state = all.and_then(|all| all.get(annotations::STREAM_STATE));
        let state: Option<StreamState> = state.and_then(|text| serde_json::from_str(text).ok());
        let namespace = meta.namespace.clone().unwrap_or_default();
        let source = meta.name.clone().unwrap_or_default();
        (
            namespace,
            stream.name.clone(),
            source,
            state.unwrap_or_default(),
        )
    });
    let rows: Vec<_> = rows.collect();
    if options.output == Output::Json {
        let items = rows.iter().map(|(namespace, name, source, state)| {
            json!({"namespace": namespace, "name": name, "source": source, "state": state})
        });
        let items: Vec<_> = items.collect();
        return print::json(out, "ReleaseStreamList", &json!({ "items": items }));
    }
    if rows.is_empty() {
        return print::text(out, "There is no stream.");
    }
    let heads = [
        "NAMESPACE",
        "STREAM",
        "SOURCE",
        "STATE",
        "NEWEST ACCEPTED",
        "WHY",
    ];
    let rows: Vec<_> = rows
        .into_iter()
        .map(|(namespace, name, source, state)| {
            let why = std::iter::once(state.message).chain(state.problems);
            let why: Vec<_> = why.filter(|text| !text.is_empty()).collect();
            let accepted = state.newest_accepted.unwrap_or_else(|| "-".to_owned());
            vec![
                namespace,
                name,
                source,
                or_dash(state.reason),
                accepted,
                why.join("; "),
            ]
        })
        .collect();
    print::text(out, &table(&heads, &rows))
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
    let mut payloads = releases.payloads().await?;
    payloads.retain(|payload| {
        let stream = &payload.spec.payload_coordinates.stream_name;
        options.stream.as_ref().is_none_or(|name| name == stream)
    });
    if options.output == Output::Json {
        return print::json(out, "ReleasePayloadList", &json!({ "items": payloads }));
    }
    if payloads.is_empty() {
        return print::text(out, "There is no release.");
    }
    let now = releases.clock.now();
    let heads = ["NAMESPACE", "RELEASE", "PHASE", "JOBS", "AGE", "WHY"];
    let rows: Vec<_> = payloads.iter().map(|payload| row(payload, now)).collect();
    print::text(out, &table(&heads, &rows))
}

fn row(payload: &ReleasePayload, now: Timestamp) -> Vec<String> {
    let meta = &payload.metadata;
    let created = meta.creation_timestamp.as_ref().map(|time| time.0);
    vec![
        meta.namespace.clone().unwrap_or_default(),
        meta.name.clone().unwrap_or_default(),
        Phase::of_payload(payload).to_string(),
        jobs(payload),
        created.map_or_else(|| "-".to_owned(), |created| age(created, now)),
        why(payload),
    ]
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

pub(super) fn why(payload: &ReleasePayload) -> String {
    let conditions = payload.status.iter().flat_map(|status| &status.conditions);
    let mut accepted = conditions.filter(|it| it.type_ == conditions::ACCEPTED);
    accepted
        .next()
        .map(|it| it.message.clone())
        .unwrap_or_default()
}

pub(super) fn age(since: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(since).as_secs().max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}
