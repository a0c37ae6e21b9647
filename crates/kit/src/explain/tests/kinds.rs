//! The built-in kinds.

mod root_causes;

use super::*;

fn kind(kind: &str, object: Value, related: Vec<Value>) -> Explanation {
    explain(&Facts {
        kind: kind.into(),
        related: related.into(),
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

const CRASHING: &str = "the container main keeps crashing (4 restarts): it exited with code 127 30s ago (its command was not found)";

fn healthy(name: &str) -> Value {
    pod(name, &json!({"ready": true, "state": {"running": {}}}))
}

#[test]
fn a_pod_names_the_container_with_a_problem() {
    use Verdict::{Degraded, Healthy, Progressing};
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
        (healthy("a"), Healthy, ""),
        (crashing("a"), Degraded, CRASHING),
        (waits("ErrImagePull", "no such image"), Degraded, "the image shop:1 of the container main cannot be pulled: no such image"),
        (waits("CreateContainerConfigError", "secret \"key\" not found"), Degraded, "the container main cannot be created: secret \"key\" not found"),
        (waits("ErrImagePull", "image \"shop:1\" is not in the table"), Degraded, "the image of the container main cannot be pulled: image \"shop:1\" is not in the table"),
        (waits("ContainerCreating", "volume \"c\": secret \"key\" not found"), Degraded, "the container main cannot be created: volume \"c\": secret \"key\" not found"),
        (waits("ContainerCreating", ""), Progressing, "the container main is being created"),
        (waits("RunContainerError", ""), Degraded, "the container main cannot be started (RunContainerError): RunContainerError"),
        (pod("a", &json!({"state": {"running": {}}})), Progressing, "the container main is running but not ready"),
        (ended("Failed", 3, "Error"), Degraded, "the container main exited with code 3"),
        (ended("Failed", 137, "OOMKilled"), Degraded, "the container main exited with code 137 (it exceeded its memory limit)"),
        (ended("Succeeded", 0, "Completed"), Healthy, "it has completed"),
        (ended("Running", 0, "Completed"), Healthy, ""),
        (unscheduled, Degraded, "it cannot be scheduled: 0/1 nodes have room"),
        (nowhere, Progressing, "it waits to be scheduled"),
        (placed, Progressing, "the node here has not started its containers yet"),
    ];
    for (pod, verdict, why) in table {
        let explanation = kind("Pod", pod.clone(), vec![]);
        let first = explanation.why.first().map_or("", String::as_str);
        assert_eq!((explanation.verdict, first), (verdict, why), "{pod:#}");
    }
    let advice = kind("Pod", crashing("a"), vec![]).advice;
    assert_eq!(
        advice,
        ["Read its log: kubectl logs -n shop a -c main --previous"]
    );
}

#[test]
fn a_pod_that_cannot_be_scheduled_gets_advice_for_each_cause() {
    let (open, room) = ("kubectl uncordon", "Free resources");
    #[rustfmt::skip]
    let table: [(&str, &[&str]); 7] = [
        ("", &[room]),
        ("0/1 nodes are available: 1 Insufficient cpu.", &[room]),
        ("1 node(s) were unschedulable.", &[open]),
        ("0/2 nodes are available: 2 node(s) were unschedulable.", &[open]),
        ("0/1 nodes are available: 1 node(s) were unschedulable. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.", &[open]),
        ("0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable.", &[open, room]),
        ("0/2 nodes are available: 1 node(s) had untolerated taint {a: b}, 1 node(s) were unschedulable.", &[open, room]),
    ];
    for (message, wanted) in table {
        let pod = json!({"metadata": {}, "spec": {}, "status": {"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "message": message},
        ]}});
        let advice = kind("Pod", pod, vec![]).advice;
        assert_eq!(advice.len(), wanted.len(), "{message}: {advice:?}");
        let fit = |(advice, wanted): (&String, &&str)| advice.contains(wanted);
        assert!(advice.iter().zip(wanted).all(fit), "{message}: {advice:?}");
    }
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
fn a_deployment_groups_equal_problems_of_its_pods() {
    let status = json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 1,
        "conditions": [condition("Available", "False", "too few")]});
    let mut foreign = crashing("other");
    foreign["metadata"]["ownerReferences"][0]["uid"] = "set-2".into();
    let mut later = crashing("c");
    later["status"]["containerStatuses"][0]["lastState"]["terminated"]["finishedAt"] = NOW.into();
    later["status"]["containerStatuses"][0]["restartCount"] = 5.into();
    let around = vec![set(), crashing("a"), healthy("b"), later, foreign];
    let explanation = kind("Deployment", deployment(&status), around);
    assert_eq!(explanation.verdict, Verdict::Degraded);
    assert_eq!(
        explanation.why,
        [
            format!("pod a (and 1 other): {CRASHING}"),
            "1 of 3 pods are ready".to_owned(),
        ]
    );
}

#[test]
fn the_verdict_of_a_deployment_follows_from_its_counts() {
    let counts = |updated: i64, there: i64, ready: i64, available: i64| {
        json!({"observedGeneration": 2, "updatedReplicas": updated, "replicas": there,
            "readyReplicas": ready, "availableReplicas": available})
    };
    let mut stuck = counts(1, 3, 3, 3);
    stuck["conditions"] = json!([condition("Progressing", "False", "deadline")]);
    #[rustfmt::skip]
    let table = [
        (counts(3, 3, 3, 3), Verdict::Healthy, vec![]),
        (counts(1, 4, 3, 3), Verdict::Progressing, vec!["1 of 3 pods are up to date", "4 pods exist, and 3 are desired"]),
        (counts(3, 3, 3, 2), Verdict::Progressing, vec!["2 of 3 pods are available"]),
        (json!({}), Verdict::Progressing, vec!["no controller has observed it yet"]),
        (stuck, Verdict::Degraded, vec!["1 of 3 pods are up to date", "Progressing is False (Because) for 4m: deadline"]),
    ];
    for (status, verdict, why) in table {
        let around = vec![set(), healthy("a")];
        let explanation = kind("Deployment", deployment(&status), around);
        let lines: Vec<_> = explanation.why.iter().map(String::as_str).collect();
        assert_eq!((explanation.verdict, lines), (verdict, why), "{status}");
    }
}

#[test]
fn a_failed_job_names_the_problems_of_its_pods() {
    let failed = json!({"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "too often"});
    let mut pod = pod("a", &json!({"state": {"terminated": {"exitCode": 2}}}));
    pod["status"]["phase"] = "Failed".into();
    let job = json!({"metadata": {"uid": "set-1"}, "spec": {}, "status": {"conditions": [failed]}});
    let explanation = kind("Job", job, vec![pod]);
    assert_eq!(explanation.verdict, Verdict::Degraded);
    assert_eq!(
        explanation.why,
        [
            "pod a: the container main exited with code 2",
            "it failed (BackoffLimitExceeded): too often",
        ]
    );
    let running = json!({"metadata": {}, "spec": {"completions": 3}, "status": {"active": 1, "succeeded": 2}});
    let explanation = kind("Job", running, vec![]);
    assert_eq!(
        explanation.why,
        ["1 pod active, 2 of 3 succeeded, 0 failed"]
    );
}

#[test]
fn a_service_without_ready_endpoints_names_the_cause() {
    use Verdict::{Degraded, Healthy, Progressing};
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
        (selects(), vec![slice(true)], Healthy, ""),
        (selects(), vec![], Degraded, "it has no ready endpoints: no pod has the labels app=web"),
        (selects(), vec![slice(false), crashing("a")], Degraded, "it has no ready endpoints: of 1 pod with the labels app=web none is ready"),
        (selects(), vec![healthy("a")], Progressing, "it has no ready endpoints: of 1 pod with the labels app=web none is ready"),
        (service(json!({})), vec![], Degraded, "it has no selector and no endpoints"),
        (service(json!({"type": "ExternalName"})), vec![], Healthy, ""),
        (json!({"metadata": {"namespace": "default", "name": "kubernetes"}, "spec": {}}), vec![], Healthy, ""),
    ];
    for (service, around, verdict, why) in table {
        let explanation = kind("Service", service.clone(), around);
        let last = explanation.why.last().map_or("", String::as_str);
        assert_eq!((explanation.verdict, last), (verdict, why), "{service}");
    }
    let mut old = event("AddressNotServed", "2026-01-01T11:00:00Z", 1);
    old.message = Some("127.1.128.5:81 is not served".into());
    let mut reported = event("AddressNotServed", NOW, 1);
    reported.message = Some("127.1.128.5:80 is not served; use the node port 30080".into());
    for (severity, verdict) in [("Warning", Degraded), ("Normal", Healthy)] {
        reported.type_ = Some(severity.into());
        let explanation = explain(&Facts {
            kind: "Service".into(),
            related: vec![slice(true)].into(),
            events: vec![reported.clone(), old.clone()],
            ..facts(Some(selects()))
        });
        assert_eq!(explanation.verdict, verdict);
        assert_eq!(
            explanation.why,
            ["127.1.128.5:80 is not served; use the node port 30080"]
        );
    }
}

#[test]
fn a_claim_names_what_it_waits_for() {
    let claim = |class: Value| json!({"metadata": {}, "spec": {"storageClassName": class}, "status": {"phase": "Pending"}});
    let class = |mode: &str, default: &str| {
        json!({"kind": "StorageClass", "provisioner": "disks", "volumeBindingMode": mode,
            "metadata": {"name": "fast", "annotations": {"storageclass.kubernetes.io/is-default-class": default}}})
    };
    let bound = json!({"metadata": {}, "status": {"phase": "Bound"}});
    #[rustfmt::skip]
    let table = [
        (bound, vec![], ""),
        (claim(Value::Null), vec![class("Immediate", "false")], "it names no storage class, and there is no default"),
        (claim(Value::Null), vec![class("Immediate", "true")], "it waits for disks to provision its volume"),
        (claim("slow".into()), vec![class("Immediate", "true")], "there is no storage class slow"),
        (claim("fast".into()), vec![class("WaitForFirstConsumer", "")], "its volume is provisioned once a pod that uses it is scheduled"),
        (claim("".into()), vec![], "it waits for a matching volume without a storage class, and there is none"),
    ];
    for (claim, around, why) in table {
        let explanation = kind("PersistentVolumeClaim", claim.clone(), around);
        assert_eq!(
            explanation.why.first().map_or("", String::as_str),
            why,
            "{claim}"
        );
    }
}

#[test]
fn an_operation_names_its_step() {
    let status =
        json!({"phase": "Running", "step": "pour", "progress": "1/3", "message": "not hot"});
    let object = serde_json::to_value(operation("tea", NOW, &status)).unwrap();
    let explanation = kind("Operation", object, vec![]);
    assert_eq!(explanation.verdict, Verdict::Progressing);
    assert_eq!(
        explanation.why,
        [
            "its current step is pour",
            "the operation tea (roll out) is running, 1/3 steps done: not hot"
        ]
    );
}
