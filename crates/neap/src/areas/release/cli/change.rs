//! `neap release accept`, `reject`, `retry` and `pause`.

use std::{collections::BTreeMap, io::Write};

use kube::api::ObjectMeta;
use neap_kit::{
    apply::{Error, Object, ResourceKind, Writer},
    event::{EventDraft, EventRecorder},
    key::Key,
};
use neap_release::{
    api::{ReleasePayload, annotations},
    image_stream::api::ImageStream,
    payload::{Phase, facts::extra_attempts},
    stream::StreamState,
};
use serde_json::{Value, json};

use super::{
    DecideOptions, PauseOptions, RetryOptions,
    releases::{Releases, write_failed},
};
use crate::{
    exit::{Exit, Failure},
    inspect::print,
    symbols::Symbols,
};

/// The source of Events of this command.
const EVENT_SOURCE: &str = "neap-cli";
/// How often a change is tried that others get in the way of.
const MAX_TRIES: usize = 5;

pub(super) async fn decide(
    options: &DecideOptions,
    decision: &str,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let releases = Releases::of_one_namespace(&options.scope).await?;
    let payload = releases.payload(&options.name).await?;
    let reason = options.reason.as_deref().unwrap_or_default().trim();
    if !options.clear && reason.is_empty() {
        return Err(needs_reason());
    }
    if decision == "Accepted" && !options.clear && Phase::of_payload(&payload) == Phase::Failed {
        let why = "its image could not be created, so there is nothing to accept";
        return Err(Failure::new(
            "NT-RELEASE-0009",
            Exit::Refused,
            "the release cannot be accepted",
            why,
        )
        .remedy(format!(
            "cut it again: neap release retry {}",
            command_target(&payload)
        )));
    }
    let (decision, text) = if options.clear {
        ("", "is decided by its jobs again".to_owned())
    } else {
        (
            decision,
            format!("is {} by override: {reason}", decision.to_lowercase()),
        )
    };
    let user = std::env::var("USER").ok().filter(|_| !options.clear);
    let change = json!({
        "metadata": {"annotations": {annotations::OVERRIDE_BY: user}},
        "spec": {"payloadOverride": {"override": decision, "reason": reason}},
    });
    write(&releases, &payload, change).await?;
    record(
        &releases,
        &payload,
        "PayloadOverride",
        &format!("{} {text}", options.name),
    )
    .await;
    print::text(out, &format!("{} {} {text}", symbols.done, options.name))
}

fn needs_reason() -> Failure {
    let why = "the reason of an override is shown with the release";
    Failure::new("NT-RELEASE-0004", Exit::Usage, "a reason is missing", why)
        .remedy("add --reason TEXT")
}

pub(super) async fn retry(
    options: &RetryOptions,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let releases = Releases::of_one_namespace(&options.scope).await?;
    let payload = releases.payload(&options.name).await?;
    let Some(job) = &options.job else {
        return cut_again(options, &releases, &payload, symbols, out).await;
    };
    let status = payload.status.iter();
    let known = status
        .flat_map(|status| {
            status
                .blocking_job_results
                .iter()
                .chain(&status.informing_job_results)
        })
        .any(|known| known.name == *job);
    if !known {
        let why = format!("{} is not verified by a job {job}", options.name);
        return Err(
            Failure::new("NT-RELEASE-0002", Exit::NotFound, "job not found", &why).remedy(format!(
                "list its jobs: neap release jobs {}",
                command_target(&payload)
            )),
        );
    }
    let read = async || releases.payload(&options.name).await;
    add_attempt(&releases.writer(), payload.clone(), job, read).await?;
    let text = format!("job {job} of {} may run once more", options.name);
    record(&releases, &payload, "PayloadRetry", &text).await;
    print::text(out, &format!("{} {text}", symbols.done))
}

/// Allows one more run of `job`. All such runs are in one annotation, so it is written only in the state that was
/// read; after a change by another it is read again.
async fn add_attempt(
    writer: &Writer,
    mut payload: ReleasePayload,
    job: &str,
    read: impl AsyncFn() -> Result<ReleasePayload, Failure>,
) -> Result<(), Failure> {
    let kind = ResourceKind::of::<ReleasePayload>();
    let mut tries = 0;
    loop {
        let mut attempts: BTreeMap<String, i32> = extra_attempts(&payload);
        *attempts.entry(job.to_owned()).or_default() += 1;
        let text = serde_json::to_string(&attempts).unwrap_or_default();
        let change = json!({"metadata": {"annotations": {annotations::EXTRA_ATTEMPTS: text}}});
        tries += 1;
        match writer.merge(&kind, &payload.metadata, None, change).await {
            Ok(_) => return Ok(()),
            Err(Error::Conflict(_)) if tries < MAX_TRIES => payload = read().await?,
            Err(error) => return Err(write_failed(&Key::of(&payload), &error)),
        }
    }
}

/// A release as commands take it, with its namespace.
fn command_target(payload: &ReleasePayload) -> String {
    let name = payload.metadata.name.as_deref().unwrap_or_default();
    match payload.metadata.namespace.as_deref() {
        Some(namespace) => format!("{name} -n {namespace}"),
        None => name.to_owned(),
    }
}

/// Why the controller would not cut a release of the images of `name` again: it looks at the newest release only.
fn superseded(source: &ImageStream, name: &str) -> Option<String> {
    let all = source.metadata.annotations.as_ref()?;
    let state: StreamState = serde_json::from_str(all.get(annotations::STREAM_STATE)?).ok()?;
    if state.stable {
        return Some("users tag the releases of this stream".to_owned());
    }
    let newest = state.newest.filter(|newest| newest != name)?;
    Some(format!(
        "{newest} is newer, and the stream may have other images since {name} was cut"
    ))
}

/// The same images make a new release.
async fn cut_again(
    options: &RetryOptions,
    releases: &Releases,
    payload: &ReleasePayload,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let stream = releases
        .stream(&payload.spec.payload_coordinates.stream_name)
        .await?;
    if let Some(why) = superseded(&stream.source, &options.name) {
        let what = "the images of the release cannot be released again";
        return Err(
            Failure::new("NT-RELEASE-0009", Exit::Refused, what, &why).remedy(format!(
                "look at the stream: neap release streams {} -n {}; nothing was written",
                stream.name,
                stream
                    .source
                    .metadata
                    .namespace
                    .as_deref()
                    .unwrap_or_default()
            )),
        );
    }
    let change = json!({"metadata": {"annotations": {annotations::RETRY: options.name}}});
    write(releases, &stream.source, change).await?;
    let text = format!(
        "{} may cut a new release of the images of {}",
        stream.name, options.name
    );
    record(releases, payload, "PayloadRetry", &text).await;
    print::text(out, &format!("{} {text}", symbols.done))
}

pub(super) async fn pause(
    options: &PauseOptions,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let releases = Releases::of_one_namespace(&options.scope).await?;
    let stream = releases.stream(&options.stream).await?;
    let reason = options.reason.as_deref().map(str::trim);
    if !options.resume && reason.is_none_or(str::is_empty) {
        return Err(needs_reason());
    }
    let value = if options.resume {
        Value::Null
    } else {
        json!(reason)
    };
    let change = json!({"metadata": {"annotations": {annotations::PAUSED: value}}});
    write(&releases, &stream.source, change).await?;
    let (event, text) = match reason.filter(|_| !options.resume) {
        Some(reason) => (
            "StreamPaused",
            format!("{} is paused: {reason}", stream.name),
        ),
        None => ("StreamResumed", format!("{} goes on", stream.name)),
    };
    record(&releases, &stream.source, event, &text).await;
    print::text(out, &format!("{} {text}", symbols.done))
}

/// Changes an object, whatever else has changed since it was read.
async fn write<K>(releases: &Releases, object: &K, change: Value) -> Result<(), Failure>
where
    K: Object + kube::Resource<Scope = k8s_openapi::NamespaceResourceScope>,
{
    let meta = object.meta();
    let metadata = ObjectMeta {
        name: meta.name.clone(),
        namespace: meta.namespace.clone(),
        uid: meta.uid.clone(),
        ..ObjectMeta::default()
    };
    let kind = ResourceKind::of::<K>();
    let written = releases
        .writer()
        .merge(&kind, &metadata, None, change)
        .await;
    written
        .map(drop)
        .map_err(|error| write_failed(&Key::of(object), &error))
}

async fn record<K>(releases: &Releases, about: &K, reason: &'static str, text: &str)
where
    K: kube::Resource<DynamicType = ()>,
{
    let recorder = EventRecorder::new(releases.writer(), EVENT_SOURCE, releases.clock);
    recorder
        .record(about, &EventDraft::normal(reason, text))
        .await;
}

/// Sets annotations of an ImageStream.
pub(super) async fn annotate(
    releases: &Releases,
    stream: &ImageStream,
    annotations: Value,
) -> Result<(), Failure> {
    write(
        releases,
        stream,
        json!({"metadata": {"annotations": annotations}}),
    )
    .await
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
    use kube::{Api, Client, api::PostParams};
    use neap_kit::{clock::Clock, lease::Leadership};
    use neap_pocket::{Options, Pocket, environment::Environment};

    use super::*;

    /// A server with one release, as two users have read it.
    async fn server_with_release() -> (Pocket, Api<ReleasePayload>, Writer, ReleasePayload) {
        let pocket = Pocket::open(Options::new(Environment::simulated(7)));
        let pocket = pocket.await.unwrap();
        let client = Client::new(pocket.service(), "default");
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        let definition = neap_release::api::release_payload_definition();
        let made = PostParams::default();
        definitions.create(&made, &definition).await.unwrap();
        clock.sleep(Duration::from_millis(100)).await;
        let leadership = Leadership::without_election(clock);
        let writer = Writer::new(client.clone(), "neap-cli", leadership, clock);
        let payloads: Api<ReleasePayload> = Api::default_namespaced(client);
        let payload = json!({
            "apiVersion": "release.openshift.io/v1alpha1", "kind": "ReleasePayload",
            "metadata": {"name": "r"}, "spec": {},
        });
        let payload = serde_json::from_value(payload).unwrap();
        let payload = payloads.create(&made, &payload).await.unwrap();
        (pocket, payloads, writer, payload)
    }

    #[tokio::test(start_paused = true)]
    async fn of_two_users_who_retry_jobs_at_once_neither_loses_a_run() {
        let (_pocket, payloads, writer, read_by_both) = server_with_release().await;
        let read = async || Ok(payloads.get("r").await.unwrap());
        for job in ["aws", "gcp", "aws"] {
            let stale = read_by_both.clone();
            add_attempt(&writer, stale, job, read).await.unwrap();
        }
        let attempts = extra_attempts(&payloads.get("r").await.unwrap());
        assert_eq!(
            attempts,
            BTreeMap::from([("aws".to_owned(), 2), ("gcp".to_owned(), 1)])
        );
    }

    #[test]
    fn only_the_newest_release_is_cut_again() {
        let source = |state: Value| -> ImageStream {
            let all = json!({annotations::STREAM_STATE: state.to_string()});
            serde_json::from_value(
                json!({"metadata": {"name": "s", "annotations": all}, "spec": {}}),
            )
            .unwrap()
        };
        let state = json!({"reason": "UpToDate", "message": "", "newest": "r-2"});
        assert_eq!(superseded(&source(state.clone()), "r-2"), None);
        let why = superseded(&source(state), "r-1").unwrap();
        assert!(why.starts_with("r-2 is newer"), "{why}");
        let stable = json!({"reason": "Stable", "message": "", "stable": true, "newest": "r-2"});
        assert!(superseded(&source(stable), "r-2").is_some());
        // A stream without a state was not looked at yet.
        assert_eq!(superseded(&ImageStream::default(), "r-1"), None);
    }
}
