//! `neap release plan`: what the release controller would do next about a stream, without doing it.

use std::{fmt::Write as _, io::Write, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use neap_kit::{clock::short_duration, key::Key, why::chain};
use neap_release::{
    api::annotations,
    oci::{
        client::{Options as RegistryOptions, RegistryClient},
        credentials::Credentials,
    },
    stream::{
        ControllerSettings, StreamState,
        config_files::ConfigFiles,
        decide::{Decision, StreamChange},
        dry_run::{DryRunOptions, dry_run},
        prow_config::ProwConfig,
        registry_reader::RegistryReader,
        release_reader::CachedReader,
    },
};
use serde_json::{Value, json};

use super::{
    PlanOptions,
    controllers::not_set_up,
    releases::{Releases, Stream},
};
use crate::{
    exit::{Exit, Failure},
    inspect::print,
    printable::printable_line,
    symbols::Symbols,
};

/// The ConfigMap with the job configuration of Prow in `neap up`.
const JOBS: &str = "prow-jobs";
/// Bounds the first read of all objects.
const READ_TIMEOUT: Duration = Duration::from_mins(1);

pub(super) async fn run(
    options: &PlanOptions,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let releases = Releases::of(&options.scope).await?;
    let stream = releases.stream(&options.stream).await?;
    let mut assumptions = Vec::new();
    let settings = settings(&stream, options, &mut assumptions);
    let prow = prow(&releases, options, &settings, &mut assumptions).await?;
    let http = neap_kit::client::Client::builder("release-images", releases.clock).build();
    let http = http.map_err(|error| not_set_up(&error.to_string()))?;
    let client = RegistryClient::new(http, Credentials::none(), RegistryOptions::default());
    let api = releases.cluster.client.clone();
    let reader = RegistryReader::new(client, api, releases.clock);
    let dry_run_options = DryRunOptions {
        options: settings.options(),
        prow,
        reader: CachedReader::new(Arc::new(reader)),
    };
    let key = Key::of(&stream.source);
    let client = releases.cluster.client.clone();
    let reading = Box::pin(dry_run(client, releases.clock, dry_run_options, &key));
    let found = releases.clock.within(READ_TIMEOUT, reading).await;
    let found = found.ok_or_else(|| {
        let seconds = READ_TIMEOUT.as_secs();
        let why = format!(
            "ImageStreams, ReleasePayloads, Jobs and ProwJobs were not listed within {seconds} seconds"
        );
        unreadable(&key, &why)
    })?;
    let found = found.map_err(|error| unreadable(&key, &chain(&error)))?;
    let Some((_, decision)) = found else {
        return Err(unreadable(&key, "the ImageStream was deleted meanwhile"));
    };
    let plan = StreamPlan {
        name: &stream.name,
        key: &key,
        decision: &decision,
        assumptions: &assumptions,
    };
    match options.output.data() {
        Some(format) => print::data(out, format, "ReleaseStreamPlan", &plan.json()),
        None => print::text(out, &plan.text(symbols)),
    }
}

/// What the controller of the stream was started with, as its state says, or what the flags say.
fn settings(
    stream: &Stream,
    options: &PlanOptions,
    assumptions: &mut Vec<String>,
) -> ControllerSettings {
    let all = stream.source.metadata.annotations.as_ref();
    let state = all.and_then(|all| all.get(annotations::STREAM_STATE));
    let state: Option<StreamState> = state.and_then(|text| serde_json::from_str(text).ok());
    let recorded = state.and_then(|state| state.controller);
    let namespace = stream.source.metadata.namespace.clone().unwrap_or_default();
    let mut settings = recorded.unwrap_or_else(|| {
        assumptions.push(format!(
            "no controller has looked at the stream; Jobs and ProwJobs are in {namespace}, unless flags say otherwise"
        ));
        ControllerSettings {
            release_namespaces: vec![namespace.clone()],
            job_namespace: namespace.clone(),
            prow_namespace: namespace.clone(),
            architecture: "amd64".to_owned(),
            ..ControllerSettings::default()
        }
    });
    if let Some(job) = &options.job_namespace {
        settings.job_namespace.clone_from(job);
        settings.prow_namespace.clone_from(job);
    }
    if let Some(prow) = &options.prow_namespace {
        settings.prow_namespace.clone_from(prow);
    }
    if options.registry.is_some() {
        settings.registry.clone_from(&options.registry);
    }
    settings
}

/// The job configuration of Prow: of the files, or of the ConfigMap that `neap up` uses; none if there is neither.
async fn prow(
    releases: &Releases,
    options: &PlanOptions,
    settings: &ControllerSettings,
    assumptions: &mut Vec<String>,
) -> Result<Option<ProwConfig>, Failure> {
    if !options.job_config.is_empty() {
        let files = ConfigFiles {
            jobs: options.job_config.clone(),
            qualifiers: None,
        };
        let read = files.prow();
        return read.map(Some).map_err(|error| {
            let what = "the job configuration of Prow cannot be used";
            Failure::new("NT-RELEASE-0005", Exit::Usage, what, &error.to_string())
                .remedy("correct what is named; nothing was read from the cluster")
        });
    }
    let key = Key::new(&settings.prow_namespace, JOBS);
    let map = releases.writer().find::<ConfigMap>(&key).await;
    let Some(data) = map.ok().flatten().and_then(|map| map.data) else {
        assumptions
            .push("Prow knows every job of the stream: --job-config was not given".to_owned());
        return Ok(None);
    };
    let files = data
        .iter()
        .map(|(file, text)| (file.as_str(), text.as_str()));
    match ProwConfig::parse(files) {
        Ok(config) => Ok(Some(config)),
        Err(error) => {
            assumptions.push(format!(
                "Prow knows every job of the stream: the ConfigMap {key} cannot be used: {error}"
            ));
            Ok(None)
        }
    }
}

fn unreadable(key: &Key, why: &str) -> Failure {
    let what = format!("the next decision about {key} cannot be shown");
    Failure::new("NT-RELEASE-0007", Exit::Failed, &what, why)
        .remedy("use an account that may list imagestreams, releasepayloads, jobs and prowjobs in all namespaces")
}

struct StreamPlan<'a> {
    name: &'a str,
    key: &'a Key,
    decision: &'a Decision,
    assumptions: &'a [String],
}

impl StreamPlan<'_> {
    fn text(&self, symbols: Symbols) -> String {
        let mut text = format!(
            "{} stream {} of ImageStream {}\n",
            symbols.note, self.name, self.key
        );
        let mut line = |title: &str, value: &str| {
            let _ = writeln!(text, "  {title:<9} {}", printable_line(value));
        };
        let state = &self.decision.state;
        line("Reason", &format!("{}: {}", state.reason, state.message));
        for problem in &state.problems {
            line("Problem", problem);
        }
        if self.decision.changes.is_empty() {
            line("Plan", "nothing to write");
        }
        for (at, change) in self.decision.changes.iter().enumerate() {
            let title = if at == 0 { "Plan" } else { "" };
            line(title, &format!("{}. {change}", at + 1));
        }
        for event in &self.decision.events {
            line("Event", &format!("{}: {}", event.reason, event.message));
        }
        match self.decision.requeue_after {
            Some(delay) => {
                let seconds = delay.as_secs() + u64::from(delay.subsec_nanos() > 0);
                let delay = short_duration(i64::try_from(seconds).unwrap_or(i64::MAX));
                line("Next", &format!("in {delay}, or with the next change"));
            }
            None => line("Next", "with the next change"),
        }
        for assumption in self.assumptions {
            line("Assumed", assumption);
        }
        text
    }

    fn json(&self) -> Value {
        let changes = self.decision.changes.iter().map(as_json);
        let events = self.decision.events.iter().map(|event| {
            json!({
                "type": format!("{:?}", event.type_),
                "reason": event.reason,
                "message": event.message,
            })
        });
        json!({
            "stream": self.name,
            "namespace": self.key.namespace(),
            "source": self.key.name(),
            "state": self.decision.state,
            "plan": changes.collect::<Vec<_>>(),
            "events": events.collect::<Vec<_>>(),
            "requeueAfterSeconds": self.decision.requeue_after.map(|it| it.as_secs_f64()),
            "assumptions": self.assumptions,
        })
    }
}

fn as_json(change: &StreamChange) -> Value {
    let key = change.key();
    json!({
        "verb": change.verb(),
        "kind": change.kind(),
        "namespace": key.namespace(),
        "name": key.name(),
        "reason": change.reason(),
    })
}

#[cfg(test)]
mod tests {
    use neap_release::image_stream::api::ImageStream;

    use super::*;

    #[test]
    fn the_plan_says_what_is_written_why_and_what_was_assumed() {
        let source: ImageStream = serde_json::from_value(json!({
            "apiVersion": "image.openshift.io/v1", "kind": "ImageStream",
            "metadata": {"name": "4.21-latest", "namespace": "ocp"}, "spec": {},
        }))
        .unwrap();
        let key = Key::of(&source);
        let decision = Decision {
            changes: vec![StreamChange::UpdateStream {
                stream: Arc::new(source),
                tags: None,
                annotations: [].into(),
                reason: "its state: Paused".to_owned(),
            }],
            events: Vec::new(),
            state: StreamState {
                problems: vec!["aws: Prow has no periodic e2e".to_owned()],
                ..StreamState::new("Paused", "maintenance")
            },
            requeue_after: Some(Duration::from_mins(10)),
        };
        let plan = StreamPlan {
            name: "4.21.0-0.nightly",
            key: &key,
            decision: &decision,
            assumptions: &["nothing".to_owned()],
        };
        let text = plan.text(Symbols::ASCII);
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        assert_eq!(
            lines[1..],
            [
                "Reason    Paused: maintenance",
                "Problem   aws: Prow has no periodic e2e",
                "Plan      1. update ImageStream ocp/4.21-latest: its state: Paused",
                "Next      in 10m, or with the next change",
                "Assumed   nothing",
            ]
        );
        let json = plan.json();
        assert_eq!(json["plan"][0]["verb"], "update");
        assert_eq!(json["plan"][0]["name"], "4.21-latest");
        assert_eq!(json["requeueAfterSeconds"], 600.0);
    }
}
