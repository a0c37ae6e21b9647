//! What roles allow, at a server without a socket.

use super::client::{RBAC, TestClient, user};
use serde_json::{Value, json};

const PODS: &str = "/api/v1/namespaces/default/pods";

async fn reason(client: &TestClient, spec: Value) -> Value {
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let review = client.make(path, json!({"spec": spec})).await;
    review["status"].clone()
}

#[tokio::test(start_paused = true)]
async fn a_role_is_in_force_once_its_write_is_answered_and_no_longer_when_it_is_gone() {
    let admin = TestClient::new().await;
    let bob = admin.user("bob", &[]);
    assert_eq!(bob.get(PODS).await, 403);
    let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]);
    admin.cluster_role("lister", rules).await;
    admin.bind("bob-lists", "lister", user("bob")).await;
    assert_eq!(bob.get(PODS).await, 200);
    assert_eq!(bob.get(&format!("{PODS}?watch=true")).await, 403);
    assert_eq!(admin.user("eve", &[]).get(PODS).await, 403);
    let role = format!("{RBAC}/clusterroles/lister");
    assert_eq!(admin.request("DELETE", &role, Value::Null).await.0, 200);
    let (code, message) = bob.refused("GET", PODS, Value::Null).await;
    assert_eq!(code, 403);
    assert_eq!(
        message,
        "pods is forbidden: User \"bob\" cannot list resource \"pods\" in API group \"\" in the namespace \"default\": RBAC: clusterrole.rbac.authorization.k8s.io \"lister\" not found"
    );
}

#[tokio::test(start_paused = true)]
async fn leave_is_asked_for_the_selector_that_is_answered() {
    let admin = TestClient::new().await;
    let secrets = "/api/v1/namespaces/default/secrets";
    for name in ["mine", "other"] {
        admin
            .make(secrets, json!({"metadata": {"name": name}}))
            .await;
    }
    let rules = json!([{"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["mine"], "verbs": ["list"]}]);
    admin.cluster_role("one", rules).await;
    admin.bind("one", "one", user("bob")).await;
    let bob = admin.user("bob", &[]);
    let (all, mine) = ("fieldSelector=", "fieldSelector=metadata.name%3Dmine");
    let other = "fieldSelector=metadata.name%3Dother";
    for (query, code) in [
        (mine.to_owned(), 200),
        (format!("{mine}&{all}"), 200),
        (format!("{mine}&{other}"), 200),
        (format!("{all}&{mine}"), 403),
        (format!("{other}&{mine}"), 403),
        (String::new(), 403),
    ] {
        for place in [secrets, "/api/v1/secrets"] {
            let (found, list) = bob
                .request("GET", &format!("{place}?{query}"), Value::Null)
                .await;
            assert_eq!(found, code, "{place}?{query}");
            if code == 200 {
                let items = list["items"].as_array().unwrap();
                let names: Vec<_> = items.iter().map(|i| &i["metadata"]["name"]).collect();
                assert_eq!(names, ["mine"], "{place}?{query}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_namespace_is_in_no_namespace() {
    let admin = TestClient::new().await;
    let inside = "/api/v1/namespaces/default/namespaces";
    for (method, path) in [
        ("GET", inside.to_owned()),
        ("POST", inside.to_owned()),
        ("GET", format!("{inside}/default")),
        ("DELETE", format!("{inside}/default")),
        ("GET", format!("{inside}/default/status")),
    ] {
        let x = json!({"metadata": {"name": "x"}});
        assert_eq!(
            admin.request(method, &path, x).await.0,
            404,
            "{method} {path}"
        );
    }
    for path in ["/api/v1/namespaces", "/api/v1/namespaces/default"] {
        assert_eq!(admin.get(path).await, 200, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_there_is_forbidden_before_it_is_missing() {
    let admin = TestClient::new().await;
    let bob = admin.user("bob", &[]);
    for path in ["/apis/none/v1/things", "/api/v1/nothings", "/nowhere"] {
        assert_eq!(bob.get(path).await, 403, "{path}");
        assert_eq!(admin.get(path).await, 404, "{path}");
    }
    // Discovery is for authenticated users, and health for all users.
    for path in ["/api", "/apis/apps", "/openapi/v3", "/version", "/healthz"] {
        assert_eq!(bob.get(path).await, 200, "{path}");
    }
    let anonymous = admin.user("system:anonymous", &[]);
    assert_eq!(anonymous.get("/healthz").await, 200);
    assert_eq!(anonymous.get("/api").await, 403);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_would_be_created_by_an_update_needs_leave_to_create_it() {
    let admin = TestClient::new().await;
    let rules = json!([{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["update", "patch"]}]);
    admin.cluster_role("updater", rules).await;
    admin.bind("updater", "updater", user("bob")).await;
    let lease = json!({"metadata": {"name": "q"}, "spec": {"holderIdentity": "x"}});
    let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/q";
    let (code, message) = admin
        .user("bob", &[])
        .refused("PUT", path, lease.clone())
        .await;
    assert_eq!(code, 403);
    assert_eq!(
        message,
        "leases.coordination.k8s.io \"q\" is forbidden: User \"bob\" cannot create resource \"leases\" in API group \"coordination.k8s.io\" in the namespace \"default\""
    );
    assert_eq!(admin.request("PUT", path, lease.clone()).await.0, 201);
    let change = json!({"spec": {"holderIdentity": "y"}});
    let (code, _) = admin.user("bob", &[]).request("PATCH", path, change).await;
    assert_eq!(code, 200);
}

/// A server where many users have a role, each through another binding.
async fn generous() -> TestClient {
    let admin = TestClient::new().await;
    let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
    admin.cluster_role("reader", rules.clone()).await;
    let roles = format!("{RBAC}/namespaces/default/roles");
    admin
        .make(&roles, json!({"metadata": {"name": "r5"}, "rules": rules}))
        .await;
    let account =
        |name: &str| json!({"kind": "ServiceAccount", "namespace": "default", "name": name});
    let group = json!({"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "g1"});
    admin.bind("b1", "reader", user("u1")).await;
    admin.bind("b2", "reader", group).await;
    admin.bind("b3", "reader", account("acc")).await;
    let bind_here = async |name: &str, kind: &str, role: &str, subject: Value| {
        let binding = json!({
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
            "subjects": [subject],
        });
        let path = format!("{RBAC}/namespaces/default/rolebindings");
        admin.make(&path, binding).await;
    };
    bind_here("b4", "ClusterRole", "reader", user("u4")).await;
    bind_here("b5", "Role", "r5", account("acc5")).await;
    bind_here("b6", "Role", "gone", user("u6")).await;
    bind_here("b7", "ClusterRole", "cgone", user("u6")).await;
    admin
}

/// The users that may read pods in `default`, and the reason.
const READERS: [(&str, &[&str], bool, &str); 6] = [
    (
        "u1",
        &[],
        true,
        "RBAC: allowed by ClusterRoleBinding \"b1\" of ClusterRole \"reader\" to User \"u1\"",
    ),
    (
        "x",
        &["g1"],
        true,
        "RBAC: allowed by ClusterRoleBinding \"b2\" of ClusterRole \"reader\" to Group \"g1\"",
    ),
    (
        "system:serviceaccount:default:acc",
        &[],
        true,
        "RBAC: allowed by ClusterRoleBinding \"b3\" of ClusterRole \"reader\" to ServiceAccount \"acc/default\"",
    ),
    (
        "u4",
        &[],
        true,
        "RBAC: allowed by RoleBinding \"b4/default\" of ClusterRole \"reader\" to User \"u4\"",
    ),
    (
        "system:serviceaccount:default:acc5",
        &[],
        true,
        "RBAC: allowed by RoleBinding \"b5/default\" of Role \"r5\" to ServiceAccount \"acc5/default\"",
    ),
    (
        "u6",
        &[],
        false,
        "RBAC: [role.rbac.authorization.k8s.io \"gone\" not found, clusterrole.rbac.authorization.k8s.io \"cgone\" not found]",
    ),
];

#[tokio::test(start_paused = true)]
async fn reviews_say_who_was_given_what_by_whom() {
    let admin = generous().await;
    let pods = json!({"verb": "get", "resource": "pods", "namespace": "default"});
    for (who, groups, allowed, why) in READERS {
        let spec = json!({"user": who, "groups": groups, "resourceAttributes": pods});
        let expected = json!({"allowed": allowed, "reason": why});
        assert_eq!(reason(&admin, spec).await, expected, "{who}");
    }
    let master = json!({"user": "x", "groups": ["system:masters"], "resourceAttributes": pods});
    assert_eq!(reason(&admin, master).await, json!({"allowed": true}));
    let path = json!({"user": "x", "nonResourceAttributes": {"path": "/metrics", "verb": "get"}});
    assert_eq!(reason(&admin, path).await, json!({"allowed": false}));
}

#[tokio::test(start_paused = true)]
async fn every_user_may_review_their_own_access() {
    let admin = TestClient::new().await;
    let bob = admin.user("bob", &[]);
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let spec = json!({"spec": {"resourceAttributes": {"verb": "list", "resource": "pods"}}});
    let own = bob.make(path, spec.clone()).await;
    assert_eq!(own["status"], json!({"allowed": false}));
    assert_eq!(
        admin.make(path, spec).await["status"],
        json!({"allowed": true})
    );
    let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let rules = bob
        .make(path, json!({"spec": {"namespace": "default"}}))
        .await;
    assert_eq!(rules["metadata"], json!({}));
    assert_eq!(
        rules["status"]["resourceRules"],
        json!([
            {"verbs": ["create"], "apiGroups": ["authorization.k8s.io"], "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]},
            {"verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"]},
        ])
    );
    assert_eq!(
        rules["status"]["nonResourceRules"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let (code, message) = bob.refused("POST", path, json!({"spec": {}})).await;
    assert_eq!((code, message.as_str()), (400, "no namespace on request"));
}

/// Repeats the request until it gets this code: roles are aggregated a moment later.
async fn until(client: &TestClient, path: &str, code: u16) {
    for _ in 0..10_000 {
        if client.get(path).await == code {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("{path} is never answered with {code}");
}

#[tokio::test(start_paused = true)]
async fn labelled_roles_are_taken_in_by_those_that_gather_them() {
    let admin = TestClient::new().await;
    admin.bind("ann-views", "view", user("ann")).await;
    admin.bind("ed-edits", "edit", user("ed")).await;
    let (ann, ed) = (admin.user("ann", &[]), admin.user("ed", &[]));
    assert_eq!(ann.get(PODS).await, 200, "what a new server gathered");
    assert_eq!(ed.get(PODS).await, 200, "by way of view");
    let boats = "/apis/sea.example/v1/namespaces/default/boats";
    assert_eq!((ann.get(boats).await, ed.get(boats).await), (403, 403));
    let role = json!({
        "metadata": {"name": "boats", "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
        "rules": [{"apiGroups": ["sea.example"], "resources": ["boats"], "verbs": ["list"]}],
    });
    admin.make(&format!("{RBAC}/clusterroles"), role).await;
    until(&ed, boats, 404).await;
    assert_eq!((ann.get(boats).await, ed.get(boats).await), (404, 404));
    let view = admin
        .request("GET", &format!("{RBAC}/clusterroles/view"), Value::Null)
        .await
        .1;
    let managers: Vec<_> = view["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (&entry["manager"], &entry["operation"]))
        .collect();
    let (gatherer, server) = (
        json!("clusterrole-aggregation-controller"),
        json!("kube-apiserver"),
    );
    let (apply, update) = (json!("Apply"), json!("Update"));
    assert_eq!(managers, [(&gatherer, &apply), (&server, &update)]);
    admin
        .request("DELETE", &format!("{RBAC}/clusterroles/boats"), Value::Null)
        .await;
    until(&ed, boats, 403).await;
}

#[tokio::test(start_paused = true)]
async fn running_something_in_a_pod_needs_leave_to_create_by_whatever_method() {
    let admin = TestClient::new().await;
    let rule =
        |verb: &str| json!([{"apiGroups": [""], "resources": ["pods/exec"], "verbs": [verb]}]);
    admin.cluster_role("gets", rule("get")).await;
    admin.bind("gets", "gets", user("bob")).await;
    let bob = admin.user("bob", &[]);
    let exec = format!("{PODS}/x/exec?command=ls");
    let refused = bob.refused("GET", &exec, Value::Null).await;
    assert_eq!(refused, (403, "pods \"x\" is forbidden: ".to_owned()));
    admin.cluster_role("creates", rule("create")).await;
    admin.bind("creates", "creates", user("bob")).await;
    assert_eq!(bob.get(&exec).await, 404);
}
