//! Payloads, jobs and runs for tests.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    decide::{Decision, decide},
    facts::{Facts, JobFacts, LegacyFacts, RunFacts, Timeouts},
};
use crate::{
    api::{JobRunResult, JobRunState, JobState, JobStatus, ProwJobState, ReleasePayload},
    config::ReleaseQualifiers,
};

pub(crate) const TAG: &str = "4.21.0-0.nightly-2026-01-02-030405";

pub(crate) fn now() -> Timestamp {
    "2026-01-02T04:00:00Z".parse().unwrap()
}

/// A payload with these fields of its spec beyond the usual.
pub(crate) fn payload(verification: &Value) -> ReleasePayload {
    let mut verification = verification.clone();
    if verification.get("payloadVerificationDataSource").is_none() {
        verification["payloadVerificationDataSource"] = json!("BuildFarmLookup");
    }
    serde_json::from_value(json!({
        "apiVersion": "release.openshift.io/v1alpha1", "kind": "ReleasePayload",
        "metadata": {
            "name": TAG, "namespace": "ocp", "uid": "payload-uid", "generation": 1,
            "creationTimestamp": "2026-01-02T03:04:05Z",
        },
        "spec": {
            "payloadCoordinates": {
                "namespace": "ocp", "streamName": "4.21.0-0.nightly",
                "imagestreamName": "release", "imagestreamTagName": TAG,
            },
            "payloadCreationConfig": {
                "releaseCreationCoordinates": {"namespace": "ci-release", "releaseCreationJobName": TAG},
                "prowCoordinates": {"namespace": "ci"},
                "releaseMirrorCoordinates": {"namespace": "", "releaseMirrorJobName": ""},
            },
            "payloadOverride": {"override": ""},
            "payloadVerificationConfig": verification,
        },
    }))
    .unwrap()
}

/// A job of the spec.
pub(crate) fn job(name: &str) -> Value {
    json!({"ciConfigurationName": name, "ciConfigurationJobName": format!("periodic-{name}")})
}

pub(crate) fn facts(payload: ReleasePayload) -> Facts {
    Facts {
        payload: Arc::new(payload),
        creation_job: None,
        mirror_job: None,
        runs: Vec::new(),
        forged: Vec::new(),
        unproved: None,
        legacy: LegacyFacts::NotUsed,
        qualifiers: Arc::new(ReleaseQualifiers::default()),
        now: now(),
        timeouts: Timeouts::default(),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the facts have an option")]
pub(crate) fn completed() -> Option<JobFacts> {
    Some(JobFacts {
        completed: true,
        ..JobFacts::default()
    })
}

#[expect(clippy::unnecessary_wraps, reason = "the facts have an option")]
pub(crate) fn failed(reason: &str, message: &str) -> Option<JobFacts> {
    Some(JobFacts {
        failed: Some((reason.to_owned(), message.to_owned())),
        ..JobFacts::default()
    })
}

/// A run of the original, which is known by its name.
pub(crate) fn run(name: &str, job: &str, state: ProwJobState) -> RunFacts {
    RunFacts {
        name: name.to_owned(),
        namespace: "ci".to_owned(),
        uid: format!("uid-of-{name}"),
        cluster: "build01".to_owned(),
        key: None,
        job: Some(job.to_owned()),
        from_tag: None,
        state,
        start_time: None,
        completion_time: None,
        url: format!("https://prow.example.com/{name}"),
    }
}

/// What is decided when the decision before it is in the status.
pub(crate) fn again(facts: &Facts, decision: &Decision) -> Decision {
    let mut facts = facts.clone();
    let mut payload = ReleasePayload::clone(&facts.payload);
    payload.status = Some(decision.status.clone());
    facts.payload = Arc::new(payload);
    decide(&facts)
}

pub(crate) fn with_status(payload: &mut ReleasePayload, status: &Value) {
    payload.status = Some(serde_json::from_value(status.clone()).unwrap());
}

pub(crate) fn job_status(results: &[JobRunState]) -> JobStatus {
    let results = results.iter().enumerate().map(|(at, state)| {
        let mut result = JobRunResult {
            state: *state,
            ..JobRunResult::default()
        };
        result.coordinates.name = format!("run-{at}");
        result
    });
    JobStatus {
        name: "aws".to_owned(),
        results: results.collect(),
        ..JobStatus::default()
    }
}

pub(crate) fn state(letter: char) -> JobState {
    match letter {
        'S' => JobState::Success,
        'F' => JobState::Failure,
        'P' => JobState::Pending,
        'U' => JobState::Unknown,
        _ => JobState::Unset,
    }
}
