//! Tests of the pure decisions.

use jiff::Timestamp;
use k8s_openapi::api::{
    batch::v1::{Job, JobStatus},
    core::v1::Pod,
};
use serde_json::{Value, json};

use super::super::{
    decide::{Decision, Facts, decide},
    failure_policy::{FailureAction, failure_action},
    indexes::{format, parse},
};

fn now() -> Timestamp {
    "2026-01-01T01:00:00Z".parse().unwrap()
}

fn job(spec: Value, status: &Value) -> Job {
    let mut job = json!({
        "metadata": {"name": "sum", "namespace": "default", "uid": "j"},
        "spec": {
            "selector": {"matchLabels": {"job": "j"}}, "backoffLimit": 6,
            "template": {"metadata": {"labels": {"job": "j"}}, "spec": {"containers": []}},
        },
        "status": status,
    });
    let into = job["spec"].as_object_mut().unwrap();
    into.extend(crate::stage::fields(spec));
    serde_json::from_value(job).unwrap()
}

fn pod(uid: &str, phase: &str, tracked: bool) -> Pod {
    let finalizers = if tracked {
        json!(["batch.kubernetes.io/job-tracking"])
    } else {
        json!([])
    };
    let owner = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "sum", "uid": "j", "controller": true});
    let pod = json!({
        "metadata": {
            "name": uid, "namespace": "default", "uid": uid, "labels": {"job": "j"},
            "finalizers": finalizers, "ownerReferences": [owner],
        },
        "status": {"phase": phase},
    });
    serde_json::from_value(pod).unwrap()
}

fn decided<'a>(job: &'a Job, pods: &'a [Pod]) -> Decision<'a> {
    let pods = pods.iter().collect();
    let now = now();
    decide(&Facts { job, pods, now })
}

fn numbers(status: &JobStatus) -> (Option<i32>, Option<i32>, Value) {
    let named = json!(status.uncounted_terminated_pods);
    (status.succeeded, status.failed, named)
}

#[test]
fn a_pod_is_listed_then_freed_then_counted_wherever_the_controller_stops() {
    let spec = json!({"completions": 3, "parallelism": 3});
    let pods = [pod("a", "Succeeded", true), pod("b", "Failed", true)];
    let new = job(spec.clone(), &json!({}));
    let first = decided(&new, &pods);
    let named = json!({"succeeded": ["a"], "failed": ["b"]});
    assert_eq!(numbers(&first.status), (None, None, named.clone()));
    assert_eq!(first.untrack.len(), 2);

    let written = job(spec.clone(), &json!(first.status));
    let again = decided(&written, &pods);
    assert_eq!(numbers(&again.status), (None, None, named), "listed once");
    assert_eq!(again.untrack.len(), 2, "and freed if that was not done");

    let half = [pod("a", "Succeeded", false), pod("b", "Failed", true)];
    let half = decided(&written, &half);
    let left = json!({"failed": ["b"]});
    assert_eq!(numbers(&half.status), (Some(1), None, left));

    let free = [pod("a", "Succeeded", false)];
    let last = decided(&written, &free);
    let counted = (Some(1), Some(1), json!({}));
    assert_eq!(numbers(&last.status), counted, "one that is gone, too");
    let over = job(spec, &json!(last.status));
    assert_eq!(numbers(&decided(&over, &free).status), counted, "once");
}

#[test]
fn without_completions_one_success_is_enough_when_all_have_ended() {
    let spec = json!({"parallelism": 2});
    let pods = [pod("a", "Succeeded", false), pod("b", "Running", true)];
    let counted = job(spec, &json!({"succeeded": 1}));
    let decision = decided(&counted, &pods);
    assert_eq!(decision.status.conditions, None);
    assert_eq!((decision.create.len(), decision.delete.len()), (0, 0));
    let ended = [pod("a", "Succeeded", false)];
    let decision = decided(&counted, &ended);
    let conditions = decision.status.conditions.unwrap();
    assert_eq!(conditions[1].type_, "Complete");
}

#[test]
fn the_same_pods_are_created_again() {
    let new = job(json!({"completions": 3, "parallelism": 3}), &json!({}));
    let names = |decision: Decision<'_>| {
        let pods = decision.create.into_iter();
        pods.map(|pod| pod.metadata.name.unwrap())
            .collect::<Vec<_>>()
    };
    let first = names(decided(&new, &[]));
    assert_eq!(first.len(), 3);
    assert_eq!(first, names(decided(&new, &[])));
}

#[test]
fn rules_determine_the_effect_of_a_failure() {
    let policy = json!({"podFailurePolicy": {"rules": [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        {"action": "FailJob", "onExitCodes": {"containerName": "main", "operator": "In", "values": [42]}},
        {"action": "FailIndex", "onExitCodes": {"operator": "NotIn", "values": [1, 2]}},
    ]}});
    let spec = job(policy, &json!({})).spec.unwrap();
    let ended = |code: i32, disrupted: bool| {
        let mut pod = json!(pod("a", "Failed", true));
        let terminated = json!({"terminated": {"exitCode": code}});
        pod["status"]["containerStatuses"] = json!([{
            "name": "main", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": terminated,
        }]);
        if disrupted {
            pod["status"]["conditions"] = json!([{"type": "DisruptionTarget", "status": "True"}]);
        }
        failure_action(&spec, &serde_json::from_value(pod).unwrap())
    };
    let why = "Container main for pod default/a failed with exit code 42 matching FailJob rule at index 1";
    assert_eq!(
        ended(42, true),
        FailureAction::Ignore,
        "the first rule decides"
    );
    assert_eq!(ended(42, false), FailureAction::FailJob(why.to_owned()));
    assert_eq!(ended(7, false), FailureAction::FailIndex);
    assert_eq!(ended(1, false), FailureAction::Count);
}

#[test]
fn indexes_are_written_as_ranges() {
    for text in ["", "0", "0,1", "0-2", "1,3-5,7,8"] {
        assert_eq!(format(&parse(text, 10)), text);
    }
    assert_eq!(format(&parse("0-9", 3)), "0-2", "none beyond the last");
}
