//! What follows from the facts about a ProwJob: pure.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
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
/// How often a ProwJob that waits for others of its job, or for a name, is looked at.
const POLL_INTERVAL: Duration = Duration::from_secs(10);
/// The message of a container that the node of `neap up` stopped, because it was stopped itself.
const NODE_STOPPED: &str = "the node was stopped";

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
        decision.requeue_after = Some(POLL_INTERVAL);
        return;
    }
    if own_job(facts).is_none() && !run_job(facts, 0, status, decision) {
        return;
    }
    status.state = Some(ProwJobState::Pending);
    status.pending_time = Some(facts.now);
    status.start_time = status.start_time.or(Some(facts.now));
    status.build_id = Some(run::build_id(&facts.prow_job));
    status.description = Some("Job triggered.".to_owned());
}

/// The newest of its Jobs, and the position of its name.
fn own_job(facts: &Facts) -> Option<(usize, &Job)> {
    let jobs = facts.jobs.iter().enumerate().rev();
    let mut found = jobs.filter_map(|(at, (_, job))| Some((at, job.as_deref()?)));
    found.find(|(_, job)| is_owned(job, &facts.prow_job))
}

/// Creates a Job under the first name from this one on that is free. False if there is none: the ProwJob waits for
/// a name, or ends because there can be no Job.
fn run_job(
    facts: &Facts,
    from: usize,
    status: &mut ProwJobStatus,
    decision: &mut Decision,
) -> bool {
    let mut names = facts.jobs.iter().skip(from);
    let Some((name, _)) = names.find(|(_, job)| job.is_none()) else {
        let name = facts.prow_job.name_any();
        let words = format!("Waiting: there are other Jobs with the name {name} and its variants.");
        status.description = Some(words);
        decision.requeue_after = Some(POLL_INTERVAL);
        return false;
    };
    match run::job(&facts.prow_job, name) {
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

/// Reports what became of the Job. A run that was cut short by the node says nothing about what it tested: it runs
/// again, as long as there are names for its Jobs.
fn follow(facts: &Facts, status: &mut ProwJobStatus, decision: &mut Decision) {
    let Some((at, batch)) = own_job(facts) else {
        // It was deleted, as when a node is cleaned up: it runs again.
        run_job(facts, 0, status, decision);
        return;
    };
    if let Some(pod) = facts.pods.last().map(|pod| pod.name_any()) {
        let namespace = facts.prow_job.namespace().unwrap_or_default();
        let log =
            |server: &String| format!("{server}/api/v1/namespaces/{namespace}/pods/{pod}/log");
        status.url = facts.log_server.as_ref().map(log);
        status.pod_name = Some(pod);
    }
    let Some((state, words)) = result(batch) else {
        return;
    };
    let uid = batch.uid();
    let pods = facts.pods.iter();
    let pods: Vec<_> = pods.filter(|pod| is_of(pod, uid.as_ref())).collect();
    if state == ProwJobState::Failure {
        if pods.iter().any(|pod| !has_ended(pod)) {
            // The cache of pods is behind that of Jobs.
            return;
        }
        if pods.iter().any(|pod| was_cut_short(pod)) && facts.jobs.len() > at + 1 {
            let runs = run_job(facts, at + 1, status, decision);
            if runs {
                status.description = Some("Job started again: its node was stopped.".to_owned());
            }
            return;
        }
    }
    let ended = finished_at(batch).unwrap_or(facts.now);
    end(status, state, words, ended);
}

fn is_of(pod: &Pod, job: Option<&String>) -> bool {
    let owners = pod.owner_references().iter();
    owners.into_iter().any(|owner| Some(&owner.uid) == job)
}

fn has_ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|it| it.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// Whether the end of the node is all that made the pod fail.
fn was_cut_short(pod: &Pod) -> bool {
    let containers = pod.status.iter().flat_map(|status| {
        let init = status.init_container_statuses.iter().flatten();
        init.chain(status.container_statuses.iter().flatten())
    });
    let ends = containers.filter_map(|it| it.state.as_ref()?.terminated.as_ref());
    let mut failed = ends.filter(|end| end.exit_code != 0).peekable();
    failed.peek().is_some() && failed.all(|end| end.message.as_deref() == Some(NODE_STOPPED))
}

/// Stops a ProwJob that a user has aborted.
fn stop(facts: &Facts, status: &mut ProwJobStatus, decision: &mut Decision) {
    if let Some((_, batch)) = own_job(facts)
        && result(batch).is_none()
        && batch.meta().deletion_timestamp.is_none()
    {
        decision.plan.changes.push(PlannedChange::Delete {
            object: ObjectRef::of(batch),
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
