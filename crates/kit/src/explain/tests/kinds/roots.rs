//! What is at the root of it, and what may not be seen.

use super::*;

#[test]
fn a_volume_that_cannot_be_mounted_is_trouble_wherever_it_is_told() {
    let waiting = pod(
        "a",
        &json!({"state": {"waiting": {"reason": "ContainerCreating"}}}),
    );
    let mut told = event("FailedMount", NOW, 1);
    told.message = Some("configmap \"menu\" not found".into());
    let cause = "the container main cannot be made: configmap \"menu\" not found";
    let said = explain(&Facts {
        kind: "Pod".into(),
        events: vec![told.clone()],
        ..facts(Some(waiting.clone()))
    });
    assert_eq!(
        (said.verdict, &*said.why),
        (Verdict::Troubled, &[cause.to_owned()][..])
    );
    assert!(said.advice[0].starts_with("Make what is named"), "{said}");
    assert_eq!(said.seen, [""; 0], "it is said already");

    let object = &mut told.involved_object;
    object.kind = Some("Pod".into());
    object.namespace = Some("shop".into());
    object.name = Some("a".into());
    let mut elsewhere = told.clone();
    elsewhere.involved_object.name = Some("b".into());
    let status = json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3});
    for (event, verdict) in [(told, Verdict::Troubled), (elsewhere, Verdict::OnItsWay)] {
        let said = explain(&Facts {
            kind: "Deployment".into(),
            around: vec![set(), waiting.clone()].into(),
            nearby: vec![event].into(),
            ..facts(Some(deployment(&status)))
        });
        assert_eq!(said.verdict, verdict, "{said}");
        let root = said.why[0].ends_with(cause);
        assert_eq!(root, verdict == Verdict::Troubled, "{said}");
        assert_eq!(said.why[1], "0 of 3 pods are ready");
    }
}

#[test]
fn pods_that_cannot_be_made_are_the_cause() {
    let status = json!({"observedGeneration": 2, "conditions": [condition("ReplicaFailure", "True", "exceeded quota")]});
    let said = kind("Deployment", deployment(&status), vec![]);
    assert_eq!(said.verdict, Verdict::Troubled);
    assert_eq!(said.why[0], "its pods cannot be made: exceeded quota");
}

#[test]
fn the_worst_of_the_pods_comes_first() {
    let begins = pod(
        "a",
        &json!({"state": {"waiting": {"reason": "ContainerCreating"}}}),
    );
    let status = json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3});
    let around = vec![set(), begins, crashing("b")];
    let said = kind("Deployment", deployment(&status), around);
    assert_eq!(said.why[0], format!("pod b: {CRASHING}"));
    assert_eq!(said.why[1], "pod a: the container main is being made ready");
}

#[test]
fn an_image_of_a_table_leads_to_the_table_and_no_registry() {
    let waits = |message: &str| {
        pod(
            "a",
            &json!({"state": {"waiting": {"reason": "ErrImagePull", "message": message}}}),
        )
    };
    let table = kind("Pod", waits("not in the table of --images"), vec![]);
    assert!(table.advice[0].contains("docs/node.md"), "{table}");
    let registry = kind("Pod", waits("not found"), vec![]);
    assert!(
        registry.advice[0].contains("may be read from here"),
        "{registry}"
    );
}

#[test]
fn what_may_not_be_read_is_not_taken_for_missing() {
    let hidden = |kind: &str, object: Value, hidden: &[&str]| {
        explain(&Facts {
            kind: kind.into(),
            hidden: hidden.iter().map(ToString::to_string).collect(),
            ..facts(Some(object))
        })
    };
    let service = json!({"metadata": {"namespace": "shop", "name": "web"}, "spec": {"selector": {"app": "web"}}});
    let short = deployment(&json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3}));
    let claim = json!({"metadata": {}, "spec": {"storageClassName": "fast"}, "status": {}});
    #[rustfmt::skip]
    let table = [
        ("Service", service.clone(), &["Pod"][..], "nobody answers behind it; whether there are pods with the labels app=web cannot be told: you may not read Pods"),
        ("Service", service, &["EndpointSlice"], "who answers behind it cannot be told: you may not read EndpointSlices"),
        ("Deployment", short.clone(), &["Pod"], "what its pods do cannot be told: you may not read Pods"),
        ("Deployment", short, &["ReplicaSet"], "what its pods do cannot be told: you may not read ReplicaSets"),
        ("PersistentVolumeClaim", claim, &["StorageClass"], "it waits for its volume; why cannot be told: you may not read StorageClasses"),
    ];
    for (kind, object, kinds, why) in table {
        let said = hidden(kind, object, kinds);
        assert_eq!(said.why[0], why);
        let unseen = format!("\nUnseen   {}: you may not read them", kinds[0]);
        assert!(said.to_string().contains(&unseen), "{said}");
    }
    let well = hidden("ConfigMap", json!({"metadata": {}}), &["Event"]);
    assert!(well.headline.ends_with("as far as may be seen"), "{well}");
    let well = hidden("Pod", self::well("a"), &["StorageClass"]);
    assert_eq!(well.to_string(), "Pod shop/web is as it should be");
}

#[test]
fn a_claim_that_waits_in_vain_is_the_root_of_it() {
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
            "pod a: its claim data: there is no class of storage slow",
        ),
        (
            "fast",
            "pod a: the container main cannot be made: claim data is not bound",
        ),
    ] {
        let around = vec![set(), waiting.clone(), claim(chosen), class.clone()];
        let said = kind("Deployment", deployment(&status), around);
        assert_eq!((said.verdict, &*said.why[0]), (Verdict::Troubled, root));
    }
}

#[test]
fn a_probe_that_fails_is_why_a_container_is_not_ready() {
    let unready = |name| pod(name, &json!({"state": {"running": {}}}));
    let told = |pod: &str, container: &str| {
        let mut told = event("Unhealthy", NOW, 1);
        told.message = Some(format!("probe of {pod} refused"));
        let object = &mut told.involved_object;
        object.kind = Some("Pod".into());
        object.namespace = Some("shop".into());
        object.name = Some(pod.into());
        object.field_path = Some(format!("spec.containers{{{container}}}"));
        told
    };
    let status = json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3});
    for (container, root) in [
        ("main", "runs and is not ready: probe of a refused"),
        ("other", "runs and is not ready"),
    ] {
        let said = explain(&Facts {
            kind: "Deployment".into(),
            around: vec![set(), unready("a"), unready("b")].into(),
            nearby: vec![told("a", container), told("b", container)].into(),
            ..facts(Some(deployment(&status)))
        });
        // What differs keeps nobody apart.
        let expected = format!("pod a (and 1 other likewise): the container main {root}");
        assert_eq!(said.why[0], expected);
    }
}
