//! Privilege escalation: a user cannot grant permissions that they do not hold.

use super::client::{RBAC, TestClient, user};
use serde_json::{Value, json};

/// A user who may write roles and bindings, and otherwise little.
async fn writer() -> (TestClient, TestClient) {
    let admin = TestClient::new().await;
    let rules = json!([
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles", "clusterrolebindings", "roles", "rolebindings"], "verbs": ["create", "update", "patch", "get"]},
        {"apiGroups": [""], "resources": ["pods", "services/*"], "verbs": ["get", "list"]},
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["one"], "verbs": ["get"]},
        {"nonResourceURLs": ["/foo/*"], "verbs": ["get"]},
    ]);
    admin.cluster_role("writer", rules).await;
    admin.bind("writer", "writer", user("alice")).await;
    let alice = admin.user("alice", &["devs", "system:authenticated"]);
    (admin, alice)
}

/// The lines of missing permissions, after the sentence about them.
fn lines(message: &str, what: &str) -> Vec<String> {
    let told = format!(
        "{what} is forbidden: user \"alice\" (groups=[\"devs\" \"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n"
    );
    let rest = message.strip_prefix(&told);
    let rest = rest.unwrap_or_else(|| panic!("{message}\nis not\n{told}"));
    rest.lines().map(str::to_owned).collect()
}

#[tokio::test(start_paused = true)]
async fn a_role_with_more_than_its_writer_has_is_refused_line_by_line() {
    let (_, alice) = writer().await;
    let path = format!("{RBAC}/clusterroles");
    for (rules, missing) in [
        (
            json!([{"apiGroups": [""], "resources": ["pods", "secrets"], "verbs": ["get", "delete"]}]),
            vec![
                r#"{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}"#,
                r#"{APIGroups:[""], Resources:["secrets"], Verbs:["get" "delete"]}"#,
            ],
        ),
        (
            json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]),
            vec![r#"{APIGroups:["*"], Resources:["*"], Verbs:["*"]}"#],
        ),
        (
            json!([{"apiGroups": ["", "apps"], "resources": ["secrets"], "resourceNames": ["one", "two"], "verbs": ["get", "list"]}]),
            vec![
                r#"{APIGroups:[""], Resources:["secrets"], ResourceNames:["one"], Verbs:["list"]}"#,
                r#"{APIGroups:[""], Resources:["secrets"], ResourceNames:["two"], Verbs:["get" "list"]}"#,
                r#"{APIGroups:["apps"], Resources:["secrets"], ResourceNames:["one"], Verbs:["get" "list"]}"#,
                r#"{APIGroups:["apps"], Resources:["secrets"], ResourceNames:["two"], Verbs:["get" "list"]}"#,
            ],
        ),
        (
            json!([{"nonResourceURLs": ["/foo/bar", "/bar", "*"], "verbs": ["get", "post"]}]),
            vec![
                r#"{NonResourceURLs:["*"], Verbs:["get"]}"#,
                r#"{NonResourceURLs:["*"], Verbs:["post"]}"#,
                r#"{NonResourceURLs:["/bar"], Verbs:["get"]}"#,
                r#"{NonResourceURLs:["/bar"], Verbs:["post"]}"#,
                r#"{NonResourceURLs:["/foo/bar"], Verbs:["post"]}"#,
            ],
        ),
        (
            json!([
                {"apiGroups": [""], "resources": ["services/status", "services"], "verbs": ["get"]},
                {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]},
                {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["list"]},
                {"nonResourceURLs": ["/z"], "verbs": ["get"]},
            ]),
            vec![
                r#"{APIGroups:[""], Resources:["services"], Verbs:["get"]}"#,
                r#"{APIGroups:[""], Resources:["services/status"], Verbs:["get"]}"#,
                r#"{APIGroups:["apps"], Resources:["deployments"], Verbs:["get" "list"]}"#,
                r#"{NonResourceURLs:["/z"], Verbs:["get"]}"#,
            ],
        ),
    ] {
        let role = json!({"metadata": {"name": "e"}, "rules": rules});
        let (code, message) = alice.refused("POST", &path, role).await;
        assert_eq!(code, 403, "{message}");
        let what = "clusterroles.rbac.authorization.k8s.io \"e\"";
        assert_eq!(lines(&message, what), missing);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_held_may_be_given_away() {
    let (_, alice) = writer().await;
    for rules in [
        json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]),
        json!([{"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["one"], "verbs": ["get"]}]),
        json!([{"nonResourceURLs": ["/foo/bar"], "verbs": ["get"]}]),
        json!([]),
    ] {
        let role = json!({"metadata": {"generateName": "held-"}, "rules": rules});
        let role = alice.make(&format!("{RBAC}/clusterroles"), role).await;
        let name = role["metadata"]["name"].as_str().unwrap();
        alice.bind(name, name, user("q")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_counts_as_giving_away_unless_it_is_for_garbage_collection() {
    let (admin, alice) = writer().await;
    let path = format!("{RBAC}/clusterroles");
    let all = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    let big = json!({"metadata": {"name": "big", "finalizers": ["a.b/c"]}, "rules": all});
    admin.make(&path, big).await;
    let big = format!("{path}/big");
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    assert_eq!(alice.refused("PATCH", &big, labels).await.0, 403);
    let finalizers = json!({"metadata": {"finalizers": null}});
    assert_eq!(alice.request("PATCH", &big, finalizers).await.0, 200);
    let role = json!({"metadata": {"name": "newone"}, "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["watch"]}]});
    let roles = format!("{RBAC}/namespaces/default/roles/newone");
    assert_eq!(alice.refused("PUT", &roles, role).await.0, 403);
}

#[tokio::test(start_paused = true)]
async fn a_role_that_gathers_is_for_those_who_may_do_everything() {
    let (admin, alice) = writer().await;
    let path = format!("{RBAC}/clusterroles");
    let role = json!({"metadata": {"name": "agg"}, "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}});
    let refused = alice.refused("POST", &path, role.clone()).await;
    let told = "clusterroles.rbac.authorization.k8s.io \"agg\" is forbidden: must have cluster-admin privileges to use the aggregationRule";
    assert_eq!(refused, (403, told.to_owned()));
    admin.make(&path, role).await;
    for change in [
        json!({"metadata": {"labels": {"x": "y"}}}),
        json!({"aggregationRule": null}),
    ] {
        let refused = alice.refused("PATCH", &format!("{path}/agg"), change).await;
        assert_eq!(refused, (403, told.to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_binding_gives_away_what_its_role_has() {
    let (_, alice) = writer().await;
    let binding = |role: &str| {
        json!({
            "metadata": {"name": "c"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        })
    };
    let everything = vec![
        r#"{APIGroups:["*"], Resources:["*"], Verbs:["*"]}"#,
        r#"{NonResourceURLs:["*"], Verbs:["*"]}"#,
    ];
    for (path, what) in [
        ("clusterrolebindings", "clusterrolebindings"),
        ("namespaces/default/rolebindings", "rolebindings"),
    ] {
        let path = format!("{RBAC}/{path}");
        let (code, message) = alice.refused("POST", &path, binding("cluster-admin")).await;
        assert_eq!(code, 403);
        let what = format!("{what}.rbac.authorization.k8s.io \"c\"");
        assert_eq!(lines(&message, &what), everything);
    }
    let path = format!("{RBAC}/clusterrolebindings");
    let refused = alice.refused("POST", &path, binding("none")).await;
    let told = "clusterrolebindings.rbac.authorization.k8s.io \"none\" not found";
    assert_eq!(refused, (404, told.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn leave_to_bind_or_escalate_is_enough() {
    let (admin, _) = writer().await;
    let rules = json!([
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"], "resourceNames": ["view", "mine"], "verbs": ["bind", "escalate", "update"]},
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles", "clusterrolebindings"], "verbs": ["create"]},
    ]);
    admin.cluster_role("binder", rules).await;
    admin.bind("binder", "binder", user("bob")).await;
    let bob = admin.user("bob", &[]);
    bob.bind("bv", "view", user("q")).await;
    let edit = json!({"metadata": {"name": "be"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}});
    let path = format!("{RBAC}/clusterrolebindings");
    assert_eq!(bob.refused("POST", &path, edit).await.0, 403);
    let all = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    let role = json!({"metadata": {"name": "mine"}, "rules": all});
    let roles = format!("{RBAC}/clusterroles");
    // A new object has no name yet that a rule could allow.
    assert_eq!(bob.refused("POST", &roles, role.clone()).await.0, 403);
    admin.cluster_role("mine", Value::Null).await;
    let (code, changed) = bob.request("PUT", &format!("{roles}/mine"), role).await;
    assert_eq!(code, 200, "{changed}");
}

#[tokio::test(start_paused = true)]
async fn a_role_of_too_many_combinations_is_refused_before_they_are_made() {
    let (admin, alice) = writer().await;
    let words =
        |letter: &str| -> Vec<String> { (0..2000).map(|i| format!("{letter}{i}")).collect() };
    let vast = json!({
        "metadata": {"name": "vast"},
        "rules": [{"apiGroups": words("g"), "resources": words("r"), "resourceNames": words("n"), "verbs": words("v")}],
    });
    let roles = format!("{RBAC}/clusterroles");
    let (code, message) = alice.refused("POST", &roles, vast.clone()).await;
    assert_eq!(code, 422, "{message}");
    assert!(message.contains("too many to compare"), "{message}");
    // A user who holds everything may create the role, but the permissions of one who binds it must
    // be compared.
    admin.make(&roles, vast).await;
    let binding = json!({
        "metadata": {"name": "vast"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "vast"},
        "subjects": [user("alice")],
    });
    let bindings = format!("{RBAC}/clusterrolebindings");
    assert_eq!(alice.refused("POST", &bindings, binding).await.0, 403);
}
