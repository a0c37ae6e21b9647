//! Versions, role sets, lists and operations of administrators.

use neap_store::Commit;

use super::*;
use crate::documents::{BILLING, OPERATIONS, region_document, subscription_document};

fn version(name: &str, members: &Value) -> Value {
    let mut body = json!({"properties": {
        "version": name,
        "openShiftPullspec": "registry.example.com/release:1",
        "installerPullspec": "registry.example.com/installer:1",
    }});
    for (name, value) in members.as_object().unwrap() {
        body["properties"][name] = value.clone();
    }
    body
}

#[tokio::test]
async fn there_is_one_default_version_and_it_stays() {
    let provider = provider().await;
    let versions = "/admin/versions";
    let newer = version("4.20.1", &json!({"enabled": true, "default": true}));
    assert_eq!(provider.send("PUT", versions, Some(newer)).await.0, 201);
    let (_, _, all) = provider.send("GET", versions, None).await;
    let all = all["value"].as_array().unwrap();
    let defaults = all.iter().filter(|it| it["properties"]["default"] == true);
    let defaults: Vec<_> = defaults.map(|it| &it["properties"]["version"]).collect();
    assert_eq!(defaults, ["4.20.1"]);
    // Neither of them says that it is the default.
    let disabled = version("4.20.1", &json!({"enabled": false}));
    let (status, _, body) = provider.send("PUT", versions, Some(disabled)).await;
    assert_eq!(
        (status, &body["error"]["target"]),
        (400, &json!("properties.enabled"))
    );
    let one = format!("{versions}/4.20.1");
    let (status, _, body) = provider.send("DELETE", &one, None).await;
    assert_eq!(
        (status, &body["error"]["target"]),
        (400, &json!("properties.default"))
    );
    for (name, missing) in [
        ("version", ""),
        ("installerPullspec", ""),
        ("version", "4.x"),
        ("enabled", "yes"),
        ("default", "true"),
    ] {
        let body = version("4.21.0", &json!({name: missing}));
        let (status, _, body) = provider.send("PUT", versions, Some(body)).await;
        let target = format!("properties.{name}");
        assert_eq!((status, &body["error"]["target"]), (400, &json!(target)));
    }
}

#[tokio::test]
async fn the_change_feed_brings_versions_and_role_sets_and_takes_them_away() {
    let provider = provider().await;
    let location = format!(
        "/subscriptions/{SUBSCRIPTION}/providers/Microsoft.RedHatOpenShift/locations/local"
    );
    let role_set = json!({"properties": {
        "openShiftVersion": "4.19",
        "platformWorkloadIdentityRoles": [{"operatorName": "ingress", "roleDefinitionName": "r", "roleDefinitionId": "/r"}],
    }});
    let sets = "/admin/platformworkloadidentityrolesets";
    assert_eq!(provider.send("PUT", sets, Some(role_set)).await.0, 201);
    let names = async |kind: &str| {
        provider.catalogue.read().await.unwrap();
        let path = format!("{location}/{kind}?api-version={API}");
        let (_, _, body) = provider.send("GET", &path, None).await;
        let all = body["value"].as_array().unwrap().clone();
        all.into_iter()
            .map(|it| it["name"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(names("openShiftVersions").await, ["4.18.1", VERSION]);
    assert_eq!(names("platformWorkloadIdentityRoleSets").await, ["4.19"]);
    for path in ["/admin/versions/4.18.1".to_owned(), format!("{sets}/4.19")] {
        assert_eq!(provider.send("DELETE", &path, None).await.0, 200);
        assert_eq!(provider.send("DELETE", &path, None).await.0, 204);
    }
    assert_eq!(names("openShiftVersions").await, [VERSION]);
    assert_eq!(names("platformWorkloadIdentityRoleSets").await, [""; 0]);
    // Clients rely on 400 here.
    let gone = format!("{location}/openShiftVersions/4.18.1?api-version={API}");
    let (status, _, body) = provider.send("GET", &gone, None).await;
    assert_eq!((status, code(&body)), (400, "ResourceNotFound"));
}

#[tokio::test]
async fn administrators_list_all_clusters_and_find_one() {
    let provider = provider().await;
    for number in 0..12 {
        let name = format!("c{number:02}x");
        let put = path(&name, API);
        assert_eq!(
            provider.send("PUT", &put, Some(cluster(&name))).await.0,
            201
        );
    }
    let rows = async |query: &str| {
        let path = format!("/admin/clusters?{query}");
        let (status, _, body) = provider.send("GET", &path, None).await;
        assert_eq!(status, 200);
        body["value"].as_array().unwrap().clone()
    };
    let all = rows("").await;
    let ids: Vec<_> = all.iter().map(|it| it["resourceId"].to_string()).collect();
    assert_eq!(all.len(), 12);
    assert!(ids.is_sorted_by_key(|id| id.to_lowercase()), "{ids:?}");
    assert_eq!(rows("name=C07").await[0]["name"], "c07x");
    assert_eq!(rows("state=creating&version=4.19").await.len(), 12);
    assert!(rows("state=succeeded").await.is_empty());
    let text = json!(rows("").await).to_string();
    assert!(!text.contains("hush") && !text.contains("auths"), "{text}");
    let (_, _, page) = provider
        .send(
            "GET",
            "/admin/providers/microsoft.redhatopenshift/openshiftclusters",
            None,
        )
        .await;
    assert_eq!(page["value"].as_array().unwrap().len(), 10);
    assert!(page["nextLink"].is_string());
    let (_, _, operations) = provider.send("GET", "/admin/operations", None).await;
    let operations = operations["value"].as_array().unwrap();
    assert_eq!(operations.len(), 12);
    let times: Vec<_> = operations
        .iter()
        .map(|it| it["startTime"].to_string())
        .collect();
    assert!(times.iter().rev().is_sorted(), "newest first: {times:?}");
    let sizes = "/admin/supportedvmsizes?vmRole=";
    assert_eq!(
        provider
            .send("GET", &format!("{sizes}master"), None)
            .await
            .0,
        200
    );
    assert_eq!(
        provider.send("GET", &format!("{sizes}other"), None).await.0,
        400
    );
    let (status, _, body) = provider
        .send("GET", "/admin/billingdocuments/none", None)
        .await;
    assert_eq!((status, code(&body)), (404, "NotFound"));
}

#[tokio::test]
async fn a_request_that_is_repeated_after_its_end_is_still_the_same_operation() {
    let provider = provider().await;
    let said = [("x-ms-client-request-id", "once")];
    let put = path("blue", API);
    let (_, first, _) = provider
        .send_with("PUT", &put, Some(cluster("blue")), &said)
        .await;
    succeed(&provider, "blue").await;
    let (status, second, body) = provider
        .send_with("PUT", &put, Some(cluster("blue")), &said)
        .await;
    assert_eq!(status, 200, "{body}");
    assert_eq!(body["properties"]["provisioningState"], "Succeeded");
    assert_eq!(
        first["azure-asyncoperation"],
        second["azure-asyncoperation"]
    );
    // A later request of the client is another one.
    let said = [("x-ms-client-request-id", "twice")];
    let patch = json!({"tags": {"team": "red"}});
    let (_, third, body) = provider.send_with("PATCH", &put, Some(patch), &said).await;
    assert_eq!(
        body["properties"]["provisioningState"], "Updating",
        "{body}"
    );
    assert_ne!(first["azure-asyncoperation"], third["azure-asyncoperation"]);
}

#[tokio::test]
async fn the_identity_of_a_cluster_follows_its_service_principal() {
    let provider = provider().await;
    for name in ["blue", "red"] {
        let put = path(name, API);
        provider.send("PUT", &put, Some(cluster(name))).await;
        succeed(&provider, name).await;
    }
    let principal = |of: &str| {
        let mut profile = cluster(of)["properties"]["servicePrincipalProfile"].clone();
        profile["clientSecret"] = "newer-hush".into();
        Some(json!({"properties": {"servicePrincipalProfile": profile}}))
    };
    let blue = path("blue", API);
    let (status, _, body) = provider.send("PATCH", &blue, principal("red")).await;
    assert_eq!((status, code(&body)), (400, "DuplicateClientID"));
    let (status, _, body) = provider.send("PATCH", &blue, principal("green")).await;
    assert_eq!(status, 200, "{body}");
    assert!(!body.to_string().contains("hush"), "{body}");
    // What blue had is free for another cluster.
    let (status, _, body) = provider
        .send("PATCH", &path("red", API), principal("blue"))
        .await;
    assert_eq!(status, 200, "{body}");
}

/// Ends the work on a cluster as a backend does when it fails.
async fn fail(provider: &Provider, name: &str) {
    let key = cluster_key(&id(name));
    let document = provider.store.get(Scope::Everywhere, &key).await.unwrap();
    let document = document.unwrap();
    let mut body = document.body.clone();
    let properties = &mut body["openShiftCluster"]["properties"];
    properties["failedProvisioningState"] = properties["provisioningState"].clone();
    properties["provisioningState"] = "Failed".into();
    body["asyncOperationId"] = "".into();
    let write = Write::Put {
        key,
        precondition: Precondition::Etag(document.etag),
        unique: crate::documents::unique_keys(&body),
        body,
        ttl: None,
        queue: QueueChange::Done,
    };
    let commit = Commit::default().with(write);
    provider.store.commit(commit).await.unwrap();
}

#[tokio::test]
async fn of_two_failed_updates_only_the_last_is_run_again() {
    let provider = provider().await;
    let blue = path("blue", API);
    provider.send("PUT", &blue, Some(cluster("blue"))).await;
    succeed(&provider, "blue").await;
    let mut operations = Vec::new();
    for team in ["red", "green"] {
        let patch = json!({"tags": {"team": team}});
        let (status, headers, body) = provider.send("PATCH", &blue, Some(patch)).await;
        assert_eq!(status, 200, "{body}");
        let link = headers["azure-asyncoperation"].to_str().unwrap().to_owned();
        operations.push(link.split(['/', '?']).nth_back(1).unwrap().to_owned());
        fail(&provider, "blue").await;
    }
    let retry = async |operation: &str| {
        let path = format!("/admin/operations/{SUBSCRIPTION}/{operation}/retry");
        provider.send("POST", &path, None).await
    };
    let (status, _, body) = retry(&operations[0]).await;
    assert_eq!((status, code(&body)), (400, "RequestNotAllowed"), "{body}");
    let (_, _, seen) = provider.send("GET", &blue, None).await;
    assert_eq!(seen["properties"]["provisioningState"], "Failed");
    let (status, _, body) = retry(&operations[1]).await;
    assert_eq!((status, &body["work"]), (202, &json!("Updating")), "{body}");
}

#[tokio::test]
async fn the_audit_names_who_asked() {
    let provider = provider().await;
    let blue = path("blue", API);
    let jane = r#"{"lastModifiedBy": "jane@example.com"}"#;
    let by_jane = [
        ("x-ms-arm-resource-system-data", jane),
        ("x-ms-client-principal-name", "not-read-of-arm"),
        ("x-ms-correlation-request-id", "of-jane"),
    ];
    let put = Some(cluster("blue"));
    let (_, headers, _) = provider.send_with("PUT", &blue, put, &by_jane).await;
    let operation = headers["azure-asyncoperation"].to_str().unwrap();
    let operation = operation.split(['/', '?']).nth_back(1).unwrap();
    let cancel = format!("/admin/operations/{SUBSCRIPTION}/{operation}/cancel?reason=enough");
    let version = || version("4.20.1", &json!({"enabled": true}));
    let by_joe = [
        ("x-ms-client-principal-name", "joe"),
        ("x-ms-correlation-request-id", "of-joe"),
    ];
    provider.send_with("POST", &cancel, None, &by_joe).await;
    fail(&provider, "blue").await;
    let retry = format!("/admin/operations/{SUBSCRIPTION}/{operation}/retry");
    provider.send_with("POST", &retry, None, &by_joe).await;
    let versions = "/admin/versions";
    provider
        .send_with("PUT", versions, Some(version()), &by_joe)
        .await;
    provider
        .send("DELETE", "/admin/versions/4.20.1", None)
        .await;
    let rows = provider.store.audit(100).await.unwrap();
    let told: Vec<_> = rows
        .iter()
        .map(|row| (&*row.actor, &*row.action, row.detail.contains("of-joe")))
        .collect();
    assert_eq!(
        told,
        [
            ("ARM", "subscription Registered", false),
            ("jane@example.com through ARM", "create cluster", false),
            ("joe", "cancel operation", true),
            ("joe", "retry operation", true),
            ("joe", "put OpenShiftVersions", true),
            ("an administrator", "delete OpenShiftVersions", false),
        ]
    );
    assert!(rows[1].detail.contains("of-jane"), "{}", rows[1].detail);
    assert!(rows[2].detail.starts_with("enough, "), "{}", rows[2].detail);
}

#[tokio::test]
async fn long_lists_are_complete_and_in_order() {
    // More than two pages of documents, and not a whole number of them.
    const COUNT: usize = 437;
    let provider = provider().await;
    for number in 0..COUNT {
        let id = format!("{number:04}");
        // The newest in the middle of the order of ids.
        let started = format!("2026-01-01T00:{:02}:{:02}Z", number % 60, number / 60);
        let operation = json!({"id": id, "asyncOperation": {"startTime": started}});
        let commit = Commit::default()
            .create(region_document(BILLING, &id), json!({"id": id}))
            .create(
                subscription_document(OPERATIONS, SUBSCRIPTION, &id),
                operation,
            );
        provider.store.commit(commit).await.unwrap();
    }
    let texts = async |path: &str, member: &str| {
        let (status, _, body) = provider.send("GET", path, None).await;
        assert_eq!(status, 200);
        let rows = body["value"].as_array().unwrap().iter();
        let rows = rows.map(|row| row[member].as_str().unwrap().to_owned());
        rows.collect::<Vec<_>>()
    };
    let bills = texts("/admin/billingdocuments", "id").await;
    assert!(bills.len() == COUNT && bills.is_sorted(), "{bills:?}");
    let mut operations = texts("/admin/operations", "startTime").await;
    operations.reverse();
    assert!(operations.len() == COUNT && operations.is_sorted());
}
