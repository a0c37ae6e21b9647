use super::*;

const MISMATCH: &str = "spec.template.metadata.labels: Invalid value: {\"a\":\"b\"}: `selector` does not match template `labels`";

#[test]
fn deployments_refuse_what_makes_no_sense() {
    for (spec, errors) in [
        (
            json!({"replicas": -1}),
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            json!({"selector": {}}),
            "spec.selector: Invalid value: {}: empty selector is invalid for deployment",
        ),
        (json!({"selector": {"matchLabels": {"a": "c"}}}), MISMATCH),
        (
            json!({"template": pod_template("Never")}),
            "spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: \"Always\"",
        ),
        (
            json!({"strategy": {"type": "Recreate", "rollingUpdate": {}}}),
            "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'",
        ),
        (
            json!({"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}}}),
            "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: \"0%\": may not be 0 when `maxSurge` is 0",
        ),
        (
            json!({"strategy": {"rollingUpdate": {"maxUnavailable": "101%"}}}),
            "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: \"101%\": must not be greater than 100%",
        ),
        (
            json!({"minReadySeconds": 600}),
            "spec.progressDeadlineSeconds: Invalid value: 600: must be greater than minReadySeconds",
        ),
    ] {
        assert_eq!(refusals("deployments", &workload(spec)), [errors]);
    }
}

#[test]
fn a_selector_that_cannot_be_read_is_told_as_each_kind_tells_it() {
    let selector = json!({"matchLabels": {"a/b/c": "d"}});
    let spec = json!({
        "selector": selector,
        "template": {"metadata": {"labels": {"a/b/c": "d"}}, "spec": pod_template("Always")["spec"]},
    });
    let labels = "spec.selector.matchLabels: Invalid value: \"a/b/c\": a valid label key must";
    let template = "spec.template.labels: Invalid value: \"a/b/c\": a valid label key must";
    let whole = format!("spec.selector: Invalid value: {selector}");
    let unread = format!("{whole}: invalid label selector");
    for (plural, then) in [
        ("deployments", unread.as_str()),
        ("replicasets", &unread),
        ("statefulsets", &whole),
        ("daemonsets", template),
    ] {
        let errors = refusals(plural, &workload(spec.clone()));
        assert_eq!(errors.len(), 2, "{plural}: {errors:?}");
        assert!(errors[0].starts_with(labels), "{plural}: {errors:?}");
        assert!(errors[1].starts_with(then), "{plural}: {errors:?}");
    }
}

#[test]
fn deployments_of_all_strategies_are_accepted() {
    for spec in [
        json!({}),
        json!({"strategy": {"type": "Recreate"}}),
        json!({"strategy": {"rollingUpdate": {"maxSurge": "200%", "maxUnavailable": 0}}}),
        json!({"replicas": 0, "minReadySeconds": 5, "progressDeadlineSeconds": 6}),
        json!({"minReadySeconds": i32::MAX, "progressDeadlineSeconds": i32::MAX}),
    ] {
        assert_eq!(refusals("deployments", &workload(spec)), [""; 0]);
    }
}

#[test]
fn a_template_does_not_keep_what_is_not_switched_on() {
    let mut template = pod_template("Always");
    template["spec"]["schedulingGroup"] = json!({"podGroupName": "a"});
    let mut object = workload(json!({"template": template}));
    (rules("deployments").prepare_update)(&mut object, &Value::Null);
    assert_eq!(object["spec"]["template"], pod_template("Always"));
}

#[test]
fn a_template_is_not_judged_by_a_selector_that_cannot_be_read() {
    let mut problems = Problems::new();
    problems.required("spec.template.spec.containers", "");
    let spec = json!({"selector": {"matchLabels": {"a": "-"}}, "template": {"spec": {}}});
    crate::kinds::pod_controller::validate_selector_and_template(
        &spec,
        "Deployment",
        &mut problems,
    );
    let errors: Vec<_> = problems.iter().map(|error| error.path.as_str()).collect();
    assert_eq!(errors, ["spec.selector.matchLabels", "spec.selector"]);
}

#[test]
fn a_workload_without_selector_or_template_hears_of_both() {
    for plural in ["deployments", "replicasets", "statefulsets", "daemonsets"] {
        let errors = refusals(plural, &json!({"metadata": {"name": "x"}, "spec": {}}));
        let labels = "spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`";
        assert_eq!(errors, [labels], "{plural}");
        // The schema reports the rest, because the template is present.
        let object = created(plural, &json!({"metadata": {"name": "x"}}));
        assert!(object["spec"]["template"]["spec"].is_object(), "{plural}");
    }
}

#[test]
fn unenforced_limits_of_pods_are_warned_about() {
    let mut template = pod_template("Always");
    template["spec"]["containers"][0]["resources"] = json!({"limits": {"cpu": "1"}});
    for plural in [
        "deployments",
        "replicasets",
        "statefulsets",
        "daemonsets",
        "jobs",
    ] {
        let object = created(plural, &workload(json!({"template": template})));
        let warnings = (rules(plural).warnings)(&object);
        assert_eq!(warnings.len(), 1, "{plural}");
        assert!(
            warnings[0].starts_with("spec.template.spec: "),
            "{warnings:?}"
        );
    }
}

#[test]
fn recreate_gets_no_rolling_update() {
    let object = created(
        "deployments",
        &workload(json!({"strategy": {"type": "Recreate"}})),
    );
    assert_eq!(object["spec"]["strategy"], json!({"type": "Recreate"}));
}

#[test]
fn selectors_of_workloads_do_not_change() {
    let errors = "spec.selector: Invalid value: {\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Exists\"}]}: field is immutable";
    for plural in ["deployments", "replicasets", "daemonsets"] {
        let change = |object: &mut Value| {
            let exists = json!([{"key": "a", "operator": "Exists"}]);
            object["spec"]["selector"] = json!({"matchExpressions": exists});
        };
        assert_eq!(
            refusals_of_change(plural, &workload(json!({})), change),
            [errors]
        );
    }
}

#[test]
fn deadlines_do_not_fit_pods_that_run_forever() {
    let mut template = pod_template("Always");
    template["spec"]["activeDeadlineSeconds"] = json!(5);
    for (plural, kind) in [
        ("deployments", "ReplicaSet"),
        ("replicasets", "ReplicaSet"),
        ("statefulsets", "StatefulSet"),
        ("daemonsets", "DaemonSet"),
    ] {
        let errors = refusals(plural, &workload(json!({"template": template})));
        let expected = format!(
            "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in {kind} is not Supported"
        );
        assert_eq!(errors, [expected]);
    }
}

#[test]
fn counts_in_a_status_add_up() {
    let old = created("deployments", &workload(json!({})));
    let fine =
        json!({"replicas": 3, "readyReplicas": 2, "availableReplicas": 1, "updatedReplicas": 3});
    assert_eq!(refusals_of_status("deployments", &old, fine), [""; 0]);
    let errors = refusals_of_status(
        "deployments",
        &old,
        json!({"replicas": 1, "readyReplicas": 2}),
    );
    assert_eq!(
        errors,
        ["status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas"]
    );
    let errors = refusals_of_status(
        "deployments",
        &old,
        json!({"replicas": 2, "availableReplicas": 1}),
    );
    assert_eq!(
        errors,
        ["status.availableReplicas: Invalid value: 1: cannot be greater than readyReplicas"]
    );
}

#[test]
fn collisions_are_never_counted_down() {
    for plural in ["deployments", "statefulsets", "daemonsets"] {
        let mut old = created(plural, &workload(json!({})));
        old["status"]["collisionCount"] = json!(2);
        let errors = refusals_of_status(plural, &old, json!({"collisionCount": 1}));
        assert_eq!(
            errors,
            ["status.collisionCount: Invalid value: 1: cannot be decremented"]
        );
        assert_eq!(
            refusals_of_status(plural, &old, json!({"collisionCount": 2})),
            [""; 0]
        );
    }
}

fn claim(size: &str) -> Value {
    let spec =
        json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}});
    json!({"metadata": {"name": "v"}, "spec": spec})
}

#[test]
fn stateful_sets_let_only_some_fields_change() {
    let errors = "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
    let sent = workload(json!({"serviceName": "s", "volumeClaimTemplates": [claim("1Gi")]}));
    let mut bound_claim = claim("1Gi");
    bound_claim["status"] = json!({"phase": "Bound"});
    for (spec, refused) in [
        (json!({"replicas": 5}), false),
        (json!({"ordinals": {"start": 3}}), false),
        (json!({"updateStrategy": {"type": "OnDelete"}}), false),
        (
            json!({"revisionHistoryLimit": 1, "minReadySeconds": 4}),
            false,
        ),
        (
            json!({"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}}),
            false,
        ),
        // The status of a claim template is ignored.
        (json!({"volumeClaimTemplates": [claim("1Gi")]}), false),
        (json!({"volumeClaimTemplates": [bound_claim]}), false),
        (json!({"volumeClaimTemplates": [claim("2Gi")]}), true),
        (json!({"volumeClaimTemplates": []}), true),
        (json!({"serviceName": "t"}), true),
        (json!({"serviceName": null}), true),
        (json!({"podManagementPolicy": "Parallel"}), true),
    ] {
        let found = refusals_of_change("statefulsets", &sent, |object| {
            merge(&mut object["spec"], spec.clone());
        });
        let expected: &[&str] = if refused { &[errors] } else { &[] };
        assert_eq!(found, expected, "{spec}");
    }
}

#[test]
fn stateful_sets_refuse_what_makes_no_sense() {
    for (spec, errors) in [
        (
            json!({"updateStrategy": {"type": "OnDelete", "rollingUpdate": {"partition": 1}}}),
            "spec.updateStrategy.rollingUpdate: Invalid value: {\"partition\":1}: only allowed for updateStrategy 'RollingUpdate'",
        ),
        (
            json!({"updateStrategy": {"rollingUpdate": {"partition": -1}}}),
            "spec.updateStrategy.rollingUpdate.partition: Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            json!({"updateStrategy": {"rollingUpdate": {"maxUnavailable": 0}}}),
            "spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: 0: cannot be 0",
        ),
        (
            json!({"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Keep"}}),
            "spec.persistentVolumeClaimRetentionPolicy.whenScaled: Unsupported value: \"Keep\": supported values: \"Delete\", \"Retain\"",
        ),
        (
            json!({"ordinals": {"start": -1}}),
            "spec.ordinals.start: Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            json!({"volumeClaimTemplates": [{"spec": {}}]}),
            "spec.volumeClaimTemplates[0].metadata.name: Required value",
        ),
    ] {
        assert_eq!(refusals("statefulsets", &workload(spec)), [errors]);
    }
}

#[test]
fn pods_of_a_stateful_set_may_mount_what_it_claims_and_nothing_else() {
    let mounting = |volume: &str| {
        let mut template = pod_template("Always");
        let mounts = json!([{"name": volume, "mountPath": "/data"}]);
        template["spec"]["containers"][0]["volumeMounts"] = mounts;
        let claims = json!([claim("1Gi")]);
        workload(json!({"serviceName": "s", "template": template, "volumeClaimTemplates": claims}))
    };
    assert_eq!(refusals("statefulsets", &mounting("v")), [""; 0]);
    let errors = "spec.template.spec.containers[0].volumeMounts[0].name: Not found: \"w\"";
    assert_eq!(refusals("statefulsets", &mounting("w")), [errors]);
}

#[test]
fn daemon_sets_roll_in_one_of_two_ways() {
    for (rolling, errors) in [
        (json!({}), None),
        (json!({"maxUnavailable": 0, "maxSurge": 1}), None),
        (json!({"maxUnavailable": "100%"}), None),
        (
            json!({"maxUnavailable": 1, "maxSurge": 1}),
            Some(
                "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero",
            ),
        ),
        (
            json!({"maxUnavailable": 0, "maxSurge": 0}),
            Some(
                "spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0",
            ),
        ),
        (
            json!({"maxUnavailable": 0, "maxSurge": "101%"}),
            Some(
                "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: \"101%\": must not be greater than 100%",
            ),
        ),
    ] {
        let sent = workload(json!({"updateStrategy": {"rollingUpdate": rolling}}));
        assert_eq!(refusals("daemonsets", &sent), Vec::from_iter(errors));
    }
}

#[test]
fn the_template_generation_of_a_daemon_set_counts_changes_of_its_template() {
    let generation = |object: &Value| {
        object["metadata"]["annotations"]["deprecated.daemonset.template.generation"].clone()
    };
    let old = created("daemonsets", &workload(json!({})));
    assert_eq!(generation(&old), json!("1"));
    let same = updated("daemonsets", &old, |object| {
        object["spec"]["minReadySeconds"] = json!(3);
        object["metadata"]["annotations"] = json!(null);
    });
    assert_eq!(generation(&same), json!("1"));
    let changed = updated("daemonsets", &old, |object| {
        object["spec"]["template"]["metadata"]["labels"]["new"] = json!("label");
    });
    assert_eq!(generation(&changed), json!("2"));
}

#[test]
fn controller_revisions_keep_their_data() {
    let sent = json!({"metadata": {"name": "r"}, "revision": 1, "data": {"a": 1}});
    assert_eq!(refusals("controllerrevisions", &sent), [""; 0]);
    let errors = refusals_of_change("controllerrevisions", &sent, |object| {
        object["data"] = json!({"a": 2});
    });
    assert_eq!(
        errors,
        ["data: Invalid value: {\"a\":2}: field is immutable"]
    );
    let errors = refusals(
        "controllerrevisions",
        &json!({"metadata": {"name": "r"}, "revision": -1}),
    );
    assert_eq!(
        errors,
        [
            "data: Required value: data is mandatory",
            "revision: Invalid value: -1: must be greater than or equal to 0",
        ]
    );
}
