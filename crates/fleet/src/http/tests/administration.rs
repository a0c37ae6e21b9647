//! Versions, role sets, lists and operations of administrators.

use super::*;

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
    assert_eq!(rows("").await.len(), 12);
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
    assert_eq!(operations["value"].as_array().unwrap().len(), 12);
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
