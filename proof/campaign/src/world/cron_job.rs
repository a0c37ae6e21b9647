//! A CronJob that runs every hour: on time, one Job at a time, suspended, and with a short history.

use std::time::Duration;

use neap_trial::{UserRequest, Workload};
use neap_world::cron_job;
use serde_json::{Value, json};

const TICK: &str = "/apis/batch/v1/namespaces/default/cronjobs/tick";
/// The Job of the first hour: runs start at midnight, and a Job is named after its minute.
const FIRST: &str = "/apis/batch/v1/namespaces/default/jobs/tick-29453820/status";

pub(super) fn workload() -> Workload {
    let replace = json!({"spec": {"suspend": false, "concurrencyPolicy": "Replace"}});
    Workload::new("cron-job")
        .actor("controllers", |context| {
            Ok(vec![cron_job::component(context)?])
        })
        .step("create", [UserRequest::Create(tick())])
        .step("an hour comes", [])
        .until(after(1))
        .step("its work is done", [UserRequest::Patch(FIRST, done())])
        .step(
            "change the template",
            [UserRequest::Patch(TICK, image("app:2"))],
        )
        .until(after(2))
        .step(
            "suspend",
            [UserRequest::Patch(TICK, json!({"spec": {"suspend": true}}))],
        )
        .until(after(3))
        .step(
            "replace what still runs",
            [UserRequest::Patch(TICK, replace)],
        )
        .step(
            "forget what is over",
            [UserRequest::Patch(
                TICK,
                json!({"spec": {"successfulJobsHistoryLimit": 0}}),
            )],
        )
        .step("delete", [UserRequest::Delete(TICK)])
}

/// One minute after this many hours: a Job that has not started by then starts too late.
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

/// The status that the Job controller would write.
fn done() -> Value {
    let end = "2026-01-01T01:00:30Z";
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastProbeTime": end, "lastTransitionTime": end});
    json!({"status": {
        "startTime": "2026-01-01T01:00:00Z", "completionTime": end, "succeeded": 1,
        "conditions": [condition("SuccessCriteriaMet"), condition("Complete")],
    }})
}
