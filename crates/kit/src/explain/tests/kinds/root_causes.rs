//! Root causes in related objects, and kinds that may not be read.

use super::*;

#[test]
fn a_failed_mount_degrades_the_pod_and_its_deployment() {
    let waiting = pod(
        "a",
        &json!({"state": {"waiting": {"reason": "ContainerCreating"}}}),
    );
    let mut reported = event("FailedMount", NOW, 1);
    reported.message = Some("configmap \"menu\" not found".into());
    let cause = "the container main cannot be created: configmap \"menu\" not found";
    let explanation = explain(&Facts {
        kind: "Pod".into(),
        events: vec![reported.clone()],
        ..facts(Some(waiting.clone()))
    });
    assert_eq!(
        (explanation.verdict, &*explanation.why),
        (Verdict::Degraded, &[cause.to_owned()][..])
    );
    assert!(
        explanation.advice[0].starts_with("Create what is missing"),
        "{explanation}"
    );
    assert_eq!(explanation.seen, [""; 0], "the reasons contain it");

    let object = &mut reported.involved_object;
    object.kind = Some("Pod".into());
    object.namespace = Some("shop".into());
    object.name = Some("a".into());
    let mut elsewhere = reported.clone();
    elsewhere.involved_object.name = Some("b".into());
    let status = json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3});
    for (event, verdict) in [
        (reported, Verdict::Degraded),
        (elsewhere, Verdict::Progressing),
    ] {
        let explanation = explain(&Facts {
            kind: "Deployment".into(),
            related: vec![set(), waiting.clone()].into(),
            related_events: vec![event].into(),
            ..facts(Some(deployment(&status)))
        });
        assert_eq!(explanation.verdict, verdict, "{explanation}");
        let root = explanation.why[0].ends_with(cause);
        assert_eq!(root, verdict == Verdict::Degraded, "{explanation}");
        assert_eq!(explanation.why[1], "0 of 3 pods are ready");
    }
}

#[test]
fn pods_that_cannot_be_created_are_the_cause() {
    let status = json!({"observedGeneration": 2, "conditions": [condition("ReplicaFailure", "True", "exceeded quota")]});
    let explanation = kind("Deployment", deployment(&status), vec![]);
    assert_eq!(explanation.verdict, Verdict::Degraded);
    assert_eq!(
        explanation.why[0],
        "its pods cannot be created: exceeded quota"
    );
}

#[test]
fn the_worst_pod_comes_first() {
    let starting = pod(
        "a",
        &json!({"state": {"waiting": {"reason": "ContainerCreating"}}}),
    );
    let status = json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3});
    let around = vec![set(), starting, crashing("b")];
    let explanation = kind("Deployment", deployment(&status), around);
    assert_eq!(explanation.why[0], format!("pod b: {CRASHING}"));
    assert_eq!(
        explanation.why[1],
        "pod a: the container main is being created"
    );
}

#[test]
fn advice_on_images_depends_on_the_source_of_images() {
    let waits = |message: &str| {
        pod(
            "a",
            &json!({"state": {"waiting": {"reason": "ErrImagePull", "message": message}}}),
        )
    };
    let table = kind("Pod", waits("not in the table of --images"), vec![]);
    assert!(table.advice[0].contains("docs/platform/node.md"), "{table}");
    let registry = kind("Pod", waits("not found"), vec![]);
    assert!(
        registry.advice[0].contains("can be pulled from here"),
        "{registry}"
    );
}

#[test]
fn kinds_that_may_not_be_read_are_not_taken_for_missing() {
    let explain_without = |kind: &str, object: Value, unreadable: &[&str]| {
        explain(&Facts {
            kind: kind.into(),
            unreadable: unreadable.iter().map(ToString::to_string).collect(),
            ..facts(Some(object))
        })
    };
    let service = json!({"metadata": {"namespace": "shop", "name": "web"}, "spec": {"selector": {"app": "web"}}});
    let short = deployment(&json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3}));
    let claim = json!({"metadata": {}, "spec": {"storageClassName": "fast"}, "status": {}});
    #[rustfmt::skip]
    let table = [
        ("Service", service.clone(), &["Pod"][..], "it has no ready endpoints; whether pods have the labels app=web is unknown: you may not read Pods"),
        ("Service", service, &["EndpointSlice"], "its endpoints are unknown: you may not read EndpointSlices"),
        ("Deployment", short.clone(), &["Pod"], "the state of its pods is unknown: you may not read Pods"),
        ("Deployment", short, &["ReplicaSet"], "the state of its pods is unknown: you may not read ReplicaSets"),
        ("PersistentVolumeClaim", claim, &["StorageClass"], "it waits for its volume; the reason is unknown: you may not read StorageClasses"),
    ];
    for (kind, object, kinds, why) in table {
        let explanation = explain_without(kind, object, kinds);
        assert_eq!(explanation.why[0], why);
        let hidden_line = format!("\nHidden   {}: you may not read them", kinds[0]);
        assert!(
            explanation.to_string().contains(&hidden_line),
            "{explanation}"
        );
    }
    let healthy = explain_without("ConfigMap", json!({"metadata": {}}), &["Event"]);
    assert!(
        healthy.headline.ends_with("as far as you may read"),
        "{healthy}"
    );
    let healthy = explain_without("Pod", self::healthy("a"), &["StorageClass"]);
    assert_eq!(healthy.to_string(), "Pod shop/web is healthy");
}

#[test]
fn a_claim_that_cannot_be_bound_is_the_root_cause() {
    let mut waiting = pod(
        "a",
        &json!({"state": {"waiting": {"reason": "ContainerCreating", "message": "claim data is not bound"}}}),
    );
    waiting["status"]["phase"] = "Pending".into();
    waiting["spec"]["volumes"] =
        json!([{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]);
    let claim = |class: &str| {
        json!({"kind": "PersistentVolumeClaim", "metadata": {"namespace": "shop", "name": "data"},
            "spec": {"storageClassName": class}, "status": {"phase": "Pending"}})
    };
    let class =
        json!({"kind": "StorageClass", "metadata": {"name": "fast"}, "provisioner": "disks"});
    let status = json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3});
    for (chosen, root) in [
        (
            "slow",
            "pod a: its claim data: there is no storage class slow",
        ),
        (
            "fast",
            "pod a: the container main cannot be created: claim data is not bound",
        ),
    ] {
        let around = vec![set(), waiting.clone(), claim(chosen), class.clone()];
        let explanation = kind("Deployment", deployment(&status), around);
        assert_eq!(
            (explanation.verdict, &*explanation.why[0]),
            (Verdict::Degraded, root)
        );
    }
}

#[test]
fn a_failed_probe_explains_why_a_container_is_not_ready() {
    let unready = |name| pod(name, &json!({"state": {"running": {}}}));
    let reported = |pod: &str, container: &str| {
        let mut reported = event("Unhealthy", NOW, 1);
        reported.message = Some(format!("probe of {pod} refused"));
        let object = &mut reported.involved_object;
        object.kind = Some("Pod".into());
        object.namespace = Some("shop".into());
        object.name = Some(pod.into());
        object.field_path = Some(format!("spec.containers{{{container}}}"));
        reported
    };
    let status = json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3});
    for (container, root) in [
        ("main", "is running but not ready: probe of a refused"),
        ("other", "is running but not ready"),
    ] {
        let explanation = explain(&Facts {
            kind: "Deployment".into(),
            related: vec![set(), unready("a"), unready("b")].into(),
            related_events: vec![reported("a", container), reported("b", container)].into(),
            ..facts(Some(deployment(&status)))
        });
        // Messages of probes differ, and the pods are grouped all the same.
        let expected = format!("pod a (and 1 other): the container main {root}");
        assert_eq!(explanation.why[0], expected);
    }
}
