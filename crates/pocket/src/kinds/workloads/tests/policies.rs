use super::{
    super::super::{NameRule, testing::OtherObjects},
    *,
};

#[test]
fn a_budget_has_one_side() {
    let budget = |spec: Value| json!({"metadata": {"name": "x"}, "spec": spec});
    for (spec, errors) in [
        (json!({"minAvailable": "50%"}), None),
        (json!({"maxUnavailable": 0}), None),
        (
            json!({"minAvailable": 1, "maxUnavailable": 1}),
            Some(
                "spec: Invalid value: {\"maxUnavailable\":1,\"minAvailable\":1}: minAvailable and maxUnavailable cannot be both set",
            ),
        ),
        (
            json!({"minAvailable": "101%"}),
            Some("spec.minAvailable: Invalid value: \"101%\": must not be greater than 100%"),
        ),
        (
            json!({"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}),
            Some(
                "spec.selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
            ),
        ),
        (
            json!({"maxUnavailable": -1}),
            Some("spec.maxUnavailable: Invalid value: -1: must be greater than or equal to 0"),
        ),
    ] {
        assert_eq!(
            refusals("poddisruptionbudgets", &budget(spec)),
            Vec::from_iter(errors)
        );
    }
    assert!(!rules("poddisruptionbudgets").traits.unconditional_update);
}

fn autoscaler(spec: Value) -> Value {
    let mut all = json!({"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}});
    merge(&mut all, spec);
    json!({"metadata": {"name": "x"}, "spec": all})
}

#[test]
fn what_the_api_always_shows_is_always_there() {
    let named = json!({"metadata": {"name": "x"}});
    assert_eq!(created("poddisruptionbudgets", &named)["spec"], json!({}));
    assert_eq!(created("controllerrevisions", &named)["revision"], json!(0));
    assert_eq!(created("priorityclasses", &named)["value"], json!(0));
    let policy = json!({"podSelector": {}, "policyTypes": ["Ingress"]});
    assert_eq!(created("networkpolicies", &named)["spec"], policy);
}

#[test]
fn behaviour_of_an_autoscaler_is_filled_in_both_directions() {
    let object = created(
        "horizontalpodautoscalers",
        &autoscaler(json!({"behavior": {}})),
    );
    let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
    let pods = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
    let expected = json!({
        "scaleUp": {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [pods, percent]},
        "scaleDown": {"selectPolicy": "Max", "policies": [percent]},
    });
    assert_eq!(object["spec"]["behavior"], expected);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn autoscalers_refuse_what_makes_no_sense() {
    let metric = |metric: Value| json!({"metrics": [metric]});
    for (spec, errors) in [
        (json!({"minReplicas": 3}), None),
        (
            metric(
                json!({"type": "Pods", "pods": {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "1"}}}),
            ),
            None,
        ),
        (
            json!({"minReplicas": 4}),
            Some(
                "spec.maxReplicas: Invalid value: 3: must be greater than or equal to `minReplicas`",
            ),
        ),
        (
            json!({"minReplicas": -1}),
            Some("spec.minReplicas: Invalid value: -1: must be greater than or equal to 1"),
        ),
        (
            json!({"scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "v1"}}),
            Some(
                "spec.scaleTargetRef.apiVersion: Invalid value: \"v1\": apiVersion must specify API group",
            ),
        ),
        (
            json!({"scaleTargetRef": {"kind": "ReplicationController", "name": "d", "apiVersion": "v1"}}),
            None,
        ),
        (
            metric(json!({"type": "Pods"})),
            Some(
                "spec.metrics[0].pods: Required value: must populate information for the given metric source",
            ),
        ),
        (
            metric(
                json!({"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}),
            ),
            Some(
                "spec.metrics[0].resource.target.averageUtilization: Required value: must set either a target raw value or a target utilization",
            ),
        ),
        (
            metric(
                json!({"type": "Pods", "pods": {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "1"}}, "resource": {}}),
            ),
            Some("spec.metrics[0].resource: Forbidden: must populate the given metric source only"),
        ),
        (
            json!({"scaleTargetRef": {"kind": "Deployment", "name": "a/b", "apiVersion": "apps/v1"}}),
            Some("spec.scaleTargetRef.name: Invalid value: \"a/b\": may not contain '/'"),
        ),
        (
            metric(json!({"type": "Weather"})),
            Some(
                "spec.metrics[0].type: Unsupported value: \"Weather\": supported values: \"ContainerResource\", \"External\", \"Object\", \"Pods\", \"Resource\"",
            ),
        ),
        (
            metric(
                json!({"type": "External", "external": {"metric": {"name": "m"}, "target": {"type": "Value", "value": "1", "averageValue": "1"}}}),
            ),
            Some(
                "spec.metrics[0].external.target.value: Forbidden: may not set both a target value for metric and a per-pod target",
            ),
        ),
        (
            json!({"behavior": {"scaleUp": {"policies": [{"type": "Pods", "value": 0, "periodSeconds": 5}]}}}),
            Some(
                "spec.behavior.scaleUp.policies[0].value: Invalid value: 0: must be greater than zero",
            ),
        ),
        (
            json!({"behavior": {"scaleDown": {"stabilizationWindowSeconds": 3601}}}),
            Some(
                "spec.behavior.scaleDown.stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal to 3600",
            ),
        ),
    ] {
        let found = refusals("horizontalpodautoscalers", &autoscaler(spec));
        assert_eq!(found, Vec::from_iter(errors));
    }
}

#[test]
fn what_is_only_stored_says_so() {
    for kind in workload_kinds() {
        let warned = !(kind.rules.warnings)(&json!({})).is_empty();
        let stored_only = matches!(
            kind.plural,
            "horizontalpodautoscalers" | "ingresses" | "networkpolicies"
        );
        assert_eq!(warned, stored_only, "{}", kind.plural);
    }
}

#[test]
fn priority_classes_keep_their_value_and_leave_the_top_to_the_system() {
    let class = |name: &str, value: i64| json!({"metadata": {"name": name}, "value": value});
    assert_eq!(
        refusals("priorityclasses", &class("x", 1_000_000_000)),
        [""; 0]
    );
    assert_eq!(
        refusals(
            "priorityclasses",
            &class("system-node-critical", 2_000_001_000)
        ),
        [""; 0]
    );
    assert_eq!(
        refusals("priorityclasses", &class("x", 1_000_000_001)),
        ["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"]
    );
    let errors = refusals("priorityclasses", &class("system-node-critical", 7));
    assert!(
        errors[0].ends_with("value of system-node-critical PriorityClass must be 2000001000"),
        "{errors:?}"
    );
    let errors = refusals("priorityclasses", &class("system-mine", 1));
    assert!(
        errors[0]
            .starts_with("metadata.name: Forbidden: priority class names with 'system-' prefix")
    );
    let errors = refusals_of_change("priorityclasses", &class("x", 1), |object| {
        object["value"] = json!(2);
        object["preemptionPolicy"] = json!("Never");
    });
    assert_eq!(
        errors,
        [
            "value: Forbidden: may not be changed in an update.",
            "preemptionPolicy: Invalid value: \"Never\": field is immutable",
        ]
    );
}

#[test]
fn one_priority_class_is_the_default() {
    let class = |name: &str| json!({"metadata": {"name": name}, "globalDefault": true});
    let cluster = OtherObjects {
        objects: vec![("priorityclasses", class("first"))],
        ..OtherObjects::default()
    };
    let admit = rules("priorityclasses").admit.unwrap();
    assert!(admit(&mut class("first"), None, &cluster).is_ok());
    assert!(admit(&mut json!({"metadata": {"name": "plain"}}), None, &cluster).is_ok());
    let error = admit(&mut class("second"), None, &cluster).unwrap_err();
    assert_eq!(
        error.to_string(),
        "priorityclasses.scheduling.k8s.io \"second\" is forbidden: PriorityClass first is already marked as default. Only one default can exist"
    );
}

#[test]
fn storage_classes_stay_what_they_are() {
    let sent =
        json!({"metadata": {"name": "x"}, "provisioner": "acme.io/disk", "parameters": {"a": "b"}});
    assert_eq!(refusals("storageclasses", &sent), [""; 0]);
    let errors = refusals_of_change("storageclasses", &sent, |object| {
        object["allowVolumeExpansion"] = json!(true);
    });
    assert_eq!(errors, [""; 0]);
    let errors = refusals_of_change("storageclasses", &sent, |object| {
        object["parameters"] = json!({});
        object["provisioner"] = json!("other");
        object["reclaimPolicy"] = json!("Retain");
        object["volumeBindingMode"] = json!("WaitForFirstConsumer");
    });
    assert_eq!(
        errors,
        [
            "parameters: Forbidden: updates to parameters are forbidden.",
            "provisioner: Forbidden: updates to provisioner are forbidden.",
            "reclaimPolicy: Forbidden: updates to reclaimPolicy are forbidden.",
            "volumeBindingMode: Invalid value: \"WaitForFirstConsumer\": field is immutable",
        ]
    );
}

#[test]
fn parameters_and_topologies_of_storage_classes_are_judged() {
    let class = |key: &str, value: Value| {
        let mut object = json!({"metadata": {"name": "x"}, "provisioner": "p"});
        object[key] = value;
        refusals("storageclasses", &object)
    };
    let many: serde_json::Map<String, Value> =
        (0..513).map(|i| (i.to_string(), json!(""))).collect();
    assert_eq!(class("parameters", many.into()).len(), 1);
    let large = "x".repeat(256 * 1024);
    assert_eq!(
        class("parameters", json!({"k": large})),
        ["parameters: Too long: may not be more than 262144 bytes"]
    );
    let zones = json!({"key": "zone", "values": ["a"]});
    assert_eq!(
        class(
            "allowedTopologies",
            json!([{"matchLabelExpressions": [zones, zones]}])
        ),
        ["allowedTopologies[0].matchLabelExpressions[1].key: Duplicate value: \"zone\""]
    );
    assert_eq!(
        class("reclaimPolicy", json!("Recycle")),
        ["reclaimPolicy: Unsupported value: \"Recycle\": supported values: \"Delete\", \"Retain\""]
    );
}

#[test]
fn the_handler_of_a_runtime_class_stays() {
    let sent = json!({"metadata": {"name": "x"}, "handler": "runc"});
    assert_eq!(refusals("runtimeclasses", &sent), [""; 0]);
    let errors = refusals_of_change("runtimeclasses", &sent, |object| {
        object["handler"] = json!("kata");
    });
    assert_eq!(
        errors,
        ["handler: Invalid value: \"kata\": field is immutable"]
    );
    assert!(rules("runtimeclasses").traits.create_on_update);
}

#[test]
fn the_rest_machine_treats_each_kind_as_the_real_one_does() {
    for kind in workload_kinds() {
        let traits = kind.rules.traits;
        let plural = kind.plural;
        let of_rbac = kind.group == "rbac.authorization.k8s.io";
        let webhooks = kind.group == "admissionregistration.k8s.io";
        let counted = matches!(
            kind.group,
            "apps" | "batch" | "policy" | "networking.k8s.io"
        ) && plural != "controllerrevisions";
        let has_status = counted && !matches!(plural, "ingressclasses" | "networkpolicies")
            || plural == "horizontalpodautoscalers";
        assert_eq!(traits.generation, counted || webhooks, "{plural}");
        assert_eq!(traits.status, has_status, "{plural}");
        assert_eq!(
            traits.create_on_update,
            of_rbac || plural == "runtimeclasses",
            "{plural}"
        );
        assert_eq!(
            traits.delete_returns_object,
            plural == "storageclasses",
            "{plural}"
        );
        assert_eq!(traits.orphan_by_default, plural == "jobs", "{plural}");
        let conditional = webhooks || matches!(plural, "poddisruptionbudgets" | "runtimeclasses");
        assert_eq!(traits.unconditional_update, !conditional, "{plural}");
        let name = match plural {
            "statefulsets" => NameRule::Label,
            _ if of_rbac => NameRule::PathSegment,
            _ => NameRule::Subdomain,
        };
        assert_eq!(traits.name, name, "{plural}");
    }
}
