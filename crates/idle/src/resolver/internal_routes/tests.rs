use std::collections::BTreeMap;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Limited};
use serde_json::json;

use super::*;
use crate::{
    api::wire::{DirectoryEntry, ServiceActivity},
    auth::{Denied, TokenReviewer},
};

#[derive(Debug)]
struct FakeReviewer;

impl TokenReviewer for FakeReviewer {
    fn username<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<String>, Denied>> {
        let username = (token == "good").then(|| "system:serviceaccount:elasti:o".to_owned());
        Box::pin(async move { Ok(username) })
    }
}

#[derive(Debug)]
struct FakeResolver {
    missing: Vec<String>,
}

impl ResolverState for FakeResolver {
    fn holds(&self, namespace: &str, service: &str) -> bool {
        (namespace, service) == ("shop", "cart")
    }

    fn directory(&self) -> Directory {
        let entry = DirectoryEntry {
            name: "sleepy".into(),
            spec: json!({"service": "cart"}),
            status: json!({}),
        };
        let services = BTreeMap::from([("shop/cart".to_owned(), entry)]);
        Directory { services }
    }

    fn not_ready(&self) -> Vec<String> {
        self.missing.clone()
    }

    fn probe(&self, probe: ProbeRequest) -> BoxFuture<'_, ProbeReport> {
        let failed = probe.count;
        let sources = Vec::new();
        Box::pin(async move { ProbeReport { sources, failed } })
    }

    fn accepted(&self, query: AcceptedQuery) -> AcceptedReport {
        let taken = query.sources.into_iter();
        AcceptedReport {
            taken: taken.filter(|source| source.port() == 1).collect(),
            strangers: Vec::new(),
        }
    }

    fn activity(&self) -> ActivityReport {
        let activity = ServiceActivity {
            last: "2026-01-01T00:00:00Z".parse().unwrap(),
            held: 1,
            requests: 2,
            cold: None,
        };
        let services = BTreeMap::from([("shop/cart".to_owned(), activity)]);
        ActivityReport { services }
    }

    fn metrics(&self) -> ChunkedText {
        "# EOF\n".to_owned().into()
    }
}

#[expect(clippy::disallowed_methods, reason = "limited")]
async fn call(
    missing: &[&str],
    method: &str,
    path: &str,
    token: &str,
    body: &str,
) -> (u16, String) {
    let missing = missing.iter().map(ToString::to_string).collect();
    let routes = InternalRoutes {
        authenticator: Authenticator::for_service_accounts(
            Arc::new(FakeReviewer),
            [("elasti", "o")],
        ),
        resolver: Arc::new(FakeResolver { missing }),
    };
    let request = Request::builder().method(method).uri(path);
    let request = request.header("authorization", format!("Bearer {token}"));
    let request = request.body(Bytes::from(body.to_owned())).unwrap();
    let response = routes.handle(&request).await;
    let status = response.status().as_u16();
    let body = Limited::new(response.into_body(), 1 << 20).collect().await;
    let body = body.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn every_route_responds_byte_for_byte() {
    for (method, path, body, expected) in [
        ("GET", "/healthz", "", "ok"),
        ("GET", "/readyz", "", "ok"),
        ("GET", "/metrics", "", "# EOF\n"),
        (
            "GET",
            "/queue-status?namespace=shop&service=cart",
            "",
            r#"{"queueStatus":1}"#,
        ),
        (
            "GET",
            "/queue-status?namespace=other&service=cart",
            "",
            r#"{"queueStatus":0}"#,
        ),
        ("GET", "/queue-status", "", r#"{"queueStatus":0}"#),
        (
            "GET",
            "/crd-cache-status",
            "",
            r#"{"count":1,"services":[{"namespacedName":"shop/cart","name":"sleepy","spec":{"service":"cart"},"status":{}}]}"#,
        ),
        (
            "POST",
            "/probe",
            r#"{"address":"10.0.0.7","port":80,"count":3}"#,
            r#"{"sources":[],"failed":3}"#,
        ),
        (
            "POST",
            "/taken",
            r#"{"sources":["10.0.0.1:1","10.0.0.1:2"]}"#,
            r#"{"taken":["10.0.0.1:1"]}"#,
        ),
        (
            "GET",
            "/activity",
            "",
            r#"{"services":{"shop/cart":{"last":"2026-01-01T00:00:00Z","held":1,"requests":2}}}"#,
        ),
    ] {
        let response = call(&[], method, path, "good", body).await;
        assert_eq!(response, (200, expected.to_owned()), "{path}");
    }
}

#[tokio::test]
async fn only_health_and_metrics_need_no_token() {
    for (method, path, status) in [
        ("GET", "/healthz", 200),
        ("GET", "/readyz", 200),
        ("GET", "/metrics", 200),
        ("GET", "/queue-status", 401),
        ("GET", "/crd-cache-status", 401),
        ("GET", "/activity", 401),
        ("POST", "/probe", 401),
        ("POST", "/taken", 401),
    ] {
        assert_eq!(call(&[], method, path, "bad", "").await.0, status, "{path}");
        let other = if method == "GET" { "POST" } else { "GET" };
        assert_eq!(call(&[], other, path, "good", "").await.0, 405, "{path}");
    }
    assert_eq!(call(&[], "GET", "/else", "good", "").await.0, 404);
}

#[tokio::test]
async fn readiness_names_what_is_missing_and_health_does_not_depend_on_it() {
    let (status, text) = call(&["the routes"], "GET", "/readyz", "", "").await;
    assert_eq!((status, text.as_str()), (503, "the routes\n"));
    assert_eq!(
        call(&["the routes"], "GET", "/healthz", "", "").await.0,
        200
    );
}

#[tokio::test]
async fn invalid_requests_are_refused() {
    let many = format!(
        r#"{{"sources":[{}]}}"#,
        vec![r#""1.1.1.1:1""#; 5000].join(",")
    );
    for (path, body) in [
        ("/probe", ""),
        ("/probe", r#"{"address":"host","port":80,"count":1}"#),
        ("/probe", r#"{"address":"10.0.0.7","port":70000,"count":1}"#),
        ("/probe", r#"{"address":"10.0.0.7","port":80,"count":65}"#),
        ("/taken", r#"{"sources":["here"]}"#),
        ("/taken", many.as_str()),
    ] {
        assert_eq!(call(&[], "POST", path, "good", body).await.0, 400, "{path}");
    }
}
