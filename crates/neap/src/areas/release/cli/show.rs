//! `neap release show`, `jobs` and `replay`.

use std::{fmt::Write as _, io::Write};

use jiff::Timestamp;
use neap_release::{
    api::{JobStatus, ReleasePayload, ReleasePayloadStatus},
    payload::Phase,
    replay,
};
use serde_json::json;

use super::{NameOptions, list::why, releases::Releases};
use crate::{
    exit::{Exit, Failure},
    inspect::{print, table::table},
    symbols::Symbols,
};

pub(super) async fn show(options: &NameOptions, out: &mut dyn Write) -> Result<(), Failure> {
    let payload = Releases::of(&options.scope)
        .await?
        .payload(&options.name)
        .await?;
    if let Some(format) = options.output.data() {
        return print::data(
            out,
            format,
            "Release",
            &json!({"item": payload, "timeline": timeline(&payload)}),
        );
    }
    let at = &payload.spec.payload_coordinates;
    let mut text = String::new();
    let mut line = |title: &str, value: &str| {
        let _ = writeln!(text, "{title:<10}{value}");
    };
    line("Release", &options.name);
    line(
        "Stream",
        &format!(
            "{} ({}/{})",
            at.stream_name, at.namespace, at.imagestream_name
        ),
    );
    line("Phase", Phase::of_payload(&payload).as_str());
    line("Why", &why(&payload));
    let decision = &payload.spec.payload_override;
    if !decision.decision.is_empty() {
        line(
            "Override",
            &format!("{}: {}", decision.decision, decision.reason),
        );
    }
    for coordinates in &payload.spec.release_coordinates {
        line(
            "Image",
            &format!("{}:{}", coordinates.repository, coordinates.tag),
        );
    }
    let _ = writeln!(text, "\nTimeline");
    for (moment, what) in timeline(&payload) {
        let _ = writeln!(text, "  {moment}  {what}");
    }
    print::text(out, &text)
}

/// What happened to a release, in order.
fn timeline(payload: &ReleasePayload) -> Vec<(Timestamp, String)> {
    let status = payload.status.clone().unwrap_or_default();
    let mut moments = Vec::new();
    if let Some(created) = &payload.metadata.creation_timestamp {
        moments.push((created.0, "the release was cut".to_owned()));
    }
    for condition in status.conditions.iter().filter(|it| it.status == "True") {
        let message = &condition.message;
        let text = format!("{}: {message}", condition.type_);
        moments.push((condition.last_transition_time.0, text));
    }
    for (list, jobs) in lists(&status) {
        for job in jobs {
            for run in &job.results {
                let name = &run.coordinates.name;
                if let Some(started) = &run.start_time {
                    moments.push((
                        started.0,
                        format!("{list} job {} started: {name}", job.name),
                    ));
                }
                if let Some(ended) = &run.completion_time {
                    let text = format!("{list} job {} ended: {:?}", job.name, run.state);
                    moments.push((ended.0, text));
                }
            }
        }
    }
    moments.sort();
    moments
}

fn lists(status: &ReleasePayloadStatus) -> [(&'static str, &[JobStatus]); 3] {
    [
        ("blocking", &status.blocking_job_results),
        ("informing", &status.informing_job_results),
        ("upgrade", &status.upgrade_job_results),
    ]
}

pub(super) async fn jobs(options: &NameOptions, out: &mut dyn Write) -> Result<(), Failure> {
    let payload = Releases::of(&options.scope)
        .await?
        .payload(&options.name)
        .await?;
    let status = payload.status.unwrap_or_default();
    if let Some(format) = options.output.data() {
        let lists = json!({
            "blocking": status.blocking_job_results, "informing": status.informing_job_results,
            "upgrade": status.upgrade_job_results,
        });
        return print::data(out, format, "ReleaseJobs", &lists);
    }
    let mut rows = Vec::new();
    for (list, jobs) in lists(&status) {
        for job in jobs {
            let row = |name: &str, state: String, url: &str| {
                vec![
                    list.to_owned(),
                    job.name.clone(),
                    name.to_owned(),
                    state,
                    url.to_owned(),
                ]
            };
            rows.push(row(
                &format!("{} runs", job.results.len()),
                format!("{:?}", job.state),
                "",
            ));
            for run in &job.results {
                rows.push(row(
                    &run.coordinates.name,
                    format!("  {:?}", run.state),
                    &run.url,
                ));
            }
        }
    }
    if rows.is_empty() {
        return print::text(out, "No jobs verify this release.");
    }
    print::text(out, &table(&["LIST", "JOB", "RUN", "STATE", "URL"], &rows))
}

pub(super) async fn replay(
    options: &NameOptions,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let payload = Releases::of(&options.scope)
        .await?
        .payload(&options.name)
        .await?;
    let found = replay::replay(&payload);
    if let Some(format) = options.output.data() {
        let report = json!({
            "name": options.name, "recorded": found.recorded.as_str(), "computed": found.computed.as_str(),
            "explanation": found.explanation, "differences": found.differences,
        });
        print::data(out, format, "ReleaseReplay", &report)?;
    } else if found.holds() {
        let text = format!(
            "{} {} is {}, and the recorded facts mean the same: {}",
            symbols.done, options.name, found.recorded, found.explanation
        );
        print::text(out, &text)?;
    }
    if found.holds() {
        return Ok(());
    }
    let what = format!(
        "{} is {}, and the recorded facts mean {}",
        options.name, found.recorded, found.computed
    );
    Err(Failure::new("NT-RELEASE-0006", Exit::Failed, &what, &found.differences.join("; "))
        .remedy("look at who wrote the status: kubectl get releasepayload NAME -o yaml --show-managed-fields"))
}
