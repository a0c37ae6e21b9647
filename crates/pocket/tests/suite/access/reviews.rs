//! Access reviews over HTTP without a socket.

use serde_json::json;

use super::client::TestClient;

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

#[tokio::test(start_paused = true)]
async fn reviews_can_be_created_and_nothing_else() {
    let admin = TestClient::new().await;
    for (method, path, code) in [
        ("GET", REVIEWS.to_owned(), 405),
        ("DELETE", REVIEWS.to_owned(), 405),
        ("GET", format!("{REVIEWS}/x"), 404),
        ("PUT", format!("{REVIEWS}/x"), 404),
    ] {
        let (answer, _) = admin.request(method, &path, json!({})).await;
        assert_eq!(answer, code, "{method} {path}");
    }
    let (_, list) = admin
        .request("GET", "/apis/authorization.k8s.io/v1", json!(null))
        .await;
    let rows = list["resources"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    for row in rows {
        assert_eq!(row["verbs"], json!(["create"]), "{row}");
        assert!(row.get("storageVersionHash").is_none(), "{row}");
    }
}

#[tokio::test(start_paused = true)]
async fn questions_that_cannot_be_answered_are_refused_by_field() {
    let pods = json!({"verb": "get", "resource": "pods"});
    let local = "/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews";
    let admin = TestClient::new().await;
    for (path, review, field, detail) in [
        (
            REVIEWS,
            json!({"spec": {"user": "bob"}}),
            "spec.resourceAttributes",
            "Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified",
        ),
        (
            REVIEWS,
            json!({"spec": {"resourceAttributes": pods}}),
            "spec.user",
            "Invalid value: \"\": at least one of user or group must be specified",
        ),
        (
            REVIEWS,
            json!({"spec": {"user": "bob", "resourceAttributes": pods, "nonResourceAttributes": {"path": "/x"}}}),
            "spec.nonResourceAttributes",
            "Invalid value: {\"Path\":\"/x\",\"Verb\":\"\"}: cannot be specified in combination with resourceAttributes",
        ),
        (
            local,
            json!({"spec": {"user": "bob", "resourceAttributes": pods}}),
            "spec.resourceAttributes.namespace",
            "Invalid value: \"\": must match metadata.namespace",
        ),
    ] {
        let (code, status) = admin.request("POST", path, review).await;
        assert_eq!(code, 422, "{status}");
        let cause = &status["details"]["causes"][0];
        assert_eq!(
            (&cause["field"], &cause["message"]),
            (&json!(field), &json!(detail))
        );
        let message = status["message"].as_str().unwrap();
        assert!(
            message.starts_with(".authorization.k8s.io \"\" is invalid: "),
            "{message}"
        );
    }
    let named =
        json!({"metadata": {"name": "x"}, "spec": {"user": "bob", "resourceAttributes": pods}});
    let (code, status) = admin.request("POST", REVIEWS, named).await;
    assert_eq!(
        (code, &status["details"]["causes"][0]["field"]),
        (422, &json!("metadata"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_selection_is_told_in_one_of_two_ways() {
    let admin = TestClient::new().await;
    let requirement = json!({"key": "x", "operator": "In", "values": ["a"]});
    for (selector, field) in [
        (json!({}), "requirements"),
        (
            json!({"rawSelector": "a=b", "requirements": [requirement]}),
            "rawSelector",
        ),
    ] {
        let asked = json!({"verb": "list", "resource": "pods", "fieldSelector": selector});
        let review = json!({"spec": {"user": "bob", "resourceAttributes": asked}});
        let (code, status) = admin.request("POST", REVIEWS, review).await;
        let field = format!("spec.resourceAttributes.fieldSelector.{field}");
        let found = &status["details"]["causes"][0]["field"];
        assert_eq!((code, found), (422, &json!(field)));
    }
}
