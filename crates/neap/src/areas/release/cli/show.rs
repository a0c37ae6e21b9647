//! `neap release show`, `jobs` and `replay`.

use std::{fmt::Write as _, io::Write};

use jiff::Timestamp;
use neap_release::{
    api::{JobStatus, PayloadCoordinates, ReleasePayload, ReleasePayloadStatus, conditions},
    payload::{Phase, facts::skipped_jobs},
    replay,
};
use serde_json::json;

use super::{
    JobsOptions, NameOptions,
    list::{needs_note, published_as, why},
    releases::Releases,
};
use crate::{
    exit::{Exit, Failure},
    inspect::{
        listing::{self, Column, Listed, Listing},
        print,
    },
    printable::printable_line,
    symbols::Symbols,
};

pub(super) async fn show(options: &NameOptions, out: &mut dyn Write) -> Result<(), Failure> {
    let releases = Releases::of(&options.scope).await?;
    let payload = releases.payload(&options.name).await?;
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
        let _ = writeln!(text, "{title:<10}{}", printable_line(value));
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
    if let Some(blocks) = Phase::of_payload(&payload).blocks() {
        line("Blocks", blocks);
    }
    let streams = releases.publishing(std::slice::from_ref(&payload)).await;
    let published = published_as(&payload, &streams);
    if needs_note(&payload) && !published.is_empty() {
        line("Published", &still_published(&published, at));
    }
    let decision = &payload.spec.payload_override;
    if !decision.decision.is_empty() {
        line(
            "Override",
            &format!("{}: {}", decision.decision, decision.reason),
        );
    }
    for (job, cause) in skipped_jobs(&payload) {
        line("Left out", &format!("job {job}: {cause}"));
    }
    for coordinates in &payload.spec.release_coordinates {
        line(
            "Image",
            &format!("{}:{}", coordinates.repository, coordinates.tag),
        );
    }
    let _ = writeln!(text, "\nTimeline");
    for (moment, what) in timeline(&payload) {
        let _ = writeln!(text, "  {moment}  {}", printable_line(&what));
    }
    print::text(out, &text)
}

/// What is published does not go back by itself, and how users take it back.
fn still_published(published: &[String], at: &PayloadCoordinates) -> String {
    format!(
        "{} still points to it until a newer release is accepted; to take it back, delete that tag of \
         ImageStream {}/{}, which then gets the newest accepted release",
        published.join(", "),
        at.namespace,
        at.imagestream_name
    )
}

/// What happened to a release, in order. Times have the precision of a second: what has the same one is in the
/// order of a release's life.
fn timeline(payload: &ReleasePayload) -> Vec<(Timestamp, String)> {
    let status = payload.status.clone().unwrap_or_default();
    let mut moments = Vec::new();
    if let Some(created) = &payload.metadata.creation_timestamp {
        moments.push((created.0, Step::Cut, "the release was cut".to_owned()));
    }
    for condition in status.conditions.iter().filter(|it| it.status == "True") {
        let step = match condition.type_.as_str() {
            conditions::CREATED | conditions::FAILED => Step::Image,
            conditions::MIRRORED | conditions::MIRROR_FAILED => Step::Mirror,
            _ => Step::Verdict,
        };
        let message = &condition.message;
        let text = format!("{}: {message}", condition.type_);
        moments.push((condition.last_transition_time.0, step, text));
    }
    for (list, jobs) in lists(&status) {
        for job in jobs {
            for (attempt, run) in job.results.iter().enumerate() {
                let name = &run.coordinates.name;
                if let Some(started) = &run.start_time {
                    let text = format!("{list} job {} started: {name}", job.name);
                    moments.push((started.0, Step::Run(attempt, false), text));
                }
                if let Some(ended) = &run.completion_time {
                    let text = format!("{list} job {} ended: {:?}", job.name, run.state);
                    moments.push((ended.0, Step::Run(attempt, true), text));
                }
            }
        }
    }
    moments.sort();
    let moments = moments.into_iter();
    moments.map(|(moment, _, text)| (moment, text)).collect()
}

/// The steps of a release's life, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Cut,
    Image,
    Mirror,
    /// An attempt at a job: its start, and then its end.
    Run(usize, bool),
    Verdict,
}

fn lists(status: &ReleasePayloadStatus) -> [(&'static str, &[JobStatus]); 3] {
    [
        ("blocking", &status.blocking_job_results),
        ("informing", &status.informing_job_results),
        ("upgrade", &status.upgrade_job_results),
    ]
}

const JOB_COLUMNS: &[Column] = &[
    Column::new("KIND"),
    Column::new("JOB"),
    Column::new("RUN"),
    Column::new("STATE"),
    Column::new("PROW JOB").wide(),
    Column::new("CLUSTER").wide(),
    Column::new("URL"),
];

pub(super) async fn jobs(options: &JobsOptions, out: &mut dyn Write) -> Result<(), Failure> {
    let releases = Releases::of(&options.scope).await?;
    let read = async || {
        let payload = releases.payload(&options.name).await?;
        let skipped = skipped_jobs(&payload);
        let status = payload.status.unwrap_or_default();
        let mut items = listed_jobs(&status);
        items.extend(skipped.iter().map(|(job, why)| left_out(job, why)));
        Ok(Listing {
            kind: "ReleaseJobList",
            resource: "job",
            columns: JOB_COLUMNS,
            items,
            empty: "No jobs verify this release.".to_owned(),
        })
    };
    listing::show(options.listing, releases.clock, out, read).await
}

/// A job that was left out when the release was cut.
fn left_out(job: &str, why: &str) -> Listed {
    let cells = ["left out", job, "-", why, "", "", ""];
    Listed {
        name: job.to_owned(),
        cells: cells.map(str::to_owned).to_vec(),
        data: json!({"list": "left out", "job": {"ciConfigurationName": job}, "why": why}),
    }
}

/// Each job, and after it each of its runs.
fn listed_jobs(status: &ReleasePayloadStatus) -> Vec<Listed> {
    let mut items = Vec::new();
    for (list, jobs) in lists(status) {
        for job in jobs {
            let runs = job.results.len();
            items.push(Listed {
                name: job.name.clone(),
                cells: vec![
                    list.to_owned(),
                    job.name.clone(),
                    format!("{runs} {}", if runs == 1 { "run" } else { "runs" }),
                    format!("{:?}", job.state),
                    job.job_name.clone(),
                    String::new(),
                    String::new(),
                ],
                data: json!({"list": list, "job": job}),
            });
            for run in &job.results {
                let at = &run.coordinates;
                items.push(Listed {
                    name: format!("{}/{}", job.name, at.name),
                    cells: vec![
                        list.to_owned(),
                        format!("  {}", job.name),
                        at.name.clone(),
                        format!("{:?}", run.state),
                        job.job_name.clone(),
                        at.cluster.clone(),
                        run.url.clone(),
                    ],
                    data: json!({"list": list, "run": run, "of": job.name}),
                });
            }
        }
    }
    items
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A release whose life took one second.
    fn payload() -> ReleasePayload {
        let now = "2026-01-02T03:04:05Z";
        let condition = |type_: &str, message: &str| {
            json!({
                "type": type_, "status": "True", "reason": "R", "message": message, "lastTransitionTime": now,
            })
        };
        let run = |name: &str, state: &str| {
            json!({
                "coordinates": {"name": name, "namespace": "ci", "cluster": "build01"}, "state": state,
                "startTime": now, "completionTime": now, "humanProwResultsURL": "",
            })
        };
        let job = json!({
            "ciConfigurationName": "aws", "ciConfigurationJobName": "e2e-aws", "state": "Success",
            "results": [run("r-aws", "Failure"), run("r-aws-1", "Success")],
        });
        serde_json::from_value(json!({
            "apiVersion": "release.openshift.io/v1alpha1", "kind": "ReleasePayload",
            "metadata": {"name": "r", "namespace": "ocp", "creationTimestamp": now},
            "spec": {
                "payloadCoordinates": {
                    "namespace": "ocp", "streamName": "s", "imagestreamName": "release", "imagestreamTagName": "r",
                },
            },
            "status": {
                "conditions": [condition("PayloadAccepted", "passed"), condition("PayloadCreated", "made")],
                "blockingJobResults": [job],
            },
        }))
        .unwrap()
    }

    #[test]
    fn what_happened_in_one_second_is_in_the_order_of_a_releases_life() {
        let texts: Vec<_> = timeline(&payload()).into_iter().map(|(_, it)| it).collect();
        assert_eq!(
            texts,
            [
                "the release was cut",
                "PayloadCreated: made",
                "blocking job aws started: r-aws",
                "blocking job aws ended: Failure",
                "blocking job aws started: r-aws-1",
                "blocking job aws ended: Success",
                "PayloadAccepted: passed",
            ]
        );
    }

    #[test]
    fn jobs_are_followed_by_their_runs() {
        let items = listed_jobs(&payload().status.unwrap());
        let names: Vec<_> = items.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["aws", "aws/r-aws", "aws/r-aws-1"]);
        assert_eq!(items[0].cells[2..4], ["2 runs", "Success"]);
        assert_eq!(items[1].cells[1..4], ["  aws", "r-aws", "Failure"]);
        assert!(items.iter().all(|it| it.cells.len() == JOB_COLUMNS.len()));
    }

    #[test]
    fn a_job_that_was_left_out_is_listed_with_the_reason() {
        let item = left_out("upgrade", "no accepted release matches");
        assert_eq!(item.cells.len(), JOB_COLUMNS.len());
        assert_eq!(item.cells[..2], ["left out", "upgrade"]);
        assert_eq!(item.cells[3], "no accepted release matches");
    }
}
