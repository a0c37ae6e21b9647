//! The tables of the original's controllers, one test for each.

mod creation;
mod properties;
mod qualifiers;
mod runs;
mod verdicts;

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};

use super::*;
use crate::{
    api::{CreationJobStatus, JobRunState, JobState, ProwJobState, UpgradeType},
    config::ReleaseQualifiers,
    payload::{
        facts::{JobFacts, LegacyFacts, RunFacts},
        samples::{
            TAG, again, completed, facts, failed, job, job_status, now, payload, run, state,
            with_status,
        },
    },
};

fn condition<'a>(status: &'a ReleasePayloadStatus, type_: &str) -> (&'a str, &'a str, &'a str) {
    let found = status
        .conditions
        .iter()
        .find(|it| it.type_ == type_)
        .unwrap();
    (&found.status, &found.reason, &found.message)
}

fn names(jobs: &[crate::api::JobStatus]) -> Vec<&str> {
    jobs.iter().map(|job| job.name.as_str()).collect()
}

fn condition_owned(status: &ReleasePayloadStatus, type_: &str) -> (String, String, String) {
    let (status, reason, message) = condition(status, type_);
    (status.to_owned(), reason.to_owned(), message.to_owned())
}

fn with_mirror() -> ReleasePayload {
    let mut payload = payload(&json!({"blockingJobs": [job("aws")]}));
    let mirror = &mut payload
        .spec
        .payload_creation_config
        .release_mirror_coordinates;
    mirror.namespace = "ci-release".to_owned();
    mirror.release_mirror_job_name = format!("{TAG}-alternate-mirror");
    payload
}
