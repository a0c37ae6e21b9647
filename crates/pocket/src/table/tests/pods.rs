//! The status of a pod, and the cells beside it.

use serde_json::{Value, json};

use super::cells;

fn pod(status: &Value) -> Value {
    json!({
        "spec": {"nodeName": "n1", "containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "i"}]},
        "status": status,
    })
}

/// READY, STATUS and RESTARTS.
fn pod_line(pod: Value) -> String {
    let cells = cells("v1/pods", pod);
    let text = |index: usize| cells[index].as_str().unwrap_or_default().to_owned();
    format!("{} {} {}", text(1), text(2), text(3))
}

#[test]
fn a_pod_shows_the_reason_that_explains_it_best() {
    let running = json!({"ready": true, "state": {"running": {}}});
    let done = json!({"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}});
    let table = [
        (json!({"phase": "Pending"}), "0/2 Pending 0"),
        (
            json!({"phase": "Failed", "reason": "Evicted"}),
            "0/2 Evicted 0",
        ),
        (
            json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}),
            "0/2 SchedulingGated 0",
        ),
        (
            json!({"phase": "Running", "containerStatuses": [running, running]}),
            "2/2 Running 0",
        ),
        (
            json!({"phase": "Running", "containerStatuses": [
                {"restartCount": 4, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                 "lastState": {"terminated": {"finishedAt": "2026-05-01T11:57:00Z"}}}, running]}),
            "1/2 CrashLoopBackOff 4 (3m ago)",
        ),
        (
            json!({"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 3}}}]}),
            "0/2 ExitCode:3 0",
        ),
        (
            json!({"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 137, "signal": 9}}}]}),
            "0/2 Signal:9 0",
        ),
        (
            json!({"phase": "Succeeded", "containerStatuses": [done, done]}),
            "0/2 Completed 0",
        ),
        (
            json!({"phase": "Running", "containerStatuses": [done, running], "conditions": [{"type": "Ready", "status": "True"}]}),
            "1/2 Running 0",
        ),
        (
            json!({"phase": "Running", "containerStatuses": [done, running]}),
            "1/2 NotReady 0",
        ),
    ];
    for (status, expected) in table {
        assert_eq!(pod_line(pod(&status)), expected, "{status}");
    }
}

#[test]
fn a_pod_that_initializes_says_how_far_it_is() {
    let running = json!({"ready": true, "state": {"running": {}}});
    let table = [
        (
            json!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "restartCount": 1, "state": {"running": {}}}]}),
            "0/2 Init:0/1 1",
        ),
        (
            json!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"waiting": {"reason": "PodInitializing"}}}]}),
            "0/2 Init:0/1 0",
        ),
        (
            json!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"terminated": {"exitCode": 2}}}]}),
            "0/2 Init:ExitCode:2 0",
        ),
        (
            json!({"phase": "Running", "containerStatuses": [running, running],
                "initContainerStatuses": [{"name": "i", "restartCount": 7, "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}]}),
            "2/2 Running 0",
        ),
    ];
    for (status, expected) in table {
        assert_eq!(pod_line(pod(&status)), expected, "{status}");
    }
}

#[test]
fn a_sidecar_counts_as_a_container() {
    let mut object = pod(&json!({
        "phase": "Running",
        "initContainerStatuses": [{"name": "i", "ready": true, "started": true, "restartCount": 2, "state": {"running": {}}}],
        "containerStatuses": [{"ready": true, "state": {"running": {}}}],
    }));
    object["spec"]["initContainers"][0]["restartPolicy"] = json!("Always");
    assert_eq!(pod_line(object), "2/3 Running 2");
}

#[test]
fn a_deleted_pod_is_terminating_until_it_is_done() {
    for (status, expected) in [
        (json!({"phase": "Running"}), "0/2 Terminating 0"),
        (json!({"phase": "Succeeded"}), "0/2 Succeeded 0"),
        (
            json!({"phase": "Running", "reason": "NodeLost"}),
            "0/2 Unknown 0",
        ),
    ] {
        let mut object = pod(&status);
        object["metadata"] = json!({"deletionTimestamp": "2026-05-01T11:00:00Z"});
        assert_eq!(pod_line(object), expected);
    }
}

#[test]
fn a_wide_pod_says_where_it_is() {
    let mut object = pod(&json!({
        "podIPs": [{"ip": "10.0.0.7"}],
        "conditions": [{"type": "lit", "status": "True"}],
    }));
    object["spec"]["readinessGates"] = json!([{"conditionType": "lit"}, {"conditionType": "fed"}]);
    let cells = cells("v1/pods", object);
    assert_eq!(
        cells[4..],
        [
            json!("3h"),
            json!("10.0.0.7"),
            json!("n1"),
            json!("<none>"),
            json!("1/2")
        ]
    );
}
