//! Requests that no well-behaved client sends.

use super::*;

/// Sends these bytes as the body of a PUT of `blue`. Returns status and code.
async fn put(provider: &Provider, body: &[u8], kind: Option<&str>) -> (u16, String) {
    let headers: Vec<_> = kind.map(|it| ("content-type", it)).into_iter().collect();
    let path = path("blue", API);
    let (status, _, answer) = provider
        .send_bytes("PUT", &path, body.to_vec(), &headers)
        .await;
    if status >= 400 {
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(message.len() > 5, "{answer}");
        assert!(!answer.to_string().contains("very-hush"), "{answer}");
    }
    (status, code(&answer).to_owned())
}

async fn nothing_is_left(provider: &Provider) {
    let queued = provider.store.queue_length(CLUSTERS, "work").await.unwrap();
    assert_eq!(queued, 0);
    let (_, _, operations) = provider.send("GET", "/admin/operations", None).await;
    assert_eq!(operations["value"], json!([]));
}

#[tokio::test]
async fn bodies_that_two_programs_could_read_differently_are_refused() {
    let provider = provider().await;
    let json = Some("application/json");
    let deep = "[".repeat(100_000);
    let nested = format!("{}1{}", "{\"a\":".repeat(70), "}".repeat(70));
    let secret = r#"{"properties": {"servicePrincipalProfile": {"clientSecret": "very-hush""#;
    let cases: [(&str, &[u8]); 12] = [
        ("a member twice", br#"{"location": "a", "location": "b"}"#),
        (
            "a member twice below",
            br#"{"tags": {"a": "1", "\u0061": "2"}}"#,
        ),
        ("nested without end", deep.as_bytes()),
        ("nested deeply", nested.as_bytes()),
        ("no UTF-8", b"{\"location\": \"\xff\xfe\"}"),
        ("half of a pair", br#"{"location": "\ud800"}"#),
        ("cut off", secret.as_bytes()),
        ("followed by more", br#"{"location": "local"} {}"#),
        ("a number out of range", br#"{"location": 1e999}"#),
        ("no number", br#"{"location": NaN}"#),
        ("a text", br#""local""#),
        ("null", b"null"),
    ];
    for (what, body) in cases {
        let (status, code) = put(&provider, body, json).await;
        assert_eq!((status, &*code), (400, "InvalidRequestContent"), "{what}");
    }
    nothing_is_left(&provider).await;
}

#[tokio::test]
async fn a_body_of_one_mebibyte_is_read_and_of_one_byte_more_is_not() {
    let provider = provider().await;
    let mut longest = cluster("blue").to_string().into_bytes();
    longest.resize(1 << 20, b' ');
    let json = Some("application/json");
    let longer = [&*longest, b" "].concat();
    let refused = put(&provider, &longer, json).await;
    assert_eq!(refused, (400, "InvalidResource".to_owned()));
    nothing_is_left(&provider).await;
    assert_eq!(put(&provider, &longest, json).await.0, 201);
}

#[tokio::test]
async fn a_template_has_resources_and_nothing_else() {
    let provider = provider().await;
    let preflight = format!(
        "/subscriptions/{SUBSCRIPTION}/resourcegroups/group/providers/Microsoft.RedHatOpenShift/deployments/d/preflight?api-version={API}"
    );
    for (resources, target) in [
        (json!([5]), "resources[0]"),
        (
            json!([{"type": "Microsoft.Other/things"}, null]),
            "resources[1]",
        ),
        (json!([[]]), "resources[0]"),
        (json!([{"type": []}]), "resources[0].type"),
    ] {
        let template = json!({"resources": resources});
        let (_, _, answer) = provider.send("POST", &preflight, Some(template)).await;
        assert_eq!(answer["status"], "Failed", "{answer}");
        let found = (code(&answer), answer["error"]["target"].as_str());
        assert_eq!(found, ("InvalidRequestContent", Some(target)), "{answer}");
    }
}

#[tokio::test]
async fn a_body_has_the_media_type_json() {
    let provider = provider().await;
    let body = cluster("blue").to_string().into_bytes();
    for kind in [
        None,
        Some("text/plain"),
        Some("application/jsonx"),
        Some("application/x-www-form-urlencoded"),
        Some("application/merge-patch+json"),
    ] {
        let refused = put(&provider, &body, kind).await;
        assert_eq!(
            refused,
            (415, "UnsupportedMediaType".to_owned()),
            "{kind:?}"
        );
    }
    nothing_is_left(&provider).await;
    let accepted = Some("Application/JSON; charset=utf-8");
    assert_eq!(put(&provider, &body, accepted).await.0, 201);
}

#[tokio::test]
async fn one_cluster_has_one_id_however_its_path_is_written() {
    let provider = provider().await;
    let encoded = path("%42lue", API);
    let (status, _, body) = provider.send("PUT", &encoded, Some(cluster("blue"))).await;
    assert_eq!(status, 201, "{body}");
    let id = path("Blue", API);
    let id = id.split('?').next().unwrap();
    assert_eq!(
        (&body["id"], &body["name"]),
        (&id.into(), &Value::from("Blue"))
    );
    let written = path("BLUE", API);
    let doubled = written.replace("/resourceGroups/", "//resourcegroups///");
    let trailing = written.replace('?', "/?");
    let kinds = written.replace("Microsoft.RedHatOpenShift", "MICROSOFT.redhat%4fpenshift");
    for path in [&written, &doubled, &trailing, &kinds] {
        let (status, _, found) = provider.send("GET", path, None).await;
        assert_eq!((status, &found["id"]), (200, &id.into()), "{path}");
        // It is the same cluster, and busy.
        let (status, _, busy) = provider.send("PUT", path, Some(cluster("blue"))).await;
        assert_eq!((status, code(&busy)), (400, "RequestNotAllowed"), "{path}");
    }
    for name in [
        "%2e%2e",
        "..",
        "a%00b",
        "a%2Fb",
        "a%5Cb",
        // The sign of Kelvin has a lower case that is an ASCII letter.
        "%E2%84%AA",
        "%ff",
        "a%20b",
        "a.",
        &"a".repeat(91),
    ] {
        let put = path(name, API);
        let (status, _, body) = provider.send("PUT", &put, Some(cluster("other"))).await;
        assert!((400..405).contains(&status), "{name}: {status} {body}");
    }
    let queued = provider.store.queue_length(CLUSTERS, "work").await.unwrap();
    assert_eq!(queued, 1);
}

#[tokio::test]
async fn a_body_that_names_another_cluster_than_its_path_is_refused() {
    let provider = provider().await;
    let own = path("blue", API);
    let own = own.split('?').next().unwrap();
    for (member, value, expected) in [
        ("id", own.replace("blue", "red"), "MismatchingResourceID"),
        ("name", "red".to_owned(), "MismatchingResourceName"),
        (
            "type",
            "Microsoft.Other/things".to_owned(),
            "MismatchingResourceType",
        ),
    ] {
        let mut body = cluster("blue");
        body[member] = value.into();
        let body = body.to_string().into_bytes();
        let refused = put(&provider, &body, Some("application/json")).await;
        assert_eq!(refused, (400, expected.to_owned()));
    }
    nothing_is_left(&provider).await;
    let mut body = cluster("blue");
    body["id"] = own.to_uppercase().into();
    body["name"] = "BLUE".into();
    let body = body.to_string().into_bytes();
    let accepted = put(&provider, &body, Some("application/json")).await;
    assert_eq!(accepted.0, 201, "{accepted:?}");
}

#[tokio::test]
async fn a_handler_that_panics_is_answered_without_its_particulars() {
    let panicking = axum::routing::get(async || -> StatusCode { panic!("a secret") });
    let router = axum::Router::new()
        .route("/", panicking)
        .layer(axum::middleware::from_fn(super::super::middleware::contain));
    let request = http::Request::new(axum::body::Body::empty());
    let response = tower::ServiceExt::oneshot(router, request).await.unwrap();
    assert_eq!(response.status(), 500);
    let body = axum::body::to_bytes(response.into_body(), 1 << 16).await;
    let body: Value = serde_json::from_slice(&body.unwrap()).unwrap();
    assert_eq!(code(&body), "InternalServerError");
    assert!(!body.to_string().contains("a secret"), "{body}");
}
