//! The built-in plugins, through the whole server.

use serde_json::{Value, json};

use super::{
    cases::{Case, HttpReply},
    webhooks::Reaction,
};

const CORE: &str = "/api/v1/namespaces/default";

async fn case() -> Case {
    Case::new(|_, _| Reaction::allow()).await
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "cases read better with the literal in place"
)]
fn pod(name: &str, resources: Value) -> Value {
    json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]}})
}

async fn post(case: &Case, plural: &str, body: &Value) -> HttpReply {
    case.send("POST", &format!("{CORE}/{plural}"), body).await
}

/// Waits until the quota reports `expected` as used.
async fn used(case: &Case, entry: &str, expected: &str) {
    let at = format!("{CORE}/resourcequotas/q");
    for _ in 0..1000 {
        let quota = case.send("GET", &at, &Value::Null).await.body;
        if quota["status"]["used"][entry] == expected {
            return;
        }
        tokio::task::yield_now().await;
    }
    let quota = case.send("GET", &at, &Value::Null).await.body;
    assert_eq!(quota["status"]["used"][entry], expected);
}

#[tokio::test(start_paused = true)]
async fn ranges_fill_and_bound_what_pods_ask_for() {
    let case = case().await;
    let range = json!({"metadata": {"name": "r"}, "spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}, "defaultRequest": {"cpu": "100m"}}]}});
    let told = post(&case, "limitranges", &range).await;
    assert_eq!((told.code, told.warnings.len()), (201, 0));
    let told = post(&case, "pods", &pod("a", json!({}))).await;
    assert_eq!(
        told.body["spec"]["containers"][0]["resources"],
        json!({"limits": {"cpu": "1"}, "requests": {"cpu": "100m"}})
    );
    assert_eq!(told.body["status"]["qosClass"], "Burstable");
    let told = post(&case, "pods", &pod("b", json!({"limits": {"cpu": "2"}}))).await;
    assert_eq!(
        (told.code, told.message()),
        (
            403,
            "pods \"b\" is forbidden: maximum cpu usage per Container is 1, but limit is 2"
        )
    );
}

#[tokio::test(start_paused = true)]
async fn a_quota_is_kept_and_says_what_is_used() {
    let case = case().await;
    let hard = json!({"pods": "2", "requests.cpu": "1", "count/secrets": "1", "services": "1"});
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": hard}});
    assert_eq!(
        post(&case, "resourcequotas", &quota).await.warnings,
        [""; 0]
    );
    used(&case, "pods", "0").await;
    let asks = |cpu: &str| json!({"requests": {"cpu": cpu}});
    let told = post(&case, "pods", &pod("p0", json!({}))).await;
    assert_eq!(
        told.message(),
        "pods \"p0\" is forbidden: failed quota: q: must specify requests.cpu for: c"
    );
    assert_eq!(
        post(&case, "pods", &pod("p1", asks("600m"))).await.code,
        201
    );
    used(&case, "requests.cpu", "600m").await;
    let told = post(&case, "pods", &pod("p2", asks("600m"))).await;
    assert_eq!(
        told.message(),
        "pods \"p2\" is forbidden: exceeded quota: q, requested: requests.cpu=600m, used: requests.cpu=600m, limited: requests.cpu=1"
    );
    case.send("DELETE", &format!("{CORE}/pods/p1"), &Value::Null)
        .await;
    used(&case, "pods", "0").await;
    assert_eq!(
        post(&case, "pods", &pod("p2", asks("600m"))).await.code,
        201
    );
    assert_eq!(
        post(&case, "secrets", &json!({"metadata": {"name": "a"}}))
            .await
            .code,
        201
    );
    let told = post(&case, "secrets", &json!({"metadata": {"name": "b"}})).await;
    assert_eq!(
        told.message(),
        "secrets \"b\" is forbidden: exceeded quota: q, requested: count/secrets=1, used: count/secrets=1, limited: count/secrets=1"
    );
}

#[tokio::test(start_paused = true)]
async fn many_at_once_do_not_overspend_a_quota() {
    let case = case().await;
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "5"}}});
    post(&case, "resourcequotas", &quota).await;
    let before = case
        .send("GET", &format!("{CORE}/configmaps"), &Value::Null)
        .await;
    let before = before.body["items"].as_array().unwrap().len();
    let writes = (0..20).map(|i| {
        let map = json!({"metadata": {"name": format!("m{i}")}});
        let case = &case;
        async move { post(case, "configmaps", &map).await.code }
    });
    let codes = futures::future::join_all(writes).await;
    let stored = codes.iter().filter(|code| **code == 201).count();
    assert_eq!(stored, 5 - before);
    assert_eq!(
        codes.iter().filter(|code| **code == 403).count(),
        20 - stored
    );
    used(&case, "configmaps", "5").await;
}

#[tokio::test(start_paused = true)]
async fn priorities_come_from_classes_alone() {
    let case = case().await;
    let with = |name: &str, field: &str, value: Value| {
        let mut pod = pod(name, json!({}));
        pod["spec"][field] = value;
        pod
    };
    let told = post(
        &case,
        "pods",
        &with("a", "priorityClassName", json!("system-node-critical")),
    )
    .await;
    assert_eq!(
        told.body["spec"]["priority"], 2_000_001_000,
        "{}",
        told.body
    );
    for (field, value, why) in [
        (
            "priority",
            json!(5),
            "the integer value of priority (5) must not be provided in pod spec; priority admission controller computed 0 from the given PriorityClass name",
        ),
        (
            "preemptionPolicy",
            json!("Never"),
            "the string value of PreemptionPolicy (Never) must not be provided in pod spec; priority admission controller computed PreemptLowerPriority from the given PriorityClass name",
        ),
        (
            "priorityClassName",
            json!("nope"),
            "no PriorityClass with name nope was found",
        ),
        (
            "runtimeClassName",
            json!("nope"),
            "pod rejected: RuntimeClass \"nope\" not found",
        ),
        (
            "overhead",
            json!({"cpu": "1"}),
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ),
    ] {
        let told = post(&case, "pods", &with("b", field, value)).await;
        assert_eq!(told.message(), format!("pods \"b\" is forbidden: {why}"));
    }
}

#[tokio::test(start_paused = true)]
async fn the_classes_of_the_system_are_there_and_stay() {
    let case = case().await;
    let classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
    let told = case.send("GET", classes, &Value::Null).await;
    assert_eq!(told.body["items"].as_array().unwrap().len(), 2);
    let told = case
        .send(
            "DELETE",
            &format!("{classes}/system-node-critical"),
            &Value::Null,
        )
        .await;
    assert_eq!(
        told.message(),
        "priorityclasses.scheduling.k8s.io \"system-node-critical\" is forbidden: this is a system priority class and cannot be deleted"
    );
}

#[tokio::test(start_paused = true)]
async fn webhooks_see_what_plugins_added() {
    let case = case().await;
    let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}]);
    case.mutating("m", &json!({ "rules": rules })).await;
    post(&case, "pods", &pod("a", json!({}))).await;
    let (_, request) = case.webhooks.asked().remove(0);
    let spec = &request["object"]["spec"];
    assert_eq!(spec["priority"], 0);
    let keys: Vec<&str> = spec["tolerations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| t["key"].as_str().unwrap())
        .collect();
    assert_eq!(
        keys,
        [
            "node.kubernetes.io/not-ready",
            "node.kubernetes.io/unreachable"
        ]
    );
}
