//! What follows from the facts about a ProwJob: pure.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use kube::{Resource, ResourceExt, api::ObjectMeta};
use neap_kit::apply::{DesiredObject, IfExists, ObjectRef, Plan, PlannedChange, ResourceKind};
use serde_json::json;

use super::{
    api::{ProwJob, ProwJobState, ProwJobStatus},
    facts::Facts,
    run,
};

/// The agent whose ProwJobs are taken.
const AGENT: &str = "kubernetes";
/// How often a ProwJob that waits for others of its job is looked at.
const CONCURRENCY_POLL: Duration = Duration::from_secs(10);

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Decision {
    pub(super) plan: Plan,
    pub(super) requeue_after: Option<Duration>,
}

pub(super) fn decide(facts: &Facts) -> Decision {
    let prow_job = &facts.prow_job;
    let before = prow_job.status.clone().unwrap_or_default();
    let is_going = prow_job.meta().deletion_timestamp.is_some();
    if prow_job.spec.agent != AGENT || is_going {
        return Decision::default();
    }
    let mut after = before.clone();
    let mut decision = Decision::default();
    match before.state {
        None | Some(ProwJobState::Scheduling) => {
            after.state = Some(ProwJobState::Triggered);
            after.start_time = before.start_time.or(Some(facts.now));
        }
        Some(ProwJobState::Triggered) => start(facts, &mut after, &mut decision),
        Some(ProwJobState::Pending) => follow(facts, &mut after, &mut decision),
        Some(ProwJobState::Aborted) => stop(facts, &mut after, &mut decision),
        Some(ProwJobState::Success | ProwJobState::Failure | ProwJobState::Error) => {
            after.completion_time = before.completion_time.or(Some(facts.now));
        }
    }
    if after != before {
        decision.plan.cleanup.push(set_status(prow_job, &after));
    }
    decision
}

/// Starts a ProwJob that was triggered.
fn start(facts: &Facts, status: &mut ProwJobStatus, decision: &mut Decision) {
    if facts.hangs {
        return;
    }
    if facts.fails {
        end(
            status,
            ProwJobState::Error,
            "Prow could not start it.",
            facts.now,
        );
        return;
    }
    let max = facts.prow_job.spec.max_concurrency;
    if max > 0 && facts.others_pending as i64 >= max {
        decision.requeue_after = Some(CONCURRENCY_POLL);
        return;
    }
    if !run_job(facts, status, decision) {
        return;
    }
    status.state = Some(ProwJobState::Pending);
    status.pending_time = Some(facts.now);
    status.start_time = status.start_time.or(Some(facts.now));
    status.build_id = Some(run::build_id(&facts.prow_job));
    status.description = Some("Job triggered.".to_owned());
}

/// Creates the Job if it is not there. False if there can be none, which ends the ProwJob.
fn run_job(facts: &Facts, status: &mut ProwJobStatus, decision: &mut Decision) -> bool {
    if let Some(batch) = &facts.batch {
        let ours = is_owned(batch, &facts.prow_job);
        if !ours {
            let name = batch.name_any();
            let problem = format!("there is another Job with the name {name}");
            end(status, ProwJobState::Error, &problem, facts.now);
        }
        return ours;
    }
    match run::job(&facts.prow_job) {
        Ok(job) => {
            decision.plan.changes.push(PlannedChange::Post {
                object: DesiredObject::of(&job),
                owner: Some(ObjectRef::of(facts.prow_job.as_ref())),
                if_exists: IfExists::Conflict,
                reason: "the ProwJob was triggered".to_owned(),
            });
            true
        }
        Err(problem) => {
            end(status, ProwJobState::Error, &problem, facts.now);
            false
        }
    }
}

/// Reports what became of the Job.
fn follow(facts: &Facts, status: &mut ProwJobStatus, decision: &mut Decision) {
    let Some(batch) = &facts.batch else {
        // It was deleted, as when a node is cleaned up: it runs again.
        run_job(facts, status, decision);
        return;
    };
    if let Some(pod) = &facts.pod {
        status.pod_name = Some(pod.clone());
        let namespace = facts.prow_job.namespace().unwrap_or_default();
        let log =
            |server: &String| format!("{server}/api/v1/namespaces/{namespace}/pods/{pod}/log");
        status.url = facts.log_server.as_ref().map(log);
    }
    let Some((state, words)) = result(batch) else {
        return;
    };
    let ended = finished_at(batch).unwrap_or(facts.now);
    end(status, state, words, ended);
}

/// Stops a ProwJob that a user has aborted.
fn stop(facts: &Facts, status: &mut ProwJobStatus, decision: &mut Decision) {
    if let Some(batch) = &facts.batch
        && is_owned(batch, &facts.prow_job)
        && result(batch).is_none()
        && batch.meta().deletion_timestamp.is_none()
    {
        decision.plan.changes.push(PlannedChange::Delete {
            object: ObjectRef::of(batch.as_ref()),
            reason: "the ProwJob was aborted".to_owned(),
        });
    }
    if status.completion_time.is_none() {
        end(status, ProwJobState::Aborted, "Job aborted.", facts.now);
    }
}

fn end(status: &mut ProwJobStatus, state: ProwJobState, words: &str, at: Timestamp) {
    status.state = Some(state);
    status.description = Some(words.to_owned());
    status.completion_time = Some(at);
}

fn is_owned(job: &Job, prow_job: &ProwJob) -> bool {
    let uid = prow_job.uid();
    let owners = job.owner_references().iter();
    owners
        .into_iter()
        .any(|owner| Some(&owner.uid) == uid.as_ref())
}

/// What a finished Job means.
fn result(job: &Job) -> Option<(ProwJobState, &'static str)> {
    let conditions = job.status.as_ref()?.conditions.as_deref()?;
    let is = |kind: &str| {
        let mut conditions = conditions.iter();
        conditions.find(|it| it.type_ == kind && it.status == "True")
    };
    if is("Complete").is_some() {
        return Some((ProwJobState::Success, "Job succeeded."));
    }
    let failed = is("Failed")?;
    if failed.reason.as_deref() == Some("DeadlineExceeded") {
        return Some((ProwJobState::Aborted, "Pod running timeout."));
    }
    Some((ProwJobState::Failure, "Job failed."))
}

fn finished_at(job: &Job) -> Option<Timestamp> {
    let status = job.status.as_ref()?;
    if let Some(time) = &status.completion_time {
        return Some(time.0);
    }
    let conditions = status.conditions.as_deref()?;
    let failed = conditions.iter().find(|it| it.type_ == "Failed")?;
    failed.last_transition_time.as_ref().map(|time| time.0)
}

/// Writes the status, if the ProwJob is still as it was read.
fn set_status(prow_job: &ProwJob, status: &ProwJobStatus) -> PlannedChange {
    let metadata = ObjectMeta {
        name: prow_job.meta().name.clone(),
        namespace: prow_job.namespace(),
        uid: prow_job.uid(),
        resource_version: prow_job.resource_version(),
        ..ObjectMeta::default()
    };
    let state = status.state.map(|state| state.to_string());
    PlannedChange::Merge {
        kind: ResourceKind::of::<ProwJob>(),
        metadata: Box::new(metadata),
        subresource: None,
        patch: json!({ "status": status }),
        reason: format!("it is {}", state.unwrap_or_default()),
    }
}

/// Ends a ProwJob whose Job the API server refuses.
pub(super) fn refused(facts: &Facts, problem: &str) -> PlannedChange {
    let mut status = facts.prow_job.status.clone().unwrap_or_default();
    let words = format!("Job can not be created: {problem}");
    end(&mut status, ProwJobState::Error, &words, facts.now);
    set_status(&facts.prow_job, &status)
}
