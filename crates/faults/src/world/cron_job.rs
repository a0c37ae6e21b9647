//! Something that is done every hour: on time, one at a time, not at all, and with a short memory.

use std::time::Duration;

use neap_trial::{Deed, Workload};
use neap_world::cron_job;
use serde_json::{Value, json};

const TICK: &str = "/apis/batch/v1/namespaces/default/cronjobs/tick";
/// The Job of the first hour: runs begin at midnight, and a Job is named by its minute.
const FIRST: &str = "/apis/batch/v1/namespaces/default/jobs/tick-29453820/status";

pub(super) fn workload() -> Workload {
    let replace = json!({"spec": {"suspend": false, "concurrencyPolicy": "Replace"}});
    Workload::new("cron-job")
        .actor("controllers", |site| Ok(vec![cron_job::service(site)?]))
        .step("create", [Deed::Create(tick())])
        .step("an hour comes", [])
        .until(after(1))
        .step("its work is done", [Deed::Patch(FIRST, done())])
        .step("change the template", [Deed::Patch(TICK, image("app:2"))])
        .until(after(2))
        .step(
            "suspend",
            [Deed::Patch(TICK, json!({"spec": {"suspend": true}}))],
        )
        .until(after(3))
        .step("replace what still runs", [Deed::Patch(TICK, replace)])
        .step(
            "forget what is over",
            [Deed::Patch(
                TICK,
                json!({"spec": {"successfulJobsHistoryLimit": 0}}),
            )],
        )
        .step("delete", [Deed::Delete(TICK)])
}

/// A moment after so many hours: whatever is late by then is too late.
fn after(hours: u64) -> Duration {
    Duration::from_mins(60 * hours + 1)
}

pub(crate) fn tick() -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "CronJob",
        "metadata": {"name": "tick", "namespace": "default"},
        "spec": {"schedule": "0 * * * *", "jobTemplate": {"spec": {"template": template("app:1")}}},
    })
}

fn template(image: &str) -> Value {
    let container = json!({"name": "main", "image": image});
    json!({"spec": {"restartPolicy": "Never", "containers": [container]}})
}

fn image(image: &str) -> Value {
    json!({"spec": {"jobTemplate": {"spec": {"template": template(image)}}}})
}

/// What the controller of Jobs would say of one.
fn done() -> Value {
    let end = "2026-01-01T01:00:30Z";
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastProbeTime": end, "lastTransitionTime": end});
    json!({"status": {
        "startTime": "2026-01-01T01:00:00Z", "completionTime": end, "succeeded": 1,
        "conditions": [condition("SuccessCriteriaMet"), condition("Complete")],
    }})
}
