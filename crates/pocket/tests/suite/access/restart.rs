//! The bootstrap policy after a restart.

use serde_json::{Value, json};

use super::client::{RBAC, TestClient};

/// The whole object at a path.
async fn get(client: &TestClient, path: &str) -> Value {
    let (code, object) = client.request("GET", path, Value::Null).await;
    assert_eq!(code, 200, "{path}: {object}");
    object
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_when_nothing_is_lacking() {
    let admin = TestClient::new().await;
    let before = admin.pocket.store().revision();
    let again = TestClient::over(admin.pocket.store().fork()).await;
    assert_eq!(again.pocket.store().revision(), before);
}

#[tokio::test(start_paused = true)]
async fn what_was_taken_away_comes_back_and_what_was_added_stays() {
    let admin = TestClient::new().await;
    let basic = format!("{RBAC}/clusterroles/system:basic-user");
    let discovery = format!("{RBAC}/clusterroles/system:discovery");
    let bound = format!("{RBAC}/clusterrolebindings/system:basic-user");
    let wanted = get(&admin, &basic).await["rules"].clone();
    let added = json!({"apiGroups": ["x"], "resources": ["y"], "verbs": ["z"]});
    admin
        .request("PATCH", &basic, json!({"rules": [added]}))
        .await;
    admin
        .request("PATCH", &bound, json!({"subjects": null}))
        .await;
    let kept = json!({
        "rules": [],
        "metadata": {"annotations": {"rbac.authorization.kubernetes.io/autoupdate": "false"}},
    });
    admin.request("PATCH", &discovery, kept).await;
    let gone =
        format!("{RBAC}/namespaces/kube-system/roles/extension-apiserver-authentication-reader");
    assert_eq!(admin.request("DELETE", &gone, Value::Null).await.0, 200);

    let again = TestClient::over(admin.pocket.store().fork()).await;
    let rules = get(&again, &basic).await["rules"].clone();
    let rules = rules.as_array().unwrap();
    assert!(rules.contains(&added));
    let mut wanted = wanted.as_array().unwrap().iter();
    // Rules of one resource each may represent one rule of several.
    assert!(wanted.all(|rule| {
        let mut resources = rule["resources"].as_array().unwrap().iter();
        resources.all(|resource| {
            let has = |rule: &Value| rule["resources"].as_array().unwrap().contains(resource);
            rules.iter().any(has)
        })
    }));
    assert_eq!(
        get(&again, &bound).await["subjects"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert_eq!(get(&again, &discovery).await["rules"], Value::Null);
    get(&again, &gone).await;
    let managers = get(&again, &basic).await["metadata"]["managedFields"].clone();
    let managers = managers.as_array().unwrap().iter();
    assert!(
        managers
            .into_iter()
            .any(|entry| entry["manager"] == "kube-apiserver")
    );
}

#[tokio::test(start_paused = true)]
async fn a_binding_that_was_pointed_elsewhere_is_made_anew() {
    let admin = TestClient::new().await;
    let bound = format!("{RBAC}/clusterrolebindings/system:basic-user");
    admin.request("DELETE", &bound, Value::Null).await;
    let other = json!({
        "metadata": {"name": "system:basic-user"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    });
    admin
        .make(&format!("{RBAC}/clusterrolebindings"), other)
        .await;
    let again = TestClient::over(admin.pocket.store().fork()).await;
    let binding = get(&again, &bound).await;
    assert_eq!(binding["roleRef"]["name"], "system:basic-user");
}
