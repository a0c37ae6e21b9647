//! Rows of workloads.

use jiff::Timestamp;
use serde_json::Value;

use super::{
    age::{human_duration, since},
    read::{self, NONE, UNSET, is_true, joined, list, number, number_or, text, text_or},
};

/// Names of the containers, their images.
fn containers(object: &Value, pod_spec: &str) -> [Value; 2] {
    let containers = list(object, &format!("{pod_spec}/containers"));
    let names = joined(containers.iter().map(|c| text(c, "/name")));
    let images = joined(containers.iter().map(|c| text(c, "/image")));
    [names.into(), images.into()]
}

fn template(object: &Value) -> [Value; 2] {
    containers(object, "/spec/template/spec")
}

fn ready_of_desired(object: &Value) -> Value {
    let ready = number(object, "/status/readyReplicas");
    format!("{ready}/{}", number_or(object, "/spec/replicas", 1)).into()
}

pub(super) fn deployment(object: &Value, now: Timestamp) -> Vec<Value> {
    let [names, images] = template(object);
    vec![
        read::name(object),
        ready_of_desired(object),
        number(object, "/status/updatedReplicas").into(),
        number(object, "/status/availableReplicas").into(),
        read::age(object, now),
        names,
        images,
        read::selector(object.pointer("/spec/selector")).into(),
    ]
}

pub(super) fn replica_set(object: &Value, now: Timestamp) -> Vec<Value> {
    replicas(
        object,
        now,
        read::selector(object.pointer("/spec/selector")),
    )
}

/// Like a replica set, but its selector is a plain map.
pub(super) fn replication_controller(object: &Value, now: Timestamp) -> Vec<Value> {
    replicas(object, now, read::labels(object.pointer("/spec/selector")))
}

fn replicas(object: &Value, now: Timestamp, selector: String) -> Vec<Value> {
    let [names, images] = template(object);
    vec![
        read::name(object),
        number_or(object, "/spec/replicas", 1).into(),
        number(object, "/status/replicas").into(),
        number(object, "/status/readyReplicas").into(),
        read::age(object, now),
        names,
        images,
        selector.into(),
    ]
}

pub(super) fn stateful_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let [names, images] = template(object);
    let age = read::age(object, now);
    vec![
        read::name(object),
        ready_of_desired(object),
        age,
        names,
        images,
    ]
}

pub(super) fn daemon_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let [names, images] = template(object);
    vec![
        read::name(object),
        number(object, "/status/desiredNumberScheduled").into(),
        number(object, "/status/currentNumberScheduled").into(),
        number(object, "/status/numberReady").into(),
        number(object, "/status/updatedNumberScheduled").into(),
        number(object, "/status/numberAvailable").into(),
        read::labels(object.pointer("/spec/template/spec/nodeSelector")).into(),
        read::age(object, now),
        names,
        images,
        read::selector(object.pointer("/spec/selector")).into(),
    ]
}

/// The owner is shown as `statefulset.apps/web`.
pub(super) fn controller_revision(object: &Value, now: Timestamp) -> Vec<Value> {
    let owners = list(object, "/metadata/ownerReferences").iter();
    let controller = owners.into_iter().find(|owner| owner["controller"] == true);
    let shown = controller.map_or_else(
        || NONE.to_owned(),
        |owner| {
            let kind = text(owner, "/kind").to_lowercase();
            let group = text(owner, "/apiVersion")
                .split_once('/')
                .map(|(group, _)| group);
            let kind = group.map_or(kind.clone(), |group| format!("{kind}.{group}"));
            format!("{kind}/{}", text(owner, "/name"))
        },
    );
    vec![
        read::name(object),
        shown.into(),
        number(object, "/revision").into(),
        read::age(object, now),
    ]
}

pub(super) fn job(object: &Value, now: Timestamp) -> Vec<Value> {
    let [names, images] = template(object);
    vec![
        read::name(object),
        job_status(object).into(),
        completions(object).into(),
        job_duration(object, now).into(),
        read::age(object, now),
        names,
        images,
        read::selector(object.pointer("/spec/selector")).into(),
    ]
}

fn job_status(object: &Value) -> &'static str {
    match () {
        () if is_true(object, "Complete") => "Complete",
        () if is_true(object, "Failed") => "Failed",
        () if !text(object, "/metadata/deletionTimestamp").is_empty() => "Terminating",
        () if is_true(object, "Suspended") => "Suspended",
        () if is_true(object, "FailureTarget") => "FailureTarget",
        () if is_true(object, "SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    }
}

fn completions(object: &Value) -> String {
    let succeeded = number(object, "/status/succeeded");
    let parallelism = number(object, "/spec/parallelism");
    match object.pointer("/spec/completions").and_then(Value::as_i64) {
        Some(wanted) => format!("{succeeded}/{wanted}"),
        None if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        None => format!("{succeeded}/1"),
    }
}

fn job_duration(object: &Value, now: Timestamp) -> String {
    let at = |pointer| text(object, pointer).parse::<Timestamp>().ok();
    let Some(start) = at("/status/startTime") else {
        return String::new();
    };
    let end = at("/status/completionTime").unwrap_or(now);
    human_duration(end.as_second() - start.as_second())
}

pub(super) fn cron_job(object: &Value, now: Timestamp) -> Vec<Value> {
    let [names, images] = containers(object, "/spec/jobTemplate/spec/template/spec");
    let suspended = match object.pointer("/spec/suspend").and_then(Value::as_bool) {
        Some(true) => "True",
        Some(false) => "False",
        None => UNSET,
    };
    let last = match text(object, "/status/lastScheduleTime") {
        "" => NONE.into(),
        last => since(last, now),
    };
    vec![
        read::name(object),
        text(object, "/spec/schedule").into(),
        text_or(object, "/spec/timeZone", NONE).into(),
        suspended.into(),
        list(object, "/status/active").len().into(),
        last.into(),
        read::age(object, now),
        names,
        images,
        read::selector(object.pointer("/spec/jobTemplate/spec/selector")).into(),
    ]
}

pub(super) fn pod_template(object: &Value, _: Timestamp) -> Vec<Value> {
    let [names, images] = containers(object, "/template/spec");
    let labels = read::labels(object.pointer("/template/metadata/labels"));
    vec![read::name(object), names, images, labels.into()]
}
