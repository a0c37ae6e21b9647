use serde_json::{Value, json};

use super::*;

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

/// A pod with one container in this state.
fn pod(status: &Value) -> Pod {
    let pod = json!({
        "metadata": {"name": "web-1", "creationTimestamp": "2026-01-01T11:00:00Z"},
        "spec": {"containers": [{"name": "web", "readinessProbe": {"tcpSocket": {"port": 80}}}]},
        "status": status,
    });
    serde_json::from_value(pod).unwrap()
}

fn container(change: &Value) -> Value {
    let mut container = json!({
        "name": "web", "image": "web:1", "imageID": "", "ready": false, "restartCount": 0,
    });
    for (field, value) in change.as_object().unwrap() {
        container[field] = value.clone();
    }
    json!({"phase": "Pending", "containerStatuses": [container]})
}

fn waits(reason: &str, message: &str) -> Pod {
    let state = json!({"waiting": {"reason": reason, "message": message}});
    pod(&container(&json!({"state": state})))
}

fn crashed(at: &str, ready: bool, restarts: i32) -> Pod {
    let mut status = container(&json!({
        "state": {"running": {}}, "ready": ready, "restartCount": restarts,
        "lastState": {"terminated": {"exitCode": 3, "finishedAt": at}},
    }));
    let ready = if ready { "True" } else { "False" };
    status["conditions"] = json!([{"type": "Ready", "status": ready}]);
    pod(&status)
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn every_cause_is_recognized_and_told_without_times() {
    let unschedulable = json!({"phase": "Pending", "conditions": [{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": "0/1 nodes are available",
    }]});
    for (pod, cause, definite, text) in vec![
        (
            waits(
                "ImagePullBackOff",
                "Back-off pulling image \"web:1\": ErrImagePull: not found",
            ),
            NotReadyCause::ImagePull,
            true,
            "pod web-1: the image web:1 of the container web cannot be pulled: not found",
        ),
        (
            waits("ErrImagePull", "not found"),
            NotReadyCause::ImagePull,
            false,
            "pod web-1: the image web:1 of the container web cannot be pulled: not found",
        ),
        (
            waits("ErrImageNeverPull", "add it to --images"),
            NotReadyCause::ImagePull,
            true,
            "pod web-1: the image web:1 of the container web cannot be pulled: add it to --images",
        ),
        (
            waits("CreateContainerConfigError", "secret \"s\" not found"),
            NotReadyCause::ContainerConfig,
            true,
            "pod web-1: the container web cannot be created (CreateContainerConfigError): secret \"s\" not found",
        ),
        (
            crashed("2026-01-01T11:59:00Z", false, 2),
            NotReadyCause::CrashLoop,
            true,
            "pod web-1: the container web crashes again and again: it exited with code 3",
        ),
        (
            pod(&unschedulable),
            NotReadyCause::Unschedulable,
            false,
            "pod web-1: it cannot be scheduled: 0/1 nodes are available",
        ),
        (
            pod(&container(&json!({"state": {"running": {}}}))),
            NotReadyCause::Probe,
            false,
            "pod web-1: the container web runs, and its readiness probe has not succeeded",
        ),
        (
            waits("ContainerCreating", ""),
            NotReadyCause::Starting,
            false,
            "pod web-1: its containers are being created",
        ),
        (
            pod(&json!({"phase": "Failed", "reason": "Evicted", "message": "low on disk"})),
            NotReadyCause::PodFailed,
            true,
            "pod web-1: it has failed Evicted: low on disk",
        ),
    ] {
        let states = assess(&[pod], now());
        assert_eq!(states.ready, 0, "{text}");
        let problem = states.problem.unwrap();
        assert_eq!(
            (problem.cause, problem.definite),
            (cause, definite),
            "{text}"
        );
        assert_eq!(problem.message, text);
    }
    let none = assess(&[], now()).problem.unwrap();
    assert_eq!(none.cause, NotReadyCause::NoPods);
}

#[test]
fn a_pod_that_is_ready_between_two_crashes_does_not_serve() {
    let states = assess(&[crashed("2026-01-01T11:59:00Z", true, 5)], now());
    assert_eq!((states.ready, states.unstable), (1, true));
    assert_eq!(states.problem.unwrap().cause, NotReadyCause::CrashLoop);
    // One that has run for long enough does, and so does one beside a pod that crashes.
    let healed = crashed("2026-01-01T11:50:00Z", true, 5);
    let states = assess(&[crashed("2026-01-01T11:59:00Z", false, 5), healed], now());
    assert_eq!(
        (states.ready, states.unstable, states.problem),
        (1, false, None)
    );
    // A single restart is no loop.
    let once = assess(&[crashed("2026-01-01T11:59:00Z", true, 1)], now());
    assert_eq!(once.problem, None);
}

#[test]
fn what_does_not_pass_by_itself_is_reported_first() {
    let missing = waits("ImagePullBackOff", "");
    let states = assess(&[waits("ContainerCreating", ""), missing], now());
    assert_eq!(states.problem.unwrap().cause, NotReadyCause::ImagePull);
}

#[test]
fn pods_that_the_api_server_refuses_are_told_by_the_deployment() {
    let deployment = |status: &str| {
        let conditions = json!([{
            "type": "ReplicaFailure", "status": status, "reason": "FailedCreate",
            "message": "pods \"web-1\" is forbidden: exceeded quota",
        }]);
        let deployment = json!({
            "metadata": {"name": "web"},
            "spec": {
                "selector": {}, "template": {},
            },
            "status": {"conditions": conditions},
        });
        serde_json::from_value::<Deployment>(deployment).unwrap()
    };
    let problem = refusal(&deployment("True")).unwrap();
    assert_eq!(problem.cause, NotReadyCause::PodsRefused);
    assert_eq!(
        problem.message,
        "its pods cannot be created: pods \"web-1\" is forbidden: exceeded quota"
    );
    assert_eq!(refusal(&deployment("False")), None);
}
