//! Decisions about streams: when a release is cut and why not, what is removed and published, and what bad
//! input leads to.

mod conflicts;
mod cutting;
mod large;
mod life;
mod properties;
mod removed_jobs;

use serde_json::{Value, json};

use super::*;
use crate::{
    config::{ANNOTATION_LIMIT, parse},
    payload::run_token::RunKey,
    stream::options::StreamOptions,
};

const NOW: &str = "2026-01-02T04:00:00Z";
const STREAM: &str = "4.21.0-0.nightly";

fn image_stream(name: &str, annotations: &Value, tags: &Value, status: &Value) -> ImageStream {
    serde_json::from_value(json!({
        "metadata": {
            "name": name, "namespace": "ocp", "generation": 2, "uid": format!("uid-of-{name}"),
            "creationTimestamp": "2026-01-01T00:00:00Z", "annotations": annotations,
        },
        "spec": {"tags": tags}, "status": {"tags": status},
    }))
    .unwrap()
}

/// An imported tag of a source.
fn imported(name: &str, digest: &str) -> Value {
    let reference = format!("reg.example/ocp/{name}@sha256:{digest}");
    json!({"tag": name, "items": [{
        "created": "2026-01-02T03:00:00Z", "dockerImageReference": reference,
        "image": format!("sha256:{digest}"), "generation": 1,
    }]})
}

/// A release tag that was cut this many minutes before now, with its phase.
fn release(minutes: i64, phase: &str) -> Value {
    let now: Timestamp = NOW.parse().unwrap();
    let created = now.checked_sub(SignedDuration::from_mins(minutes)).unwrap();
    json!({
        "name": crate::names::release_tag(STREAM, created),
        "annotations": {
            annotations::NAME: STREAM, annotations::SOURCE: "ocp/4.21-latest",
            annotations::CREATION_TIMESTAMP: created.to_string(), annotations::PHASE: phase,
            annotations::HASH: "sha256:other",
        },
    })
}

fn with_annotation(mut tag: Value, name: &str, value: &str) -> Value {
    tag["annotations"][name] = json!(value);
    tag
}

/// The hash of the images of [`facts`].
fn hash() -> String {
    crate::names::input_hash(["sha256:aaa", "sha256:bbb"])
}

/// A stream with two images, this configuration and these release tags.
fn facts(config: &Value, releases: &[Value]) -> Facts {
    let mut whole = json!({"name": STREAM, "to": "release"});
    if let (Some(whole), Some(config)) = (whole.as_object_mut(), config.as_object()) {
        whole.extend(config.clone());
    }
    let status = json!([imported("cli", "aaa"), imported("etcd", "bbb")]);
    let source = image_stream("4.21-latest", &json!({}), &json!([]), &status);
    let has_releases = json!({annotations::HAS_RELEASES: "true"});
    let target = image_stream("release", &has_releases, &json!(releases), &json!([]));
    let mut options = StreamOptions::new("ocp", "ci-release", "ci");
    options.registry = Some("reg.example".to_owned());
    Facts {
        options: Arc::new(options),
        source: Arc::new(source),
        config: parse(&whole.to_string(), ANNOTATION_LIMIT).map(Arc::new),
        target: Some(Arc::new(target)),
        payloads: BTreeMap::new(),
        proved: BTreeSet::new(),
        mirrors: BTreeMap::new(),
        jobs: BTreeMap::new(),
        runs: BTreeMap::new(),
        periodic_runs: BTreeMap::new(),
        prow: Arc::default(),
        accepted: Arc::default(),
        previous: BTreeMap::new(),
        destinations: BTreeMap::new(),
        informing: BTreeMap::new(),
        release_names: BTreeMap::new(),
        cli_override: None,
        cli_images: BTreeMap::new(),
        unread: BTreeMap::new(),
        reading: BTreeSet::new(),
        taken: BTreeMap::new(),
        run_key: RunKey::new(&[7; 32]).unwrap(),
        now: NOW.parse().unwrap(),
    }
}

fn annotate(facts: &mut Facts, name: &str, value: &str) {
    let mut source = ImageStream::clone(&facts.source);
    let all = source.metadata.annotations.get_or_insert_default();
    all.insert(name.to_owned(), value.to_owned());
    facts.source = Arc::new(source);
}

/// The tags of the target after a decision.
fn tags_after(facts: &Facts, decision: &Decision) -> Vec<TagReference> {
    let written = decision.changes.iter().find_map(|change| match change {
        StreamChange::UpdateStream { stream, tags, .. }
            if stream.metadata.name.as_deref() == Some("release") =>
        {
            tags.clone()
        }
        _ => None,
    });
    written.unwrap_or_else(|| facts.target.as_ref().unwrap().spec.tags.clone())
}

fn names(tags: &[TagReference]) -> Vec<&str> {
    tags.iter().map(|tag| tag.name.as_str()).collect()
}
