//! The Jobs of the cluster: they run no pods, and end as the workload says.
//!
//! A Job that creates a release pushes its image first, by the production client. The process of this
//! controller is under faults as well: it crashes, is late, and says things twice.

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;
use neap_kit::{
    apply::Error,
    builder::{ControllerBuilder, Tools},
    context::Context,
    controller::Outcome,
    key::Key,
    manager::Component,
    watch::{Cache, WatchesStopped},
};
use neap_release::{api::annotations, oci::client::RegistryClient, payload_image::sample};
use serde_json::{Value, json};

use crate::registry;

/// How long a Job runs.
const RUN_TIME: SignedDuration = SignedDuration::from_secs(3);
/// How long a pod whose push failed takes to try it again.
const PUSH_RETRY: Duration = Duration::from_secs(5);
/// On the Job of a ProwJob: the name of the ProwJob, and that of its Prow job.
const PROW_ID: &str = "prow.k8s.io/id";
const PROW_JOB: &str = "prow.k8s.io/job";

/// Which Jobs fail.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Failures {
    /// Releases whose image cannot be made.
    pub(crate) releases: &'static [&'static str],
    /// Prow jobs that always fail.
    pub(crate) jobs: &'static [&'static str],
    /// Prow jobs whose first run fails.
    pub(crate) flaky: &'static [&'static str],
}

struct JobController {
    jobs: Cache<Job>,
    tools: Tools,
    registry: RegistryClient,
    failures: Failures,
}

/// The controller of Jobs.
pub(crate) fn component(
    context: &Context,
    registry: RegistryClient,
    failures: Failures,
) -> Result<Component, WatchesStopped> {
    let mut builder = ControllerBuilder::new(context, "jobs");
    let jobs = JobController {
        jobs: builder.primary()?,
        tools: builder.tools(),
        registry,
        failures,
    };
    Ok(builder.build(jobs, JobController::reconcile))
}

impl JobController {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let Some(job) = self.jobs.get(&key) else {
            return Ok(Outcome::Gone);
        };
        let status = job.status.as_ref();
        let has_ended = status.is_some_and(|status| status.conditions.is_some());
        if has_ended || job.metadata.deletion_timestamp.is_some() {
            return Ok(Outcome::Done);
        }
        let now = self.tools.clock.now();
        let begun = job.creation_timestamp().map_or(now, |time| time.0);
        let left = RUN_TIME - now.duration_since(begun);
        if left.is_positive() {
            return Ok(Outcome::RequeueAfter(left.unsigned_abs()));
        }
        let passes = self.passes(&job);
        if passes && !self.push(&job).await {
            return Ok(Outcome::RequeueAfter(PUSH_RETRY));
        }
        let before = &*job;
        let mut ended = before.clone();
        ended.status = serde_json::from_value(status_of(passes, begun, now)).ok();
        self.tools.update_status(before, &ended).await?;
        Ok(Outcome::Done)
    }

    fn passes(&self, job: &Job) -> bool {
        let has = |list: &[&str], name: Option<&String>| {
            name.is_some_and(|name| list.contains(&name.as_str()))
        };
        let all = job.annotations();
        let prow_job = all.get(PROW_JOB);
        let is_first = all.get(PROW_ID).is_some_and(|id| !id.ends_with("-1"));
        let fails = has(self.failures.releases, all.get(annotations::RELEASE_TAG))
            || has(self.failures.jobs, prow_job)
            || is_first && has(self.failures.flaky, prow_job);
        !fails
    }

    /// Pushes the image of a release to its target. Whether that is done, or there is none to push.
    async fn push(&self, job: &Job) -> bool {
        let all = job.annotations();
        let (Some(target), Some(tag)) = (
            all.get(annotations::TARGET),
            all.get(annotations::RELEASE_TAG),
        ) else {
            return true;
        };
        let (Some(built), Some(image)) =
            (registry::release_image(tag), registry::image(target, tag))
        else {
            return false;
        };
        sample::push(&self.registry, &built, &image).await.is_ok()
    }
}

fn status_of(passes: bool, begun: Timestamp, now: Timestamp) -> Value {
    let seconds = |time: Timestamp| Timestamp::from_second(time.as_second()).unwrap_or(time);
    let (begun, now) = (seconds(begun), seconds(now));
    let condition = |type_: &str, reason: &str, message: &str| {
        json!({
            "type": type_, "status": "True", "reason": reason, "message": message,
            "lastTransitionTime": now, "lastProbeTime": now,
        })
    };
    if passes {
        let reason = "CompletionsReached";
        let conditions = ["SuccessCriteriaMet", "Complete"].map(|it| condition(it, reason, ""));
        return json!({
            "startTime": begun, "completionTime": now, "succeeded": 1, "conditions": conditions,
        });
    }
    let (reason, message) = (
        "BackoffLimitExceeded",
        "Job has reached the specified backoff limit",
    );
    let conditions = ["FailureTarget", "Failed"].map(|it| condition(it, reason, message));
    json!({"startTime": begun, "failed": 1, "conditions": conditions})
}
