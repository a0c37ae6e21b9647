//! Requests that only ask what would happen.

use neap_store::ListRequest;

use super::*;
use crate::documents::OPERATIONS;

/// The number of operations that were ever begun.
async fn operations(provider: &Provider) -> usize {
    let request = ListRequest {
        collection: OPERATIONS,
        scope: Scope::Everywhere,
        prefix: "",
        after: None,
        limit: 100,
    };
    provider.store.list(&request).await.unwrap().len()
}

async fn state(provider: &Provider, name: &str) -> Value {
    let (_, _, body) = provider.send("GET", &path(name, API), None).await;
    body["properties"]["provisioningState"].clone()
}

#[tokio::test]
async fn a_dry_run_of_a_deletion_deletes_nothing() {
    let provider = provider().await;
    let blue = path("blue", API);
    let dry = format!("{blue}&dryRun=true");
    provider.send("PUT", &blue, Some(cluster("blue"))).await;
    let (status, _, body) = provider.send("DELETE", &dry, None).await;
    assert_eq!((status, code(&body)), (400, "RequestNotAllowed"), "busy");
    succeed(&provider, "blue").await;
    let (status, headers, body) = provider.send("DELETE", &dry, None).await;
    assert_eq!(
        (status, &body["wouldBe"], &body["provisioningState"]),
        (200, &json!("deleted"), &json!("Deleting")),
        "{body}"
    );
    assert_eq!(body["resource"]["name"], "blue");
    assert!(!headers.contains_key("azure-asyncoperation"));
    assert_eq!(state(&provider, "blue").await, "Succeeded");
    assert_eq!(operations(&provider).await, 1, "the creation");
    let queued = provider.store.queue_length(CLUSTERS, "work").await.unwrap();
    assert_eq!(queued, 0);
    let none = format!("{}&dryRun=true", path("none", API));
    assert_eq!(provider.send("DELETE", &none, None).await.0, 204);
}

#[tokio::test]
async fn a_dry_run_of_the_last_request_is_no_acceptance() {
    let provider = provider().await;
    let said = [("x-ms-client-request-id", "once")];
    let blue = path("blue", API);
    let dry = format!("{blue}&dryRun=true");
    let patch = || Some(json!({"tags": {"team": "red"}}));
    provider.send("PUT", &blue, Some(cluster("blue"))).await;
    succeed(&provider, "blue").await;
    provider.send_with("PATCH", &blue, patch(), &said).await;
    succeed(&provider, "blue").await;
    let (status, headers, body) = provider.send_with("PATCH", &dry, patch(), &said).await;
    assert_eq!(
        (status, &body["wouldBe"]),
        (200, &json!("updated")),
        "{body}"
    );
    assert!(!headers.contains_key("azure-asyncoperation"));
    provider.send_with("DELETE", &blue, None, &said).await;
    let (status, headers, body) = provider.send_with("DELETE", &dry, None, &said).await;
    assert_eq!((status, code(&body)), (400, "RequestNotAllowed"));
    assert!(!headers.contains_key("azure-asyncoperation"));
    assert_eq!(operations(&provider).await, 3);
}

#[tokio::test]
async fn a_flag_that_cannot_be_understood_or_followed_is_refused() {
    let provider = provider().await;
    let blue = path("blue", API);
    for value in ["1", "yes", "", "true&dryRun=no"] {
        let dry = format!("{blue}&dryRun={value}");
        for (method, body) in [
            ("PUT", Some(cluster("blue"))),
            ("PATCH", Some(json!({}))),
            ("DELETE", None),
        ] {
            let (status, _, answer) = provider.send(method, &dry, body).await;
            let target = &answer["error"]["target"];
            assert_eq!((status, target), (400, &json!("dryRun")), "{method} {dry}");
        }
    }
    assert_eq!(operations(&provider).await, 0);
    let real = format!("{blue}&dryRun=false");
    let (status, headers, _) = provider.send("PUT", &real, Some(cluster("blue"))).await;
    assert_eq!(status, 201);
    let operation = headers["azure-asyncoperation"].to_str().unwrap();
    let operation = operation.split(['/', '?']).nth_back(1).unwrap();
    let subscription = format!("/subscriptions/{SUBSCRIPTION}");
    let version = json!({"properties": {
        "version": "4.20.1", "openShiftPullspec": "a", "installerPullspec": "b",
    }});
    let of_operation = |what: &str| format!("/admin/operations/{SUBSCRIPTION}/{operation}/{what}");
    for (method, path, body) in [
        ("PUT", subscription, Some(json!({"state": "Suspended"}))),
        ("PUT", "/admin/versions".to_owned(), Some(version)),
        ("DELETE", "/admin/versions/4.18.1".to_owned(), None),
        (
            "DELETE",
            "/admin/platformworkloadidentityrolesets/4.19".to_owned(),
            None,
        ),
        ("POST", of_operation("cancel"), None),
        ("POST", of_operation("retry"), None),
    ] {
        let dry = format!("{path}?dryRun=true");
        let (status, _, answer) = provider.send(method, &dry, body).await;
        let target = &answer["error"]["target"];
        assert_eq!((status, target), (400, &json!("dryRun")), "{method} {dry}");
    }
    let (_, _, versions) = provider.send("GET", "/admin/versions?dryRun=x", None).await;
    assert_eq!(versions["value"].as_array().unwrap().len(), 2);
    let (_, _, shown) = provider
        .send("GET", of_operation("").trim_end_matches('/'), None)
        .await;
    assert_eq!(shown["cancelRequested"], Value::Null, "{shown}");
    assert_eq!(operations(&provider).await, 1);
}
