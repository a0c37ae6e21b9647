mod administration;
mod clusters_asked;
mod database;
mod dry_runs;
mod hostile;

use axum::http::StatusCode;
use neap_kit::clock::Clock;
use neap_store::{Precondition, QueueChange, Scope, Write};
use serde_json::{Value, json};

use crate::{
    documents::{CLUSTERS, cluster_key},
    fixtures::{Provider, SUBSCRIPTION, VERSION, cluster, path},
    resource_id::ClusterId,
};

const API: &str = "2025-07-25";

async fn provider() -> Provider {
    Provider::new(Clock::system()).await
}

fn code(body: &Value) -> &str {
    body["error"]["code"].as_str().unwrap_or_default()
}

fn id(name: &str) -> ClusterId {
    ClusterId::parse(path(name, "").split('?').next().unwrap()).unwrap()
}

/// Ends the work on a cluster as a backend does.
async fn succeed(provider: &Provider, name: &str) {
    let key = cluster_key(&id(name));
    let scope = Scope::Everywhere;
    let document = provider.store.get(scope, &key).await.unwrap().unwrap();
    let mut body = document.body.clone();
    body["openShiftCluster"]["properties"]["provisioningState"] = "Succeeded".into();
    body["asyncOperationId"] = "".into();
    let write = Write::Put {
        key,
        precondition: Precondition::Etag(document.etag),
        unique: crate::documents::unique_keys(&body),
        body,
        ttl: None,
        queue: QueueChange::Done,
    };
    provider
        .store
        .commit(neap_store::Commit::default().with(write))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_put_creates_a_cluster_and_an_operation_in_one_transaction() {
    let provider = provider().await;
    let put = path("Blue", API);
    let (status, headers, body) = provider.send("PUT", &put, Some(cluster("blue"))).await;
    assert_eq!(status, 201, "{body}");
    assert_eq!(body["properties"]["provisioningState"], "Creating");
    assert_eq!(body["properties"]["clusterProfile"]["version"], VERSION);
    assert_eq!(body["name"], "Blue", "the case of the client is kept");
    let text = body.to_string();
    assert!(!text.contains("hush") && !text.contains("auths"), "{text}");
    let operation = headers["azure-asyncoperation"].to_str().unwrap();
    assert!(
        operation.starts_with("https://arm.example.com/subscriptions/"),
        "{operation}"
    );
    assert!(headers.contains_key("retry-after"));
    let operation = operation.trim_start_matches("https://arm.example.com");
    let (status, _, body) = provider.send("GET", operation, None).await;
    assert_eq!((status, &body["status"]), (200, &json!("Creating")));
    let result = operation.replace("operationsstatus", "operationresults");
    let (status, headers, _) = provider.send("GET", &result, None).await;
    assert_eq!(status, 202);
    assert!(headers.contains_key("location"));
    // Another subscription sees nothing of it.
    let foreign = operation.replace(SUBSCRIPTION, "00000000-0000-0000-0000-000000000002");
    assert_eq!(provider.send("GET", &foreign, None).await.0, 404);
    let queued = provider.store.queue_length(CLUSTERS, "work").await.unwrap();
    assert_eq!(queued, 1);
    let key = cluster_key(&id("blue"));
    let stored = provider
        .store
        .get(Scope::Everywhere, &key)
        .await
        .unwrap()
        .unwrap()
        .body
        .to_string();
    assert!(!stored.contains("very-hush"), "secrets are stored sealed");
}

#[tokio::test]
async fn a_busy_cluster_names_the_operation_that_runs() {
    let provider = provider().await;
    provider
        .send("PUT", &path("blue", API), Some(cluster("blue")))
        .await;
    for (method, body) in [("PUT", Some(cluster("blue"))), ("DELETE", None)] {
        let (status, headers, body) = provider.send(method, &path("blue", API), body).await;
        assert_eq!((status, code(&body)), (400, "RequestNotAllowed"));
        let detail = &body["error"]["details"][0];
        assert_eq!(detail["code"], "OperationInProgress");
        assert!(
            detail["target"]
                .as_str()
                .unwrap()
                .contains("/operationsstatus/")
        );
        assert!(headers.contains_key("retry-after"));
    }
}

#[tokio::test]
async fn a_repeated_put_is_the_same_operation() {
    let provider = provider().await;
    let said = [("x-ms-client-request-id", "once")];
    let put = |body| {
        let path = path("blue", API);
        let provider = &provider;
        async move { provider.send_with("PUT", &path, Some(body), &said).await }
    };
    let (status, first, _) = put(cluster("blue")).await;
    assert_eq!(status, 201);
    let (status, second, _) = put(cluster("blue")).await;
    assert_eq!(status, 200);
    assert_eq!(
        first["azure-asyncoperation"],
        second["azure-asyncoperation"]
    );
    let mut other = cluster("blue");
    other["tags"]["team"] = "red".into();
    let (status, _, body) = put(other).await;
    assert_eq!((status, code(&body)), (400, "RequestNotAllowed"));
}

#[tokio::test]
async fn put_is_idempotent_and_patch_changes_what_may_change() {
    let provider = provider().await;
    provider
        .send("PUT", &path("blue", API), Some(cluster("blue")))
        .await;
    succeed(&provider, "blue").await;
    let (status, _, body) = provider
        .send("PUT", &path("blue", API), Some(cluster("blue")))
        .await;
    // The pull secret may not change, and one that is sent again cannot be told from another.
    assert_eq!(
        (status, code(&body)),
        (400, "PropertyChangeNotAllowed"),
        "{body}"
    );
    let mut again = cluster("blue");
    again["properties"]["clusterProfile"]
        .as_object_mut()
        .unwrap()
        .remove("pullSecret");
    let (status, _, body) = provider.send("PUT", &path("blue", API), Some(again)).await;
    assert_eq!(
        (status, &body["properties"]["provisioningState"]),
        (200, &json!("Updating")),
        "{body}"
    );
    succeed(&provider, "blue").await;
    let patch = json!({"tags": {"team": "red"}});
    let (status, _, body) = provider
        .send("PATCH", &path("blue", API), Some(patch))
        .await;
    assert_eq!(
        (status, &body["tags"]["team"]),
        (200, &json!("red")),
        "{body}"
    );
    assert_eq!(body["properties"]["workerProfiles"][0]["count"], 3);
    succeed(&provider, "blue").await;
    for (patch, target) in [
        (
            json!({"properties": {"masterProfile": {"vmSize": "Standard_D16s_v3"}}}),
            "properties.masterProfile.vmSize",
        ),
        (
            json!({"properties": {"apiserverProfile": {"visibility": "Private"}}}),
            "properties.apiserverProfile.visibility",
        ),
    ] {
        let (status, _, body) = provider
            .send("PATCH", &path("blue", API), Some(patch))
            .await;
        assert_eq!((status, code(&body)), (400, "PropertyChangeNotAllowed"));
        assert_eq!(body["error"]["target"], target);
    }
}

#[tokio::test]
async fn if_match_protects_what_another_has_changed() {
    let provider = provider().await;
    provider
        .send("PUT", &path("blue", API), Some(cluster("blue")))
        .await;
    succeed(&provider, "blue").await;
    let (_, headers, _) = provider.send("GET", &path("blue", API), None).await;
    let etag = headers["etag"].to_str().unwrap().to_owned();
    let patch = |etag: String, team: &'static str| {
        let provider = &provider;
        async move {
            let body = Some(json!({"tags": {"team": team}}));
            let headers = [("if-match", &*etag)];
            provider
                .send_with("PATCH", &path("blue", API), body, &headers)
                .await
                .0
        }
    };
    assert_eq!(patch(etag.clone(), "red").await, 200);
    succeed(&provider, "blue").await;
    assert_eq!(patch(etag, "green").await, 412);
}

#[tokio::test]
async fn a_dry_run_answers_and_changes_nothing() {
    let provider = provider().await;
    let dry = format!("{}&dryRun=true", path("blue", API));
    let (status, _, body) = provider.send("PUT", &dry, Some(cluster("blue"))).await;
    assert_eq!(
        (status, &body["wouldBe"]),
        (200, &json!("created")),
        "{body}"
    );
    assert_eq!(provider.send("GET", &path("blue", API), None).await.0, 404);
    let mut bad = cluster("blue");
    bad["properties"]["workerProfiles"][0]["count"] = 1.into();
    let (status, _, body) = provider.send("PUT", &dry, Some(bad)).await;
    assert_eq!((status, code(&body)), (400, "InvalidParameter"));
    assert_eq!(
        body["error"]["target"],
        "properties.workerProfiles['worker'].count"
    );
}

#[tokio::test]
async fn if_none_match_protects_a_cluster_that_exists() {
    let provider = provider().await;
    let put = |header: &'static str, value: String| {
        let provider = &provider;
        async move {
            let (path, headers) = (path("blue", API), [(header, &*value)]);
            let body = Some(cluster("blue"));
            let answer = provider.send_with("PUT", &path, body, &headers).await;
            let (status, _, body) = answer;
            (status, code(&body).to_owned())
        }
    };
    let none = || "*".to_owned();
    let refused = (412, "PreconditionFailed".to_owned());
    assert_eq!(put("if-none-match", none()).await.0, 201);
    succeed(&provider, "blue").await;
    assert_eq!(put("if-none-match", none()).await, refused);
    let (_, headers, _) = provider.send("GET", &path("blue", API), None).await;
    let etag = headers["etag"].to_str().unwrap().to_owned();
    let weak = format!("\"other\", W/{etag}");
    assert_eq!(put("if-none-match", weak).await, refused);
    let headers = [("if-none-match", "\"other\"")];
    let team = Some(json!({"tags": {"team": "red"}}));
    let blue = path("blue", API);
    let (status, ..) = provider.send_with("PATCH", &blue, team, &headers).await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn what_is_rehearsed_is_refused_like_what_is_done() {
    let provider = provider().await;
    provider
        .send("PUT", &path("blue", API), Some(cluster("blue")))
        .await;
    let mut same_group = cluster("red");
    same_group["properties"]["clusterProfile"]["resourceGroupId"] =
        cluster("blue")["properties"]["clusterProfile"]["resourceGroupId"].clone();
    let put = path("red", API);
    let dry = format!("{put}&dryRun=true");
    let (dry_status, _, rehearsed) = provider.send("PUT", &dry, Some(same_group.clone())).await;
    assert_eq!(
        (dry_status, code(&rehearsed)),
        (400, "DuplicateResourceGroup")
    );
    let template = json!({"resources": [{
        "type": "Microsoft.RedHatOpenShift/openShiftClusters", "apiVersion": API, "name": "red",
        "location": same_group["location"], "properties": same_group["properties"],
    }]});
    let group = put.split("/providers/").next().unwrap();
    let preflight = format!(
        "{group}/providers/Microsoft.RedHatOpenShift/deployments/one/preflight?api-version={API}"
    );
    let (_, _, checked) = provider.send("POST", &preflight, Some(template)).await;
    assert_eq!(checked["status"], "Failed", "{checked}");
    assert_eq!(code(&checked), "DuplicateResourceGroup");
    let (status, _, done) = provider.send("PUT", &put, Some(same_group)).await;
    assert_eq!((status, &done), (dry_status, &rehearsed));
    assert_eq!(provider.send("GET", &put, None).await.0, 404);
}

#[tokio::test]
async fn refusals_of_the_router_have_the_form_of_all_others() {
    let provider = provider().await;
    let text = path("blue", API).replace("blue", "%ff");
    for (method, path, expected) in [
        ("GET", text.as_str(), (400, "InvalidRequestContent")),
        ("POST", &path("blue", API), (405, "MethodNotAllowed")),
        ("DELETE", "/admin/versions", (405, "MethodNotAllowed")),
        ("GET", "/nowhere", (404, "NotFound")),
    ] {
        let (status, headers, body) = provider.send(method, path, None).await;
        assert_eq!((status, code(&body)), expected, "{method} {path}: {body}");
        assert!(!body["error"]["message"].as_str().unwrap().is_empty());
        assert_eq!(headers.contains_key("allow"), status == 405, "{headers:?}");
    }
}

#[tokio::test]
async fn identities_and_groups_are_used_by_one_cluster() {
    let provider = provider().await;
    provider
        .send("PUT", &path("blue", API), Some(cluster("blue")))
        .await;
    let mut same_client = cluster("red");
    same_client["properties"]["servicePrincipalProfile"] =
        cluster("blue")["properties"]["servicePrincipalProfile"].clone();
    let (status, _, body) = provider
        .send("PUT", &path("red", API), Some(same_client))
        .await;
    assert_eq!((status, code(&body)), (400, "DuplicateClientID"));
    let mut same_group = cluster("red");
    same_group["properties"]["clusterProfile"]["resourceGroupId"] =
        cluster("blue")["properties"]["clusterProfile"]["resourceGroupId"].clone();
    let (status, _, body) = provider
        .send("PUT", &path("red", API), Some(same_group))
        .await;
    assert_eq!((status, code(&body)), (400, "DuplicateResourceGroup"));
    assert_eq!(provider.send("GET", &path("red", API), None).await.0, 404);
}

#[tokio::test]
async fn lists_are_paged_with_sealed_tokens() {
    let provider = provider().await;
    for number in 0..12 {
        let name = format!("c{number:02}x");
        let put = path(&name, API);
        let (status, ..) = provider.send("PUT", &put, Some(cluster(&name))).await;
        assert_eq!(status, 201);
    }
    let list = format!(
        "/subscriptions/{SUBSCRIPTION}/providers/Microsoft.RedHatOpenShift/openShiftClusters?api-version={API}"
    );
    let (status, _, first) = provider.send("GET", &list, None).await;
    assert_eq!(
        (status, first["value"].as_array().unwrap().len()),
        (200, 10)
    );
    let next = first["nextLink"].as_str().unwrap();
    let next = next
        .trim_start_matches("https://arm.example.com")
        .to_owned();
    assert!(!next.contains("c09x"), "a client cannot read the token");
    let (_, _, second) = provider.send("GET", &next, None).await;
    assert_eq!(second["value"].as_array().unwrap().len(), 2);
    assert!(second.get("nextLink").is_none());
    let stolen = next.replace(SUBSCRIPTION, "00000000-0000-0000-0000-000000000002");
    let (status, _, body) = provider.send("GET", &stolen, None).await;
    assert_eq!((status, code(&body)), (400, "InvalidParameter"));
}

#[expect(clippy::too_many_lines, reason = "a table of cases")]
#[tokio::test]
async fn hostile_requests_get_a_defined_answer_and_leave_nothing() {
    let provider = provider().await;
    let of = |name: &str| path(name, API);
    let base = format!("/subscriptions/{SUBSCRIPTION}/resourcegroups");
    let long = "x".repeat(1024 * 1024);
    let cases: Vec<(&str, String, Option<Value>, u16, &str)> = vec![
        (
            "PUT",
            of("blue"),
            Some(json!({"location": long})),
            400,
            "InvalidResource",
        ),
        ("PUT", of("blue"), None, 400, "InvalidRequestContent"),
        (
            "PUT",
            of("blue"),
            Some(json!([])),
            400,
            "InvalidRequestContent",
        ),
        (
            "PUT",
            of("blue"),
            Some(json!({"properties": {"unknown": 1}})),
            400,
            "InvalidRequestContent",
        ),
        (
            "PUT",
            of("blue"),
            Some(json!({"location": 7})),
            400,
            "InvalidRequestContent",
        ),
        (
            "PUT",
            path("blue", "2001-01-01"),
            Some(cluster("blue")),
            400,
            "InvalidResourceType",
        ),
        (
            "GET",
            "/subscriptions/x/providers/microsoft.redhatopenshift/openshiftclusters".to_owned(),
            None,
            400,
            "InvalidSubscriptionID",
        ),
        (
            "GET",
            format!(
                "{base}/a%2Fb/providers/microsoft.redhatopenshift/openshiftclusters/c?api-version={API}"
            ),
            None,
            400,
            "ResourceGroupNotFound",
        ),
        (
            "GET",
            format!("{base}/a/providers/microsoft.other/openshiftclusters/c?api-version={API}"),
            None,
            400,
            "InvalidResourceNamespace",
        ),
        (
            "GET",
            format!("{base}/a/providers/microsoft.redhatopenshift/others/c?api-version={API}"),
            None,
            400,
            "InvalidResourceType",
        ),
        ("GET", of("missing"), None, 404, "ResourceNotFound"),
        ("GET", "/nowhere".to_owned(), None, 404, "NotFound"),
        (
            "PUT",
            path("blue", "admin"),
            Some(cluster("blue")),
            400,
            "RequestNotAllowed",
        ),
    ];
    for (method, path, body, status, expected) in cases {
        let (got, _, answer) = provider.send(method, &path, body).await;
        assert_eq!((got, code(&answer)), (status, expected), "{method} {path}");
        assert!(
            answer["error"]["message"]
                .as_str()
                .is_some_and(|it| it.len() > 5)
        );
    }
    let (put, xml) = (of("blue"), [("content-type", "text/xml")]);
    let (status, _, body) = provider
        .send_with("PUT", &put, Some(cluster("blue")), &xml)
        .await;
    assert_eq!((status, code(&body)), (415, "UnsupportedMediaType"));
    assert_eq!(
        provider.store.queue_length(CLUSTERS, "work").await.unwrap(),
        0
    );
    assert_eq!(
        provider.send("DELETE", &of("missing"), None).await.0,
        StatusCode::NO_CONTENT
    );
}

#[tokio::test]
async fn a_subscription_that_is_not_registered_creates_nothing() {
    let provider = provider().await;
    let subscription = format!("/subscriptions/{SUBSCRIPTION}");
    provider
        .send("PUT", &subscription, Some(json!({"state": "Suspended"})))
        .await;
    let (status, _, body) = provider
        .send("PUT", &path("blue", API), Some(cluster("blue")))
        .await;
    assert_eq!((status, code(&body)), (400, "InvalidSubscriptionState"));
}

#[expect(clippy::too_many_lines, reason = "a table of cases")]
#[tokio::test]
async fn versions_credentials_preflight_and_operations_are_served() {
    let provider = provider().await;
    let location = format!(
        "/subscriptions/{SUBSCRIPTION}/providers/Microsoft.RedHatOpenShift/locations/local"
    );
    let (status, _, body) = provider
        .send(
            "GET",
            &format!("{location}/openShiftVersions?api-version={API}"),
            None,
        )
        .await;
    assert_eq!(
        (status, body["value"].as_array().unwrap().len()),
        (200, 2),
        "{body}"
    );
    let (status, _, body) = provider
        .send(
            "GET",
            &format!("{location}/openShiftVersions/9.9.9?api-version={API}"),
            None,
        )
        .await;
    assert_eq!((status, code(&body)), (400, "ResourceNotFound"));
    let (_, _, body) = provider
        .send(
            "GET",
            "/providers/Microsoft.RedHatOpenShift/operations",
            None,
        )
        .await;
    assert_eq!(body["value"].as_array().unwrap().len(), 11);

    let preflight = format!(
        "/subscriptions/{SUBSCRIPTION}/resourcegroups/group/providers/Microsoft.RedHatOpenShift/deployments/d/preflight?api-version={API}"
    );
    let resource = |name: &str, count: i64| {
        let mut resource = cluster(name);
        resource["properties"]["workerProfiles"][0]["count"] = count.into();
        resource["name"] = name.into();
        resource["type"] = "Microsoft.RedHatOpenShift/openShiftClusters".into();
        resource["apiVersion"] = API.into();
        json!({"resources": [resource]})
    };
    let (status, _, body) = provider
        .send("POST", &preflight, Some(resource("blue", 3)))
        .await;
    assert_eq!(
        (status, &body["status"]),
        (200, &json!("Succeeded")),
        "{body}"
    );
    let (status, _, body) = provider
        .send("POST", &preflight, Some(resource("blue", 51)))
        .await;
    assert_eq!((status, &body["status"]), (200, &json!("Failed")));

    provider
        .send("PUT", &path("blue", API), Some(cluster("blue")))
        .await;
    let credentials = path("blue", API).replace('?', "/listCredentials?");
    let (status, _, body) = provider.send("POST", &credentials, None).await;
    assert_eq!(
        (status, code(&body)),
        (400, "RequestNotAllowed"),
        "it is being created"
    );
    succeed(&provider, "blue").await;
    let (status, _, body) = provider.send("POST", &credentials, None).await;
    assert_eq!(
        (status, &body["kubeadminUsername"]),
        (200, &json!("kubeadmin"))
    );
    assert_eq!(provider.send("GET", "/healthz/ready", None).await.0, 200);
}
