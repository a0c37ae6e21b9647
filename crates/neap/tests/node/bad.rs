//! Pods that cannot be: seen in status and Events, in plain words.

use k8s_openapi::api::core::v1::{ConfigMap, Pod, ServiceAccount};
use kube::{Api, api::PostParams};
use serde_json::{Value, json};

use crate::machine::Machine;

/// Why the first container waits: the reason and the message.
fn waits(pod: &Pod) -> Option<(String, String)> {
    let status = pod.status.as_ref()?.container_statuses.as_ref()?.first()?;
    let waiting = status.state.as_ref()?.waiting.clone()?;
    Some((waiting.reason?, waiting.message.unwrap_or_default()))
}

/// What is wrong, and how it shows.
struct Case {
    name: &'static str,
    spec: Value,
    /// The reason and the words of the status.
    status: (&'static str, &'static str),
    /// The reason and the words of an Event.
    event: (&'static str, &'static str),
}

fn cases() -> Vec<Case> {
    let container = |more: Value| json!({"spec": {"containers": [more]}});
    vec![
        Case {
            name: "image",
            spec: container(json!({"image": "shop/cart:3"})),
            status: ("ErrImageNeverPull", "name = \"shop/cart\""),
            event: (
                "Failed",
                "image \"shop/cart:3\" is not in this node's table",
            ),
        },
        Case {
            name: "map",
            spec: container(json!({"envFrom": [{"configMapRef": {"name": "gone"}}]})),
            status: ("CreateContainerConfigError", "configmap \"gone\" not found"),
            event: ("Failed", "configmap \"gone\" not found"),
        },
        Case {
            name: "secret",
            spec: json!({"spec": {"volumes": [{"name": "v", "secret": {"secretName": "gone"}}]}}),
            status: (
                "ContainerCreating",
                "volume \"v\": secret \"gone\" not found",
            ),
            event: ("FailedMount", "volume \"v\": secret \"gone\" not found"),
        },
        Case {
            name: "claim",
            spec: json!({"spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "gone"}}]}}),
            status: (
                "ContainerCreating",
                "persistentvolumeclaim \"gone\" not found",
            ),
            event: ("FailedMount", "persistentvolumeclaim \"gone\" not found"),
        },
        Case {
            name: "root",
            spec: container(json!({"securityContext": {"runAsNonRoot": true}})),
            status: ("CreateContainerConfigError", "would run as root"),
            event: ("Failed", "give it a runAsUser"),
        },
        Case {
            name: "path",
            spec: json!({"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/nowhere/at/all", "type": "Directory"}}]}}),
            status: ("ContainerCreating", "there is no /nowhere/at/all"),
            event: ("FailedMount", "there is no /nowhere/at/all"),
        },
    ]
}

#[tokio::test]
async fn what_cannot_be_started_says_why_in_status_and_events() {
    let machine = Machine::start().await;
    for case in cases() {
        machine.run(case.name, "true", case.spec).await;
        let (reason, words) = case.status;
        let is_so = |pod: &Pod| {
            waits(pod).is_some_and(|(why, message)| why == reason && message.contains(words))
        };
        machine.when(case.name, is_so).await;
        machine.told(case.name, case.event.0, case.event.1).await;
    }
    for case in cases() {
        let said = machine.events(case.name).await;
        assert_eq!(said.len(), 1, "{}: {said:?}", case.name);
    }
}

#[tokio::test]
async fn a_command_that_is_not_there_never_ran() {
    let machine = Machine::start().await;
    let spec = |policy: &str| {
        let container = json!({"command": ["/no/such/program"]});
        json!({"spec": {"restartPolicy": policy, "containers": [container]}})
    };
    machine.run("once", "", spec("Never")).await;
    machine.run("ever", "", spec("Always")).await;
    let once = machine.phase("once", "Failed").await;
    let loops = |pod: &Pod| waits(pod).is_some_and(|(why, _)| why == "CrashLoopBackOff");
    let ever = machine.when("ever", loops).await;
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
        machine.told(&name, "Failed", words).await;
        let said = machine.events(&name).await;
        assert!(
            said.iter().all(|(reason, _)| reason != "Started"),
            "{said:?}"
        );
    }
}

#[tokio::test]
async fn a_container_that_keeps_failing_waits_longer_and_says_so() {
    let machine = Machine::start().await;
    let always = json!({"spec": {"restartPolicy": "Always"}});
    machine.run("loop", "exit 3", always).await;
    let loops = |pod: &Pod| {
        waits(pod).is_some_and(|(why, message)| {
            why == "CrashLoopBackOff" && message.starts_with("back-off 10s")
        })
    };
    machine.when("loop", loops).await;
    machine
        .told(
            "loop",
            "BackOff",
            "Back-off restarting failed container main",
        )
        .await;
}

#[tokio::test]
async fn a_probe_that_reaches_nobody_says_so() {
    let machine = Machine::start().await;
    let probe = json!({"tcpSocket": {"port": 7}, "periodSeconds": 1});
    let spec = json!({"spec": {"containers": [{"readinessProbe": probe}]}});
    machine.run("deaf", "exec sleep 60", spec).await;
    machine
        .told("deaf", "Unhealthy", "Readiness probe failed")
        .await;
    machine.told("deaf", "Started", "main").await;
}

#[tokio::test]
async fn a_pod_that_ends_asks_for_nothing_any_more() {
    let machine = Machine::start().await;
    // It is bound when its account is gone, so there is no token for it.
    machine
        .create::<ServiceAccount>(json!({"metadata": {"name": "short-lived"}}))
        .await;
    let container = json!({"name": "main", "image": "busybox", "command": ["true"]});
    let pod = json!({"metadata": {"name": "orphan"}, "spec": {"serviceAccountName": "short-lived", "containers": [container]}});
    let pod: Pod = machine.create(pod).await;
    machine.delete::<ServiceAccount>("short-lived").await;
    let binding =
        json!({"metadata": {"name": "orphan"}, "target": {"kind": "Node", "name": "here"}});
    let pods: Api<Pod> = machine.pods.clone();
    let bound: Result<Value, _> = pods
        .create_subresource("binding", "orphan", &PostParams::default(), &binding)
        .await;
    bound.unwrap();
    machine
        .told(
            "orphan",
            "FailedMount",
            "no token for the pod's service account",
        )
        .await;
    machine.delete::<Pod>("orphan").await;
    machine.gone(&pod).await;
}

#[tokio::test]
async fn a_pod_that_is_done_does_not_miss_what_it_was_made_of() {
    let machine = Machine::start().await;
    let map = json!({"metadata": {"name": "colours"}, "data": {"wall": "blue"}});
    machine.create::<ConfigMap>(map).await;
    let spec = json!({"spec": {
        "containers": [{"volumeMounts": [{"name": "config", "mountPath": "/config"}]}],
        "volumes": [{"name": "config", "configMap": {"name": "colours"}}],
    }});
    let done = machine.run("done", "cat /config/wall", spec.clone()).await;
    machine.phase("done", "Succeeded").await;
    machine.delete::<ConfigMap>("colours").await;
    // By the time another one misses it, the first has been looked at as well.
    machine.run("late", "cat /config/wall", spec).await;
    machine
        .told("late", "FailedMount", "configmap \"colours\" not found")
        .await;
    let said = machine.events("done").await;
    assert!(
        said.iter().all(|(reason, _)| reason != "FailedMount"),
        "{said:?}"
    );
    machine.delete::<Pod>("done").await;
    machine.gone(&done).await;
}
