use super::*;

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

fn binding(kind: &str, subject: &Value) -> Value {
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
    for (plural, binding, errors) in [
        ("rolebindings", binding("Role", &account), None),
        ("clusterrolebindings", binding("ClusterRole", &user), None),
        (
            "clusterrolebindings",
            binding("Role", &user),
            Some("roleRef.kind: Unsupported value: \"Role\": supported values: \"ClusterRole\""),
        ),
        (
            "clusterrolebindings",
            binding("ClusterRole", &account),
            Some("subjects[0].namespace: Required value"),
        ),
        (
            "rolebindings",
            binding("Role", &json!({"kind": "Robot", "name": "r"})),
            Some(
                "subjects[0].kind: Unsupported value: \"Robot\": supported values: \"ServiceAccount\", \"User\", \"Group\"",
            ),
        ),
        (
            "rolebindings",
            binding(
                "Role",
                &json!({"kind": "Group", "name": "g", "apiGroup": "x"}),
            ),
            Some(
                "subjects[0].apiGroup: Unsupported value: \"x\": supported values: \"rbac.authorization.k8s.io\"",
            ),
        ),
    ] {
        assert_eq!(refusals(plural, &binding), Vec::from_iter(errors));
    }
}

#[test]
fn a_binding_keeps_its_role() {
    for plural in ["rolebindings", "clusterrolebindings"] {
        let sent = binding("ClusterRole", &json!({"kind": "User", "name": "u"}));
        let errors = refusals_of_change(plural, &sent, |object| {
            object["roleRef"]["name"] = json!("admin");
        });
        assert_eq!(errors.len(), 1);
        assert!(
            errors[0].starts_with("roleRef: Invalid value: "),
            "{errors:?}"
        );
        assert!(errors[0].ends_with(": cannot change roleRef"), "{errors:?}");
    }
}

#[test]
fn aggregated_roles_select_something() {
    let role =
        |aggregation: Value| json!({"metadata": {"name": "x"}, "aggregationRule": aggregation});
    let selector = json!({"matchLabels": {"a": "b"}});
    assert_eq!(
        refusals(
            "clusterroles",
            &role(json!({"clusterRoleSelectors": [selector]}))
        ),
        [""; 0]
    );
    assert_eq!(
        refusals("clusterroles", &role(json!({}))),
        [
            "aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if aggregationRule is non-nil"
        ]
    );
}

#[test]
fn users_and_groups_belong_to_the_group_of_rbac() {
    for (kind, group) in [
        ("User", json!("rbac.authorization.k8s.io")),
        ("Group", json!("rbac.authorization.k8s.io")),
        ("ServiceAccount", json!(null)),
    ] {
        let sent = binding("Role", &json!({"kind": kind, "name": "n"}));
        let object = created("rolebindings", &sent);
        assert_eq!(object["subjects"][0]["apiGroup"], group, "{kind}");
    }
}
