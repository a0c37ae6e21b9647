//! Jobs of a CronJob that it forgot, believes to run, or keeps too many of.

use neap_trial::{
    Workload,
    generate::Chance,
    starts::{End, Start, Starts},
};
use serde_json::{Value, json};

use super::parts::{happens, is, owner, path, said};
use crate::world::cron_job::tick;

pub(super) fn starts(workload: Workload) -> Starts {
    Starts::new(workload, make).counting(counts).wrong_if(wrong)
}

const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

fn make(chance: &mut Chance) -> Start {
    let mut tick = tick();
    // No time comes, so that the end is one.
    tick["spec"]["suspend"] = true.into();
    tick["spec"]["successfulJobsHistoryLimit"] = 2.into();
    tick["spec"]["failedJobsHistoryLimit"] = 1.into();
    let declared = vec![tick.clone()];
    let mut remains = Vec::new();
    let mut active = Vec::new();
    for number in 0..chance.below(8) {
        let name = format!("tick-{number}");
        let mut job = job(chance, &name, &tick);
        match chance.below(4) {
            0 => job["status"] = ended("Complete"),
            1 => job["status"] = ended("Failed"),
            _ => {}
        }
        remains.push(job);
        if happens(chance, 50) {
            let uid = format!("@{}", path("batch/v1", "jobs", &name));
            active.push(json!({"apiVersion": "batch/v1", "kind": "Job", "namespace": "default", "name": name, "uid": uid}));
        }
    }
    if happens(chance, 30) {
        active.push(json!({"apiVersion": "batch/v1", "kind": "Job", "namespace": "default", "name": "tick-gone", "uid": "gone"}));
    }
    let status = json!({"active": active, "lastScheduleTime": "2025-12-31T23:00:00Z"});
    remains.push(said(&declared[0], &status));
    Start { declared, remains }
}

fn job(chance: &mut Chance, name: &str, tick: &Value) -> Value {
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
    if happens(chance, 80) {
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

/// What became of Jobs is history; that no more of it is kept than was asked for is below.
fn counts(place: &str, object: &mut Value) -> Option<String> {
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    is(place, "batch/cronjobs").then(|| place.to_owned())
}

fn wrong(end: &End) -> Option<String> {
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
    // Those that somebody started by hand may be told of, and need not be.
    let missing = running.iter().find(|name| !active.contains(name));
    let there = |name: &&Value| jobs.iter().any(|job| job["metadata"]["name"] == **name);
    let gone = active.iter().find(|name| !there(name));
    let missing = missing.map(|name| format!("{name} runs and is not told of"));
    missing.or_else(|| gone.map(|name| format!("{name} is told of and is not there")))
}
