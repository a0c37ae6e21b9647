use super::*;
use crate::kinds::testing::{OtherObjects, created, defaulted, errors, update_errors};

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

fn cluster(account: Value, classes: Vec<Value>) -> OtherObjects {
    let mut account = account;
    account["metadata"] = json!({"name": "default", "namespace": "n"});
    let classes = classes.into_iter().map(|class| ("priorityclasses", class));
    OtherObjects {
        objects: std::iter::once(("serviceaccounts", account))
            .chain(classes)
            .collect(),
        ..OtherObjects::default()
    }
}

/// The pod with its service account.
fn accounted(mut pod: Value, others: &OtherObjects) -> Result<Value, String> {
    use_account(&mut pod, others, 7).map(|()| pod)
}

fn admitted(mut pod: Value, others: &OtherObjects) -> Result<Value, String> {
    use_priority(&mut pod, others)
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
    let of = |given: &Value| {
        let mut pod = pod(json!({ "tolerations": given }));
        tolerate(&mut pod);
        pod["spec"]["tolerations"].clone()
    };
    let usual = json!({"key": "node.kubernetes.io/unreachable", "operator": "Exists", "tolerationSeconds": 300, "effect": "NoExecute"});
    assert_eq!(of(&own), json!([own[0], usual]));
    let all = json!([{"operator": "Exists"}]);
    assert_eq!(of(&all), all);
}

#[test]
fn the_token_is_mounted_unless_pod_or_account_declines() {
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
        let stored = accounted(pod(choice.clone()), others).unwrap();
        assert_eq!(has_token(&stored), expected, "{choice}");
        let mounts = &stored["spec"]["containers"][0];
        assert_eq!(mounts.get("volumeMounts").is_some(), expected, "{choice}");
    }
}

#[test]
fn a_pod_needs_its_account_and_takes_its_pull_secrets() {
    let others = cluster(json!({"imagePullSecrets": [{"name": "s"}]}), vec![]);
    let stored = accounted(pod(json!({})), &others).unwrap();
    assert_eq!(stored["spec"]["imagePullSecrets"], json!([{"name": "s"}]));
    assert_eq!(stored["spec"]["serviceAccount"], "default");
    let refused = accounted(pod(json!({"serviceAccountName": "other"})), &others).unwrap_err();
    assert_eq!(
        refused,
        "error looking up service account n/other: serviceaccount \"other\" not found"
    );
    let refused = accounted(pod(json!({"serviceAccountName": "a/b"})), &others).unwrap_err();
    assert_eq!(
        refused,
        "error looking up service account n/a/b: invalid resource name \"a/b\": [may not contain '/']"
    );
}

#[test]
fn a_volume_by_the_name_of_ours_is_mounted_in_its_place() {
    let others = cluster(json!({}), vec![]);
    let own = json!({"name": "kube-api-access-own", "emptyDir": {}});
    let stored = accounted(pod(json!({ "volumes": [own] })), &others).unwrap();
    assert_eq!(stored["spec"]["volumes"], json!([own]));
    let mount = &stored["spec"]["containers"][0]["volumeMounts"][0];
    assert_eq!(mount["name"], "kube-api-access-own");
    assert_eq!(mount["readOnly"], true);
}

#[test]
fn a_pod_without_an_account_has_no_tokens() {
    let sources = json!([{"secret": {"name": "s"}}, {"serviceAccountToken": {"path": "t"}}]);
    let volumes =
        json!([{"name": "e", "emptyDir": {}}, {"name": "v", "projected": {"sources": sources}}]);
    for (account, expected) in [
        ("robot", &[][..]),
        (
            "",
            &[
                "spec.volumes[1].projected.sources[1].serviceAccountToken: Forbidden: must not be specified when serviceAccountName is not set",
            ],
        ),
    ] {
        let pod = pod(json!({"serviceAccountName": account, "volumes": volumes}));
        assert_eq!(errors(&RULES, &pod), expected, "{account:?}");
    }
}

#[test]
fn a_token_is_mounted_only_where_nothing_else_is() {
    let others = cluster(json!({}), vec![]);
    let taken =
        json!([{"name": "e", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}]);
    let taken = json!({"name": "c", "image": "i", "volumeMounts": taken});
    let volumes = json!([{"name": "e", "emptyDir": {}}]);
    let full = pod(json!({"containers": [taken], "volumes": volumes}));
    let stored = accounted(full.clone(), &others).unwrap();
    assert_eq!(stored["spec"]["volumes"], volumes);
    let mut with_room = full;
    with_room["spec"]["initContainers"] = json!([{"name": "d", "image": "i"}]);
    let stored = accounted(with_room, &others).unwrap();
    let made = stored["spec"]["volumes"][1]["name"].as_str().unwrap();
    assert!(made.starts_with("kube-api-access-"), "{made}");
    assert_eq!(made.len(), "kube-api-access-".len() + 5);
    let init = &stored["spec"]["initContainers"][0]["volumeMounts"];
    assert_eq!(init[0]["name"], made);
    let other = &stored["spec"]["containers"][0]["volumeMounts"];
    assert_eq!(other.as_array().unwrap().len(), 1);
}

#[test]
fn a_mirror_pod_gets_and_names_nothing_that_is_kept_here() {
    let others = cluster(json!({}), vec![]);
    let variable = json!([{"name": "a", "valueFrom": {"secretKeyRef": {"name": "x", "key": "y"}}}]);
    for (more, refusal) in [
        (json!({}), ""),
        (
            json!({"serviceAccountName": "x"}),
            "reference service accounts",
        ),
        (
            json!({"volumes": [{"name": "v", "secret": {"secretName": "s"}}]}),
            "reference secrets",
        ),
        (
            json!({"containers": [{"name": "c", "image": "i", "env": variable}]}),
            "reference secrets",
        ),
        (
            json!({"volumes": [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]}),
            "use ServiceAccountToken volume projections",
        ),
    ] {
        let mut mirror = pod(more);
        mirror["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "x"});
        match accounted(mirror.clone(), &others) {
            Ok(stored) => assert_eq!((refusal, stored), ("", mirror)),
            Err(why) => assert_eq!(why, format!("a mirror pod may not {refusal}")),
        }
    }
}

#[test]
fn an_account_may_keep_its_pods_from_the_secrets_of_others() {
    let mut others = cluster(json!({}), vec![]);
    let account = &mut others.objects[0].1;
    account["metadata"]["annotations"] = json!({"kubernetes.io/enforce-mountable-secrets": "true"});
    account["secrets"] = json!([{"name": "own"}]);
    account["imagePullSecrets"] = json!([{"name": "reg"}]);
    let volume =
        |secret: &str| json!({"volumes": [{"name": "v", "secret": {"secretName": secret}}]});
    let with = |more: Value| {
        let mut container = json!({"name": "c", "image": "i"});
        for (key, value) in more.as_object().unwrap() {
            container[key] = value.clone();
        }
        container
    };
    let variable = with(
        json!({"env": [{"name": "a", "valueFrom": {"secretKeyRef": {"name": "x", "key": "y"}}}]}),
    );
    let all = with(json!({"envFrom": [{"secretRef": {"name": "x"}}]}));
    let because = "is not allowed because service account default does not reference that";
    for (more, refusal) in [
        (volume("own"), String::new()),
        (
            volume("s"),
            format!("volume with secret.secretName=\"s\" {because} secret"),
        ),
        (
            json!({ "initContainers": [variable] }),
            format!(
                "init container c with envVar a referencing secret.secretName=\"x\" {because} secret"
            ),
        ),
        (
            json!({ "containers": [all] }),
            format!(
                "container c with envFrom referencing secret.secretName=\"x\" {because} secret"
            ),
        ),
        (
            json!({"imagePullSecrets": [{"name": "x"}]}),
            format!("imagePullSecrets[0].name=\"x\" {because} imagePullSecret"),
        ),
    ] {
        let errors = accounted(pod(more), &others).err().unwrap_or_default();
        assert_eq!(errors, refusal);
    }
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
    let early = pod(json!({"ephemeralContainers": [{"name": "e", "image": "i"}]}));
    let mut problems = Problems::new();
    (RULES.validate_create)(&early, &mut problems);
    let errors = problems.to_string();
    assert_eq!(
        errors,
        "spec.ephemeralContainers: Forbidden: cannot be set on create"
    );
}

#[test]
fn what_may_change_in_a_pod() {
    let mut old = pod(json!({"activeDeadlineSeconds": 10, "schedulingGates": [{"name": "g"}]}));
    tolerate(&mut old);
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
            "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'h'",
        ),
        (
            "/spec/schedulingGates",
            json!([{"name": "h"}, {"name": "h"}]),
            "spec.schedulingGates[1].name: Forbidden: only deletion is allowed, but found new scheduling gate 'h'",
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
        let errors = update_errors(&RULES, &new, &old);
        assert_eq!(
            errors.is_empty(),
            expected.is_empty(),
            "{pointer}: {errors:?}"
        );
        assert!(
            errors.iter().all(|text| text.starts_with(expected)),
            "{pointer}: {errors:?}"
        );
    }
}

#[test]
fn images_are_judged_once_more_until_other_containers_are_met() {
    let old = pod(json!({"initContainers": [{"name": "i", "image": "i"}]}));
    let mut new = old.clone();
    new["spec"]["containers"][0]["image"] = json!("");
    new["spec"]["initContainers"] = json!([]);
    assert_eq!(
        update_errors(&RULES, &new, &old),
        [
            "spec.containers[0].image: Required value",
            "spec.initContainers: Forbidden: pod updates may not add or remove containers",
        ]
    );
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
    status::validate(&new, &old, &mut problems);
    assert_eq!(problems.len(), 1);
    assert_eq!(defaulted(&RULES, &old), old);
}

#[test]
fn less_than_no_time_to_end_is_a_second() {
    let sent = json!({"spec": {"terminationGracePeriodSeconds": -5}});
    let spec = &defaulted(&RULES, &sent)["spec"];
    assert_eq!(spec["terminationGracePeriodSeconds"], 1);
}
