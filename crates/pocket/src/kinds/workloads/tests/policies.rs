use super::{super::super::testing::Others, *};

#[test]
fn a_budget_has_one_side() {
    let budget = |spec: Value| json!({"metadata": {"name": "x"}, "spec": spec});
    for (spec, told) in [
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
            json!({"maxUnavailable": -1}),
            Some("spec.maxUnavailable: Invalid value: -1: must be greater than or equal to 0"),
        ),
    ] {
        assert_eq!(
            refusals("poddisruptionbudgets", &budget(spec)),
            Vec::from_iter(told)
        );
    }
    assert!(!rules("poddisruptionbudgets").traits.unconditional_update);
}

fn autoscaler(spec: Value) -> Value {
    let mut all = json!({"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d"}});
    merge(&mut all, spec);
    json!({"metadata": {"name": "x"}, "spec": all})
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
fn autoscalers_refuse_what_makes_no_sense() {
    let metric = |metric: Value| json!({"metrics": [metric]});
    for (spec, told) in [
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
            json!({"minReplicas": 0}),
            Some("spec.minReplicas: Invalid value: 0: must be greater than or equal to 1"),
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
                "spec.metrics[0].resource.target.averageUtilization: Required value: must set either a target averageUtilization or a target averageValue",
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
        assert_eq!(found, Vec::from_iter(told));
    }
}

#[test]
fn rules_of_roles_name_resources_or_urls() {
    let role = |rule: Value| json!({"metadata": {"name": "a:b"}, "rules": [rule]});
    let get = json!(["get"]);
    let pods = json!({"verbs": get, "apiGroups": [""], "resources": ["pods"]});
    let urls = json!({"verbs": get, "nonResourceURLs": ["/healthz"]});
    let both = json!({"verbs": get, "nonResourceURLs": ["/a"], "resources": ["pods"]});
    let mixed = "rules[0].nonResourceURLs: Invalid value: [\"/a\"]: rules cannot apply to both regular resources and non-resource URLs";
    assert_eq!(refusals("roles", &role(pods)), [""; 0]);
    assert_eq!(refusals("clusterroles", &role(urls.clone())), [""; 0]);
    assert_eq!(
        refusals("roles", &role(urls)),
        [
            "rules[0].nonResourceURLs: Invalid value: [\"/healthz\"]: namespaced rules cannot apply to non-resource URLs"
        ]
    );
    assert_eq!(refusals("clusterroles", &role(both)), [mixed]);
    assert_eq!(
        refusals("clusterroles", &role(json!({"verbs": get}))),
        [
            "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
            "rules[0].resources: Required value: resource rules must supply at least one resource",
        ]
    );
}

#[test]
fn a_role_without_rules_shows_null() {
    let object = created("roles", &json!({"metadata": {"name": "x"}}));
    assert_eq!(object.get("rules"), Some(&Value::Null));
}

fn binding(kind: &str, subject: Value) -> Value {
    json!({
        "metadata": {"name": "x"},
        "roleRef": {"kind": kind, "name": "view"},
        "subjects": [subject],
    })
}

#[test]
fn bindings_refuse_strange_roles_and_subjects() {
    let user = json!({"kind": "User", "name": "u"});
    let account = json!({"kind": "ServiceAccount", "name": "s"});
    for (plural, binding, told) in [
        ("rolebindings", binding("Role", account.clone()), None),
        (
            "clusterrolebindings",
            binding("ClusterRole", user.clone()),
            None,
        ),
        (
            "clusterrolebindings",
            binding("Role", user),
            Some("roleRef.kind: Unsupported value: \"Role\": supported values: \"ClusterRole\""),
        ),
        (
            "clusterrolebindings",
            binding("ClusterRole", account),
            Some("subjects[0].namespace: Required value"),
        ),
        (
            "rolebindings",
            binding("Role", json!({"kind": "Robot", "name": "r"})),
            Some(
                "subjects[0].kind: Unsupported value: \"Robot\": supported values: \"ServiceAccount\", \"User\", \"Group\"",
            ),
        ),
        (
            "rolebindings",
            binding(
                "Role",
                json!({"kind": "Group", "name": "g", "apiGroup": "x"}),
            ),
            Some(
                "subjects[0].apiGroup: Unsupported value: \"x\": supported values: \"rbac.authorization.k8s.io\"",
            ),
        ),
    ] {
        assert_eq!(refusals(plural, &binding), Vec::from_iter(told));
    }
}

#[test]
fn a_binding_keeps_its_role() {
    for plural in ["rolebindings", "clusterrolebindings"] {
        let sent = binding("ClusterRole", json!({"kind": "User", "name": "u"}));
        let told = refusals_of_change(plural, &sent, |object| {
            object["roleRef"]["name"] = json!("admin");
        });
        assert_eq!(told.len(), 1);
        assert!(told[0].starts_with("roleRef: Invalid value: "), "{told:?}");
        assert!(told[0].ends_with(": cannot change roleRef"), "{told:?}");
    }
}

#[test]
fn what_is_only_stored_says_so() {
    for kind in workload_kinds() {
        let warned = !(kind.rules.warnings)(&json!({})).is_empty();
        let stored_only = matches!(
            kind.plural,
            "horizontalpodautoscalers"
                | "ingresses"
                | "networkpolicies"
                | "roles"
                | "clusterroles"
                | "rolebindings"
                | "clusterrolebindings"
                | "validatingwebhookconfigurations"
                | "mutatingwebhookconfigurations"
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
    let told = refusals("priorityclasses", &class("system-mine", 1));
    assert!(
        told[0].starts_with("metadata.name: Forbidden: priority class names with 'system-' prefix")
    );
    let told = refusals_of_change("priorityclasses", &class("x", 1), |object| {
        object["value"] = json!(2);
        object["preemptionPolicy"] = json!("Never");
    });
    assert_eq!(
        told,
        [
            "value: Forbidden: may not be changed in an update.",
            "preemptionPolicy: Invalid value: \"Never\": field is immutable",
        ]
    );
}

#[test]
fn one_priority_class_is_the_default() {
    let class = |name: &str| json!({"metadata": {"name": name}, "globalDefault": true});
    let cluster = Others {
        objects: vec![("priorityclasses", class("first"))],
        ..Others::default()
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
    let told = refusals_of_change("storageclasses", &sent, |object| {
        object["allowVolumeExpansion"] = json!(true);
    });
    assert_eq!(told, [""; 0]);
    let told = refusals_of_change("storageclasses", &sent, |object| {
        object["parameters"] = json!({});
        object["provisioner"] = json!("other");
        object["reclaimPolicy"] = json!("Retain");
        object["volumeBindingMode"] = json!("WaitForFirstConsumer");
    });
    assert_eq!(
        told,
        [
            "parameters: Forbidden: updates to parameters are forbidden.",
            "provisioner: Forbidden: updates to provisioner are forbidden.",
            "reclaimPolicy: Forbidden: updates to reclaimPolicy are forbidden.",
            "volumeBindingMode: Invalid value: \"WaitForFirstConsumer\": field is immutable",
        ]
    );
}

#[test]
fn the_handler_of_a_runtime_class_stays() {
    let sent = json!({"metadata": {"name": "x"}, "handler": "runc"});
    assert_eq!(refusals("runtimeclasses", &sent), [""; 0]);
    let told = refusals_of_change("runtimeclasses", &sent, |object| {
        object["handler"] = json!("kata")
    });
    assert_eq!(
        told,
        ["handler: Invalid value: \"kata\": field is immutable"]
    );
    assert!(rules("runtimeclasses").traits.create_on_update);
}

fn webhook(over: Value) -> Value {
    let mut all = json!({
        "name": "a.b.c",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"url": "https://x.y/z"},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods"]}],
    });
    merge(&mut all, over);
    json!({"metadata": {"name": "x"}, "webhooks": [all]})
}

#[test]
fn webhooks_get_the_defaults_of_their_kind() {
    let service = json!({"clientConfig": {"service": {"name": "s", "namespace": "n"}}});
    let object = created("mutatingwebhookconfigurations", &webhook(service));
    let webhook = &object["webhooks"][0];
    assert_eq!(webhook["reinvocationPolicy"], json!("Never"));
    assert_eq!(webhook["clientConfig"]["service"]["port"], json!(443));
}

#[test]
fn webhooks_refuse_what_makes_no_sense() {
    let client = |client: Value| json!({"clientConfig": client});
    let rule = |key: &str, value: Value| {
        let mut rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]});
        rule[key] = value;
        json!({"rules": [rule]})
    };
    for (over, told) in [
        (json!({}), None),
        (
            rule("resources", json!(["pods", "pods/status", "deployments/*"])),
            None,
        ),
        (
            json!({"name": "a.b"}),
            Some(
                "name: Invalid value: \"a.b\": should be a domain with at least three segments separated by dots",
            ),
        ),
        (
            client(json!({})),
            Some("clientConfig: Required value: exactly one of url or service is required"),
        ),
        (
            client(json!({"url": "https://x", "service": {"name": "s", "namespace": "n"}})),
            Some("clientConfig: Required value: exactly one of url or service is required"),
        ),
        (
            client(json!({"url": "http://x.y"})),
            Some(
                "clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; desired format: https://host[/path]",
            ),
        ),
        (
            client(json!({"url": "https://u@x.y"})),
            Some(
                "clientConfig.url: Invalid value: \"u\": user information is not permitted in the URL",
            ),
        ),
        (
            client(json!({"url": "https://x.y#f"})),
            Some("clientConfig.url: Invalid value: \"f\": fragments are not permitted in the URL"),
        ),
        (
            client(json!({"service": {"name": "s", "namespace": "n", "path": "x"}})),
            Some("clientConfig.service.path: Invalid value: \"x\": must start with a '/'"),
        ),
        (
            json!({"sideEffects": "Some"}),
            Some(
                "sideEffects: Unsupported value: \"Some\": supported values: \"None\", \"NoneOnDryRun\"",
            ),
        ),
        (
            json!({"timeoutSeconds": 31}),
            Some(
                "timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds",
            ),
        ),
        (
            json!({"admissionReviewVersions": ["v7"]}),
            Some(
                "admissionReviewVersions: Invalid value: [\"v7\"]: must include at least one of v1, v1beta1",
            ),
        ),
        (
            rule("operations", json!(["*", "CREATE"])),
            Some(
                "rules[0].operations: Invalid value: [\"*\",\"CREATE\"]: if '*' is present, must not specify other operations",
            ),
        ),
        (
            rule("apiGroups", json!(["*", "apps"])),
            Some(
                "rules[0].apiGroups: Invalid value: [\"*\",\"apps\"]: if '*' is present, must not specify other API groups",
            ),
        ),
        (
            rule("resources", json!([])),
            Some("rules[0].resources: Required value"),
        ),
        (
            rule("resources", json!(["pods/*", "pods/log"])),
            Some(
                "rules[0].resources[1]: Invalid value: \"pods/log\": if 'pods/*' is present, must not specify pods/log",
            ),
        ),
    ] {
        let expected = told.map(|told| format!("webhooks[0].{told}"));
        let found = refusals("validatingwebhookconfigurations", &webhook(over));
        assert_eq!(found, Vec::from_iter(expected));
    }
}

#[test]
fn webhooks_of_one_configuration_have_names_of_their_own() {
    let mut object = webhook(json!({}));
    let twin = object["webhooks"][0].clone();
    object["webhooks"] = json!([twin, twin]);
    assert_eq!(
        refusals("validatingwebhookconfigurations", &object),
        ["webhooks[1].name: Duplicate value: \"a.b.c\""]
    );
}
