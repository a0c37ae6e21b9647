//! Everything that the decision about a payload depends on.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::{api::batch::v1::Job, apimachinery::pkg::apis::meta::v1::Time};

use crate::{
    api::{ProwJobRun, ProwJobState, ReleasePayload, annotations},
    config::ReleaseQualifiers,
    payload::run_token::RunKey,
};

/// The facts about a payload.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The payload, with the results that were recorded so far.
    pub payload: Arc<ReleasePayload>,
    /// The Job that creates the image.
    pub creation_job: Option<JobFacts>,
    /// The Job that mirrors the image.
    pub mirror_job: Option<JobFacts>,
    /// The runs of its verification jobs: those that are proved to be its own.
    pub runs: Vec<RunFacts>,
    /// The names of ProwJobs that claim to be its runs and are not.
    pub forged: Vec<String>,
    /// Why no ProwJob can be told from one of others: the key of the runs' tokens is missing. Nothing new is known
    /// of any run then.
    pub unproved: Option<String>,
    /// The results in the annotation of its tag, for payloads whose results are there.
    pub legacy: LegacyFacts,
    /// The global qualifiers.
    pub qualifiers: Arc<ReleaseQualifiers>,
    /// The time.
    pub now: Timestamp,
    /// How long things may take.
    pub timeouts: Timeouts,
}

/// How long things may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// The time until a run whose ProwJob is gone counts as unknown. A watch may show a ProwJob late.
    pub vanished_run_grace: Duration,
    /// The time until a payload without an image is stuck.
    pub creation: Duration,
    /// The time until a payload without a verdict is stuck.
    pub verdict: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            vanished_run_grace: Duration::from_mins(2),
            creation: Duration::from_hours(1),
            verdict: Duration::from_hours(12),
        }
    }
}

/// A Job.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobFacts {
    /// It completed.
    pub completed: bool,
    /// It failed, for this reason and with this message.
    pub failed: Option<(String, String)>,
    /// Pods of it are there.
    pub active: bool,
    /// What its last failed pod said.
    pub pod_message: Option<String>,
}

impl JobFacts {
    /// The facts about `job`.
    pub fn of(job: &Job, pod_message: Option<String>) -> Self {
        let status = job.status.clone().unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default();
        let failed = conditions
            .into_iter()
            .find(|it| it.type_ == "Failed" && it.status == "True");
        Self {
            completed: status.completion_time.is_some(),
            failed: failed.map(|it| {
                (
                    it.reason.unwrap_or_default(),
                    it.message.unwrap_or_default(),
                )
            }),
            active: status.active.unwrap_or(0) > 0 || status.ready.unwrap_or(0) > 0,
            pod_message,
        }
    }
}

/// A ProwJob that is a run of the payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFacts {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its uid.
    pub uid: String,
    /// The build cluster.
    pub cluster: String,
    /// The key of its verification job, if the run says so; otherwise its name tells it.
    pub key: Option<String>,
    /// The name of its Prow job.
    pub job: Option<String>,
    /// The release that it upgrades from.
    pub from_tag: Option<String>,
    /// Its state.
    pub state: ProwJobState,
    /// When it started.
    pub start_time: Option<Time>,
    /// When it ended.
    pub completion_time: Option<Time>,
    /// Where its results are shown.
    pub url: String,
}

/// Whether a ProwJob with the label of a payload is a run of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// It is.
    Genuine(Box<RunFacts>),
    /// It is not.
    Forged,
    /// It is being deleted, or nothing is known about it yet.
    Ignored,
}

/// Looks at a ProwJob with the label of `payload`.
///
/// A payload that this controller made names the key of its runs' tokens, and only runs with a token count.
/// Other payloads were made by the original, whose ProwJobs have no token.
pub fn claim(payload: &ReleasePayload, run: &ProwJobRun, key: Option<&RunKey>) -> Claim {
    let payload_annotations = payload.metadata.annotations.as_ref();
    let run_key = payload_annotations.and_then(|all| all.get(annotations::RUN_KEY));
    let job = run.annotation(annotations::RUN_JOB);
    if let Some(run_key) = run_key {
        let uid = payload.metadata.uid.as_deref().unwrap_or_default();
        let token = run.annotation(annotations::RUN_TOKEN).unwrap_or_default();
        let proved = key.is_some_and(|key| {
            key.id() == run_key && key.verify(uid, job.unwrap_or_default(), run.name(), token)
        });
        if !proved {
            return Claim::Forged;
        }
    }
    Claim::Genuine(Box::new(RunFacts {
        name: run.name().to_owned(),
        namespace: run.namespace().to_owned(),
        uid: run.uid(),
        cluster: run.cluster().to_owned(),
        key: run_key.and(job).map(str::to_owned),
        job: run.annotation(annotations::PROW_JOB).map(str::to_owned),
        from_tag: run.annotation(annotations::FROM_TAG).map(str::to_owned),
        state: run.state(),
        start_time: run.start_time(),
        completion_time: run.completion_time(),
        url: run.url(),
    }))
}

/// The results in the annotation of a tag.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum LegacyFacts {
    /// The payload does not have its results there.
    #[default]
    NotUsed,
    /// The target ImageStream does not exist.
    NoTarget,
    /// The tag does not exist.
    NoTag,
    /// The value of the annotation; empty if there is none.
    Annotation(String),
}

impl Facts {
    /// Runs beyond the configured retries that users asked for, by job.
    pub fn extra_attempts(&self) -> BTreeMap<String, i32> {
        extra_attempts(&self.payload)
    }
}

/// Runs beyond the configured retries that users asked for, by job. What cannot be read is none.
pub fn extra_attempts(payload: &ReleasePayload) -> BTreeMap<String, i32> {
    let annotations = payload.metadata.annotations.as_ref();
    let text = annotations.and_then(|all| all.get(annotations::EXTRA_ATTEMPTS));
    let parsed: Option<BTreeMap<String, i32>> =
        text.and_then(|text| serde_json::from_str(text).ok());
    let mut attempts = parsed.unwrap_or_default();
    attempts.retain(|_, count| (1..=100).contains(count));
    attempts
}

/// The informing jobs that the verdict does not wait for.
pub fn async_jobs(payload: &ReleasePayload) -> Vec<&str> {
    let annotations = payload.metadata.annotations.as_ref();
    let text = annotations.and_then(|all| all.get(annotations::ASYNC_JOBS));
    text.map(|text| text.split(',').filter(|it| !it.is_empty()).collect())
        .unwrap_or_default()
}

/// The jobs that were left out when the release was cut, and why. What cannot be read is none.
pub fn skipped_jobs(payload: &ReleasePayload) -> BTreeMap<String, String> {
    let annotations = payload.metadata.annotations.as_ref();
    let text = annotations.and_then(|all| all.get(annotations::SKIPPED_JOBS));
    text.and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default()
}
