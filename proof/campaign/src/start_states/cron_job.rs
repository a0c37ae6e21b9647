//! Jobs of a CronJob that its status omits, wrongly lists as active, or that exceed the history
//! limits.

use neap_trial::{
    Workload,
    generate::SeededRng,
    start_states::{FinalState, StartState, StartStates},
};
use serde_json::{Value, json};

use super::parts::{happens, is_kind, owner, path, with_status};
use crate::world::cron_job::tick;

pub(super) fn start_states(workload: Workload) -> StartStates {
    StartStates::new(workload, make)
        .counting(counts)
        .wrong_if(wrong)
}

const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

fn make(rng: &mut SeededRng) -> StartState {
    let mut tick = tick();
    // Suspended, so that the result does not depend on the time.
    tick["spec"]["suspend"] = true.into();
    tick["spec"]["successfulJobsHistoryLimit"] = 2.into();
    tick["spec"]["failedJobsHistoryLimit"] = 1.into();
    let declared = vec![tick.clone()];
    let mut leftovers = Vec::new();
    let mut active = Vec::new();
    for number in 0..rng.below(8) {
        let name = format!("tick-{number}");
        let mut job = job(rng, &name, &tick);
        match rng.below(4) {
            0 => job["status"] = ended("Complete"),
            1 => job["status"] = ended("Failed"),
            _ => {}
        }
        leftovers.push(job);
        if happens(rng, 50) {
            let uid = format!("@{}", path("batch/v1", "jobs", &name));
            active.push(json!({"apiVersion": "batch/v1", "kind": "Job", "namespace": "default", "name": name, "uid": uid}));
        }
    }
    if happens(rng, 30) {
        active.push(json!({"apiVersion": "batch/v1", "kind": "Job", "namespace": "default", "name": "tick-gone", "uid": "gone"}));
    }
    let status = json!({"active": active, "lastScheduleTime": "2025-12-31T23:00:00Z"});
    leftovers.push(with_status(&declared[0], &status));
    StartState {
        declared,
        leftovers,
    }
}

fn job(rng: &mut SeededRng, name: &str, tick: &Value) -> Value {
    let mine = owner(
        "batch/v1",
        "CronJob",
        "tick",
        &path("batch/v1", "cronjobs", "tick"),
    );
    let mut job = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": name, "namespace": "default", "ownerReferences": [mine]},
        "spec": tick["spec"]["jobTemplate"]["spec"],
    });
    if happens(rng, 80) {
        job["metadata"]["annotations"] = json!({SCHEDULED: "2025-12-31T23:00:00Z"});
    }
    job
}

fn ended(how: &str) -> Value {
    let (start, end) = ("2025-12-31T23:00:00Z", "2025-12-31T23:01:00Z");
    let why = if how == "Complete" {
        "SuccessCriteriaMet"
    } else {
        "FailureTarget"
    };
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastProbeTime": end, "lastTransitionTime": end});
    let mut status = json!({"startTime": start, "conditions": [condition(why), condition(how)]});
    if how == "Complete" {
        status["completionTime"] = end.into();
    }
    status
}

/// The state of finished Jobs is history; that their number respects the limits is checked below.
fn counts(place: &str, object: &mut Value) -> Option<String> {
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    is_kind(place, "batch/cronjobs").then(|| place.to_owned())
}

fn wrong(end: &FinalState) -> Option<String> {
    let is = |job: &Value, how: &str| {
        let conditions = job["status"]["conditions"].as_array();
        conditions
            .into_iter()
            .flatten()
            .any(|one| one["type"] == how)
    };
    let jobs: Vec<_> = end.at("batch/jobs").collect();
    let count = |how: &str| jobs.iter().filter(|job| is(job, how)).count();
    let (complete, failed) = (count("Complete"), count("Failed"));
    if complete > 2 || failed > 1 {
        return Some(format!(
            "{complete} and {failed} Jobs are kept instead of 2 and 1"
        ));
    }
    let running = jobs
        .iter()
        .filter(|job| !is(job, "Complete") && !is(job, "Failed"));
    let ours = running.filter(|job| job["metadata"]["annotations"][SCHEDULED].is_string());
    let mut running: Vec<_> = ours.map(|job| job["metadata"]["name"].clone()).collect();
    let tick = end.at("batch/cronjobs").next()?;
    let active = tick["status"]["active"].as_array().into_iter().flatten();
    let mut active: Vec<_> = active.map(|one| one["name"].clone()).collect();
    for names in [&mut running, &mut active] {
        names.sort_by_cached_key(Value::to_string);
    }
    // Jobs that a user started manually may be listed, but need not be.
    let missing = running.iter().find(|name| !active.contains(name));
    let there = |name: &&Value| jobs.iter().any(|job| job["metadata"]["name"] == **name);
    let gone = active.iter().find(|name| !there(name));
    let missing = missing.map(|name| format!("{name} runs and is not listed as active"));
    missing.or_else(|| gone.map(|name| format!("{name} is listed as active and does not exist")))
}
