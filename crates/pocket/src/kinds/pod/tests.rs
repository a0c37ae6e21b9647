use super::*;
use crate::kinds::testing::{Others, created, defaulted, told_of_update};

#[expect(
    clippy::needless_pass_by_value,
    reason = "cases read better with the literal in place"
)]
fn pod(more: Value) -> Value {
    let mut spec = json!({"containers": [{"name": "c", "image": "i:1"}]});
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    created(
        &RULES,
        &json!({"metadata": {"name": "p", "namespace": "n"}, "spec": spec}),
    )
}

fn cluster(account: Value, classes: Vec<Value>) -> Others {
    let mut account = account;
    account["metadata"] = json!({"name": "default", "namespace": "n"});
    let classes = classes.into_iter().map(|class| ("priorityclasses", class));
    Others {
        objects: std::iter::once(("serviceaccounts", account))
            .chain(classes)
            .collect(),
        ..Others::default()
    }
}

fn admitted(mut pod: Value, others: &Others) -> Result<Value, String> {
    let admit = RULES.admit.unwrap();
    use_priority(&mut pod, others)
        .and_then(|()| admit(&mut pod, None, others))
        .map(|()| pod)
        .map_err(|error| error.message)
}

#[test]
fn limits_are_requests_where_none_are_named() {
    let resources = json!({"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}});
    let pod = pod(json!({"containers": [{"name": "c", "image": "i", "resources": resources}]}));
    let stored = &pod["spec"]["containers"][0]["resources"]["requests"];
    assert_eq!(*stored, json!({"cpu": "1", "memory": "1Gi"}));
    assert_eq!(pod["status"]["qosClass"], "Burstable");
}

#[test]
fn ports_of_a_pod_on_the_host_network_are_host_ports() {
    let containers = json!([{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}]);
    let on_host = pod(json!({"hostNetwork": true, "containers": containers}));
    assert_eq!(on_host["spec"]["containers"][0]["ports"][0]["hostPort"], 80);
    let apart = pod(json!({ "containers": containers }));
    assert!(
        apart["spec"]["containers"][0]["ports"][0]
            .get("hostPort")
            .is_none()
    );
}

#[test]
fn a_pod_that_tolerates_silence_its_own_way_is_left_alone() {
    let own = json!([{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "tolerationSeconds": 5, "effect": "NoExecute"}]);
    let tolerations = pod(json!({ "tolerations": own }))["spec"]["tolerations"].clone();
    assert_eq!(tolerations.as_array().unwrap().len(), 2);
    assert_eq!(tolerations[0]["tolerationSeconds"], 5);
    let all = json!([{"operator": "Exists"}]);
    assert_eq!(
        pod(json!({ "tolerations": all }))["spec"]["tolerations"],
        all
    );
}

#[test]
fn the_token_is_mounted_unless_somebody_declines() {
    let has_token = |pod: &Value| pod["spec"].get("volumes").is_some();
    let plain = cluster(json!({}), vec![]);
    let declining = cluster(json!({"automountServiceAccountToken": false}), vec![]);
    let no = json!({"automountServiceAccountToken": false});
    let yes = json!({"automountServiceAccountToken": true});
    for (choice, others, expected) in [
        (json!({}), &plain, true),
        (no, &plain, false),
        (json!({}), &declining, false),
        (yes, &declining, true),
    ] {
        let stored = admitted(pod(choice.clone()), others).unwrap();
        assert_eq!(has_token(&stored), expected, "{choice}");
        let mounts = &stored["spec"]["containers"][0];
        assert_eq!(mounts.get("volumeMounts").is_some(), expected, "{choice}");
    }
}

#[test]
fn a_pod_needs_its_account_and_takes_its_pull_secrets() {
    let others = cluster(json!({"imagePullSecrets": [{"name": "s"}]}), vec![]);
    let stored = admitted(pod(json!({})), &others).unwrap();
    assert_eq!(stored["spec"]["imagePullSecrets"], json!([{"name": "s"}]));
    assert_eq!(stored["spec"]["serviceAccount"], "default");
    let refused = admitted(pod(json!({"serviceAccountName": "other"})), &others).unwrap_err();
    assert_eq!(
        refused,
        "pods \"p\" is forbidden: error looking up service account n/other: serviceaccount \"other\" not found"
    );
}

#[test]
fn priority_comes_from_the_class() {
    let class = |name: &str, value: i64, global: bool| json!({"metadata": {"name": name}, "value": value, "globalDefault": global, "preemptionPolicy": "Never"});
    let others = cluster(
        json!({}),
        vec![class("high", 9, false), class("usual", 3, true)],
    );
    let of = |pod: Value| {
        let spec = admitted(pod, &others)?["spec"].clone();
        Ok((
            spec["priority"].as_i64().unwrap(),
            spec["preemptionPolicy"].clone(),
        ))
    };
    assert_eq!(
        of(pod(json!({"priorityClassName": "high"}))),
        Ok((9, json!("Never")))
    );
    assert_eq!(of(pod(json!({}))), Ok((3, json!("Never"))));
    let critical = of(pod(json!({"priorityClassName": "system-node-critical"})));
    assert_eq!(critical, Ok((2_000_001_000, json!("PreemptLowerPriority"))));
    let unknown: Result<_, String> = of(pod(json!({"priorityClassName": "none"})));
    assert!(
        unknown
            .unwrap_err()
            .ends_with("no PriorityClass with name none was found")
    );
    assert!(
        of(pod(json!({"priority": 5})))
            .unwrap_err()
            .contains("must not be provided in pod spec")
    );
}

#[test]
fn ephemeral_containers_come_later() {
    let others = cluster(json!({}), vec![]);
    let early = pod(json!({"ephemeralContainers": [{"name": "e", "image": "i"}]}));
    assert!(
        admitted(early, &others)
            .unwrap_err()
            .contains("spec.ephemeralContainers: Forbidden")
    );
}

#[test]
fn what_may_change_in_a_pod() {
    let old = pod(json!({"activeDeadlineSeconds": 10, "schedulingGates": [{"name": "g"}]}));
    let fixed = "spec: Forbidden: pod updates may not change fields";
    let longer = json!([{"key": "x", "operator": "Exists"}]);
    let mut more = old["spec"]["tolerations"].as_array().unwrap().clone();
    more.extend(longer.as_array().unwrap().clone());
    for (pointer, value, expected) in [
        ("/spec/containers/0/image", json!("i:2"), ""),
        ("/spec/tolerations", json!(more), ""),
        ("/spec/tolerations/0/tolerationSeconds", json!(1), ""),
        ("/spec/activeDeadlineSeconds", json!(5), ""),
        ("/spec/schedulingGates", json!([]), ""),
        (
            "/spec/tolerations",
            json!([]),
            "spec.tolerations: Forbidden: existing toleration",
        ),
        (
            "/spec/activeDeadlineSeconds",
            json!(11),
            "spec.activeDeadlineSeconds: Invalid value: 11: must be less than or equal to previous value",
        ),
        (
            "/spec/activeDeadlineSeconds",
            json!(null),
            "spec.activeDeadlineSeconds: Invalid value: null: must not update",
        ),
        (
            "/spec/schedulingGates/0/name",
            json!("h"),
            "spec.schedulingGates[0]: Forbidden: only deletion is allowed",
        ),
        (
            "/spec/containers",
            json!([]),
            "spec.containers: Forbidden: pod updates may not add or remove containers",
        ),
        ("/spec/containers/0/name", json!("d"), fixed),
        ("/spec/restartPolicy", json!("Never"), fixed),
        ("/spec/terminationGracePeriodSeconds", json!(1), fixed),
    ] {
        let mut new = old.clone();
        *new.pointer_mut(pointer).unwrap() = value;
        let told = told_of_update(&RULES, &new, &old);
        assert_eq!(told.is_empty(), expected.is_empty(), "{pointer}: {told:?}");
        assert!(
            told.iter().all(|text| text.starts_with(expected)),
            "{pointer}: {told:?}"
        );
    }
}

#[test]
fn only_a_running_pod_needs_time_to_stop() {
    let running = json!({"spec": {"nodeName": "n", "terminationGracePeriodSeconds": 30}, "status": {"phase": "Running"}});
    assert_eq!(grace(&running, None), 30);
    assert_eq!(grace(&running, Some(5)), 5);
    assert_eq!(grace(&running, Some(0)), 0);
    assert_eq!(grace(&running, Some(-1)), 1);
    for (pointer, value) in [
        ("/spec/nodeName", json!("")),
        ("/status/phase", json!("Failed")),
        ("/status/phase", json!("Succeeded")),
    ] {
        let mut pod = running.clone();
        *pod.pointer_mut(pointer).unwrap() = value;
        assert_eq!(grace(&pod, None), 0, "{pointer}");
        assert_eq!(grace(&pod, Some(9)), 0, "{pointer}");
    }
}

#[test]
fn the_service_class_is_settled_on_create() {
    let old = pod(json!({}));
    let mut new = old.clone();
    new["status"]["qosClass"] = json!("Guaranteed");
    let mut problems = Problems::new();
    validate_status(&new, &old, &mut problems);
    assert_eq!(problems.len(), 1);
    assert_eq!(defaulted(&RULES, &old), old);
}
