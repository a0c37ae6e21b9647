//! Kinds that every cluster has.

mod roots;

use super::*;

fn kind(kind: &str, object: Value, around: Vec<Value>) -> Explanation {
    explain(&Facts {
        kind: kind.into(),
        around: around.into(),
        ..facts(Some(object))
    })
}

/// A pod of `uid` with one container in this state.
fn pod(name: &str, container: &Value) -> Value {
    let mut status = json!({"name": "main", "image": "shop:1", "ready": false, "restartCount": 4});
    for (key, value) in container.as_object().unwrap() {
        status[key] = value.clone();
    }
    json!({
        "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "shop", "labels": {"app": "web"},
            "ownerReferences": [{"uid": "set-1"}],
        },
        "spec": {"nodeName": "here"},
        "status": {"phase": "Running", "containerStatuses": [status]},
    })
}

fn crashing(name: &str) -> Value {
    let ended = json!({"terminated": {"exitCode": 127, "finishedAt": "2026-01-01T11:59:30Z"}});
    pod(
        name,
        &json!({"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": ended}),
    )
}

const CRASHING: &str = "the container main ends again and again (4 restarts): it ended with code 127 30s ago, for its command was not found";

fn well(name: &str) -> Value {
    pod(name, &json!({"ready": true, "state": {"running": {}}}))
}

#[test]
fn a_pod_says_which_container_keeps_it_and_why() {
    use Verdict::{OnItsWay, Troubled, Well};
    let waits = |reason: &str, message: &str| {
        pod(
            "a",
            &json!({"state": {"waiting": {"reason": reason, "message": message}}}),
        )
    };
    let ended = |phase: &str, code: i64, reason: &str| {
        let mut pod = pod(
            "a",
            &json!({"state": {"terminated": {"exitCode": code, "reason": reason}}}),
        );
        pod["spec"]["restartPolicy"] = "Never".into();
        pod["status"]["phase"] = phase.into();
        pod
    };
    let mut nowhere = json!({"metadata": {}, "status": {"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "message": "0/1 nodes have room"},
    ]}});
    let unscheduled = nowhere.clone();
    nowhere["status"]["conditions"] = json!([]);
    let mut placed = nowhere.clone();
    placed["spec"]["nodeName"] = "here".into();
    #[rustfmt::skip]
    let table = [
        (well("a"), Well, ""),
        (crashing("a"), Troubled, CRASHING),
        (waits("ErrImagePull", "no such image"), Troubled, "the container main has no image shop:1: no such image"),
        (waits("CreateContainerConfigError", "secret \"key\" not found"), Troubled, "the container main cannot be made: secret \"key\" not found"),
        (waits("ErrImagePull", "image \"shop:1\" is not in the table"), Troubled, "the container main has no image: image \"shop:1\" is not in the table"),
        (waits("ContainerCreating", "volume \"c\": secret \"key\" not found"), Troubled, "the container main cannot be made: volume \"c\": secret \"key\" not found"),
        (waits("ContainerCreating", ""), OnItsWay, "the container main is being made ready"),
        (waits("RunContainerError", ""), Troubled, "the container main cannot be started (RunContainerError): RunContainerError"),
        (pod("a", &json!({"state": {"running": {}}})), OnItsWay, "the container main runs and is not ready"),
        (ended("Failed", 3, "Error"), Troubled, "the container main ended with code 3"),
        (ended("Failed", 137, "OOMKilled"), Troubled, "the container main ended with code 137, for it used more memory than its limit"),
        (ended("Succeeded", 0, "Completed"), Well, "it ran to its end"),
        (ended("Running", 0, "Completed"), Well, ""),
        (unscheduled, Troubled, "no node takes it: 0/1 nodes have room"),
        (nowhere, OnItsWay, "it waits for a scheduler to choose its node"),
        (placed, OnItsWay, "the node here has not started its containers yet"),
    ];
    for (pod, verdict, why) in table {
        let said = kind("Pod", pod.clone(), vec![]);
        let first = said.why.first().map_or("", String::as_str);
        assert_eq!((said.verdict, first), (verdict, why), "{pod:#}");
    }
    let mut cordoned = json!({"metadata": {}, "status": {"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "message": "1 node(s) were unschedulable."},
    ]}});
    cordoned["spec"] = json!({});
    let advice = kind("Pod", cordoned, vec![]).advice;
    assert!(advice[0].contains("kubectl uncordon"), "{advice:?}");
    let advice = kind("Pod", crashing("a"), vec![]).advice;
    assert_eq!(
        advice,
        ["See what it printed: kubectl logs -n shop a -c main --previous"]
    );
}

fn deployment(status: &Value) -> Value {
    json!({
        "metadata": {"uid": "deployment-1", "namespace": "shop", "name": "web", "generation": 2},
        "spec": {"replicas": 3},
        "status": status,
    })
}

fn set() -> Value {
    json!({"kind": "ReplicaSet", "metadata": {"uid": "set-1", "ownerReferences": [{"uid": "deployment-1"}]}})
}

#[test]
fn a_deployment_says_what_ails_its_pods_those_alike_together() {
    let status = json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 1,
        "conditions": [condition("Available", "False", "too few")]});
    let mut foreign = crashing("other");
    foreign["metadata"]["ownerReferences"][0]["uid"] = "set-2".into();
    let mut later = crashing("c");
    later["status"]["containerStatuses"][0]["lastState"]["terminated"]["finishedAt"] = NOW.into();
    later["status"]["containerStatuses"][0]["restartCount"] = 5.into();
    let around = vec![set(), crashing("a"), well("b"), later, foreign];
    let said = kind("Deployment", deployment(&status), around);
    assert_eq!(said.verdict, Verdict::Troubled);
    assert_eq!(
        said.why,
        [
            format!("pod a (and 1 other likewise): {CRASHING}"),
            "1 of 3 pods are ready".to_owned(),
        ]
    );
}

#[test]
fn a_deployment_moves_as_its_counts_do() {
    let counts = |updated: i64, there: i64, ready: i64, available: i64| {
        json!({"observedGeneration": 2, "updatedReplicas": updated, "replicas": there,
            "readyReplicas": ready, "availableReplicas": available})
    };
    let mut stuck = counts(1, 3, 3, 3);
    stuck["conditions"] = json!([condition("Progressing", "False", "deadline")]);
    #[rustfmt::skip]
    let table = [
        (counts(3, 3, 3, 3), Verdict::Well, vec![]),
        (counts(1, 4, 3, 3), Verdict::OnItsWay, vec!["1 of 3 pods are of the newest version", "4 pods are there, and 3 shall be"]),
        (counts(3, 3, 3, 2), Verdict::OnItsWay, vec!["2 of 3 pods have been ready for long enough"]),
        (json!({}), Verdict::OnItsWay, vec!["no controller has looked at it yet"]),
        (stuck, Verdict::Troubled, vec!["1 of 3 pods are of the newest version", "Progressing is False (Because) for 4m: deadline"]),
    ];
    for (status, verdict, why) in table {
        let around = vec![set(), well("a")];
        let said = kind("Deployment", deployment(&status), around);
        let lines: Vec<_> = said.why.iter().map(String::as_str).collect();
        assert_eq!((said.verdict, lines), (verdict, why), "{status}");
    }
}

#[test]
fn a_job_that_failed_says_so_with_its_pods() {
    let failed = json!({"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "too often"});
    let mut pod = pod("a", &json!({"state": {"terminated": {"exitCode": 2}}}));
    pod["status"]["phase"] = "Failed".into();
    let job = json!({"metadata": {"uid": "set-1"}, "spec": {}, "status": {"conditions": [failed]}});
    let said = kind("Job", job, vec![pod]);
    assert_eq!(said.verdict, Verdict::Troubled);
    assert_eq!(
        said.why,
        [
            "pod a: the container main ended with code 2",
            "it failed for good (BackoffLimitExceeded): too often",
        ]
    );
    let running = json!({"metadata": {}, "spec": {"completions": 3}, "status": {"active": 1, "succeeded": 2}});
    let said = kind("Job", running, vec![]);
    assert_eq!(said.why, ["1 pod at work, 2 of 3 succeeded, 0 failed"]);
}

#[test]
fn a_service_says_who_is_missing_behind_it() {
    use Verdict::{OnItsWay, Troubled, Well};
    let service =
        |spec: Value| json!({"metadata": {"namespace": "shop", "name": "web"}, "spec": spec});
    let selects = || service(json!({"selector": {"app": "web"}}));
    let slice = |ready: bool| {
        json!({"kind": "EndpointSlice",
            "metadata": {"namespace": "shop", "labels": {"kubernetes.io/service-name": "web"}},
            "endpoints": [{"addresses": ["127.1.1.1"], "conditions": {"ready": ready}}]})
    };
    #[rustfmt::skip]
    let table = [
        (selects(), vec![slice(true)], Well, ""),
        (selects(), vec![], Troubled, "nobody answers behind it: no pod has the labels app=web"),
        (selects(), vec![slice(false), crashing("a")], Troubled, "nobody answers behind it: of 1 pod with the labels app=web none is ready"),
        (selects(), vec![well("a")], OnItsWay, "nobody answers behind it: of 1 pod with the labels app=web none is ready"),
        (service(json!({})), vec![], Troubled, "it has no selector, and nobody has written endpoints for it"),
        (service(json!({"type": "ExternalName"})), vec![], Well, ""),
        (json!({"metadata": {"namespace": "default", "name": "kubernetes"}, "spec": {}}), vec![], Well, ""),
    ];
    for (service, around, verdict, why) in table {
        let said = kind("Service", service.clone(), around);
        let last = said.why.last().map_or("", String::as_str);
        assert_eq!((said.verdict, last), (verdict, why), "{service}");
    }
    let mut old = event("AddressNotServed", "2026-01-01T11:00:00Z", 1);
    old.message = Some("127.1.128.5:81 is not served".into());
    let mut told = event("AddressNotServed", NOW, 1);
    told.message = Some("127.1.128.5:80 is not served; use the node port 30080".into());
    for (weight, verdict) in [("Warning", Troubled), ("Normal", Well)] {
        told.type_ = Some(weight.into());
        let said = explain(&Facts {
            kind: "Service".into(),
            around: vec![slice(true)].into(),
            events: vec![told.clone(), old.clone()],
            ..facts(Some(selects()))
        });
        assert_eq!(said.verdict, verdict);
        assert_eq!(
            said.why,
            ["127.1.128.5:80 is not served; use the node port 30080"]
        );
    }
}

#[test]
fn a_claim_says_what_it_waits_for() {
    let claim = |class: Value| json!({"metadata": {}, "spec": {"storageClassName": class}, "status": {"phase": "Pending"}});
    let class = |mode: &str, default: &str| {
        json!({"kind": "StorageClass", "provisioner": "disks", "volumeBindingMode": mode,
            "metadata": {"name": "fast", "annotations": {"storageclass.kubernetes.io/is-default-class": default}}})
    };
    let bound = json!({"metadata": {}, "status": {"phase": "Bound"}});
    #[rustfmt::skip]
    let table = [
        (bound, vec![], ""),
        (claim(Value::Null), vec![class("Immediate", "false")], "it names no class of storage, and none is the default"),
        (claim(Value::Null), vec![class("Immediate", "true")], "it waits for disks to make its volume"),
        (claim("slow".into()), vec![class("Immediate", "true")], "there is no class of storage slow"),
        (claim("fast".into()), vec![class("WaitForFirstConsumer", "")], "its volume is made once a pod that uses it has a node"),
        (claim("".into()), vec![], "it waits for a volume without a class that fits, and there is none"),
    ];
    for (claim, around, why) in table {
        let said = kind("PersistentVolumeClaim", claim.clone(), around);
        assert_eq!(said.why.first().map_or("", String::as_str), why, "{claim}");
    }
}

#[test]
fn an_operation_names_its_step() {
    let status =
        json!({"phase": "Running", "step": "pour", "progress": "1/3", "message": "not hot"});
    let object = serde_json::to_value(operation("tea", NOW, &status)).unwrap();
    let said = kind("Operation", object, vec![]);
    assert_eq!(said.verdict, Verdict::OnItsWay);
    assert_eq!(
        said.why,
        [
            "it is at its step pour",
            "the operation tea (roll out) goes on, 1/3 steps done: not hot"
        ]
    );
}
