//! Pods that fail: status and Events show the reason.

use k8s_openapi::api::core::v1::{ConfigMap, Pod, ServiceAccount};
use kube::{Api, api::PostParams};
use serde_json::{Value, json};

use super::test_node::TestNode;

/// Reason and message of the first container's waiting state.
fn waiting(pod: &Pod) -> Option<(String, String)> {
    let status = pod.status.as_ref()?.container_statuses.as_ref()?.first()?;
    let waiting = status.state.as_ref()?.waiting.clone()?;
    Some((waiting.reason?, waiting.message.unwrap_or_default()))
}

/// A pod that fails, and the expected status and Event.
struct FailureCase {
    name: &'static str,
    spec: Value,
    /// Reason, and part of the message, of the status.
    status: (&'static str, &'static str),
    /// Reason, and part of the message, of the Event.
    event: (&'static str, &'static str),
}

fn cases() -> Vec<FailureCase> {
    let container = |more: Value| json!({"spec": {"containers": [more]}});
    vec![
        FailureCase {
            name: "image",
            spec: container(json!({"image": "shop/cart:3"})),
            status: ("ErrImageNeverPull", "name = \"shop/cart\""),
            event: (
                "Failed",
                "image \"shop/cart:3\" is not in this node's table",
            ),
        },
        FailureCase {
            name: "map",
            spec: container(json!({"envFrom": [{"configMapRef": {"name": "gone"}}]})),
            status: ("CreateContainerConfigError", "configmap \"gone\" not found"),
            event: ("Failed", "configmap \"gone\" not found"),
        },
        FailureCase {
            name: "secret",
            spec: json!({"spec": {"volumes": [{"name": "v", "secret": {"secretName": "gone"}}]}}),
            status: (
                "ContainerCreating",
                "volume \"v\": secret \"gone\" not found",
            ),
            event: ("FailedMount", "volume \"v\": secret \"gone\" not found"),
        },
        FailureCase {
            name: "claim",
            spec: json!({"spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "gone"}}]}}),
            status: (
                "ContainerCreating",
                "persistentvolumeclaim \"gone\" not found",
            ),
            event: ("FailedMount", "persistentvolumeclaim \"gone\" not found"),
        },
        FailureCase {
            name: "root",
            spec: container(json!({"securityContext": {"runAsNonRoot": true}})),
            status: ("CreateContainerConfigError", "would run as root"),
            event: ("Failed", "give it a runAsUser"),
        },
        FailureCase {
            name: "path",
            spec: json!({"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/nowhere/at/all", "type": "Directory"}}]}}),
            status: ("ContainerCreating", "/nowhere/at/all does not exist"),
            event: ("FailedMount", "/nowhere/at/all does not exist"),
        },
    ]
}

#[tokio::test]
async fn status_and_events_show_why_a_pod_cannot_start() {
    let node = TestNode::start().await;
    for case in cases() {
        node.run(case.name, "true", case.spec).await;
        let (reason, words) = case.status;
        let shows = |pod: &Pod| {
            waiting(pod).is_some_and(|(why, message)| why == reason && message.contains(words))
        };
        node.when(case.name, shows).await;
        node.has_event(case.name, case.event.0, case.event.1).await;
    }
    for case in cases() {
        let said = node.events(case.name).await;
        assert_eq!(said.len(), 1, "{}: {said:?}", case.name);
    }
}

#[tokio::test]
async fn a_missing_command_is_a_start_error() {
    let node = TestNode::start().await;
    let spec = |policy: &str| {
        let container = json!({"command": ["/no/such/program"]});
        json!({"spec": {"restartPolicy": policy, "containers": [container]}})
    };
    node.run("once", "", spec("Never")).await;
    node.run("ever", "", spec("Always")).await;
    let once = node.phase("once", "Failed").await;
    let loops = |pod: &Pod| waiting(pod).is_some_and(|(why, _)| why == "CrashLoopBackOff");
    let ever = node.when("ever", loops).await;
    let words = "/no/such/program could not be started: No such file or directory";
    for pod in [once, ever] {
        let name = pod.metadata.name.unwrap();
        let mut status = pod.status.unwrap().container_statuses.unwrap().remove(0);
        let states = [status.state.take(), status.last_state.take()];
        let mut ends = states.into_iter().filter_map(|state| state?.terminated);
        let end = ends.next().unwrap();
        assert_eq!(
            (end.exit_code, end.reason.as_deref()),
            (128, Some("StartError"))
        );
        assert!(end.message.unwrap().starts_with(words), "{name}");
        node.has_event(&name, "Failed", words).await;
        let said = node.events(&name).await;
        assert!(
            said.iter().all(|(reason, _)| reason != "Started"),
            "{said:?}"
        );
    }
}

#[tokio::test]
async fn a_failing_container_gets_crash_loop_back_off() {
    let node = TestNode::start().await;
    let always = json!({"spec": {"restartPolicy": "Always"}});
    node.run("loop", "exit 3", always).await;
    let loops = |pod: &Pod| {
        waiting(pod).is_some_and(|(why, message)| {
            why == "CrashLoopBackOff" && message.starts_with("back-off 10s")
        })
    };
    node.when("loop", loops).await;
    node.has_event(
        "loop",
        "BackOff",
        "Back-off restarting failed container main",
    )
    .await;
}

#[tokio::test]
async fn a_probe_that_cannot_connect_is_reported() {
    let node = TestNode::start().await;
    let probe = json!({"tcpSocket": {"port": 7}, "periodSeconds": 1});
    let spec = json!({"spec": {"containers": [{"readinessProbe": probe}]}});
    node.run("deaf", "exec sleep 60", spec).await;
    node.has_event("deaf", "Unhealthy", "Readiness probe failed")
        .await;
    node.has_event("deaf", "Started", "main").await;
}

#[tokio::test]
async fn a_terminating_pod_needs_no_token() {
    let node = TestNode::start().await;
    // The pod is bound after its service account was deleted, so it gets no token.
    node.create::<ServiceAccount>(json!({"metadata": {"name": "short-lived"}}))
        .await;
    let container = json!({"name": "main", "image": "busybox", "command": ["true"]});
    let pod = json!({"metadata": {"name": "orphan"}, "spec": {"serviceAccountName": "short-lived", "containers": [container]}});
    let pod: Pod = node.create(pod).await;
    node.delete::<ServiceAccount>("short-lived").await;
    let binding =
        json!({"metadata": {"name": "orphan"}, "target": {"kind": "Node", "name": "here"}});
    let pods: Api<Pod> = node.pods.clone();
    let bound: Result<Value, _> = pods
        .create_subresource("binding", "orphan", &PostParams::default(), &binding)
        .await;
    bound.unwrap();
    node.has_event(
        "orphan",
        "FailedMount",
        "no token for the pod's service account",
    )
    .await;
    node.delete::<Pod>("orphan").await;
    node.gone(&pod).await;
}

#[tokio::test]
async fn a_finished_pod_needs_no_volumes() {
    let node = TestNode::start().await;
    let map = json!({"metadata": {"name": "colours"}, "data": {"wall": "blue"}});
    node.create::<ConfigMap>(map).await;
    let spec = json!({"spec": {
        "containers": [{"volumeMounts": [{"name": "config", "mountPath": "/config"}]}],
        "volumes": [{"name": "config", "configMap": {"name": "colours"}}],
    }});
    let done = node.run("done", "cat /config/wall", spec.clone()).await;
    node.phase("done", "Succeeded").await;
    node.delete::<ConfigMap>("colours").await;
    // When the Event of the second pod appears, the node has also reconciled the first.
    node.run("late", "cat /config/wall", spec).await;
    node.has_event("late", "FailedMount", "configmap \"colours\" not found")
        .await;
    let said = node.events("done").await;
    assert!(
        said.iter().all(|(reason, _)| reason != "FailedMount"),
        "{said:?}"
    );
    node.delete::<Pod>("done").await;
    node.gone(&done).await;
}
