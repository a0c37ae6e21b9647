use std::collections::BTreeMap;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Limited};
use serde_json::json;

use super::*;
use crate::{
    api::wire::{Entry, ServiceActivity},
    operator::tokens::{Denied, Tokens},
};

#[derive(Debug)]
struct Clerk;

impl Tokens for Clerk {
    fn owner<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<String>, Denied>> {
        let owner = (token == "good").then(|| "system:serviceaccount:elasti:o".to_owned());
        Box::pin(async move { Ok(owner) })
    }
}

#[derive(Debug)]
struct Fixed {
    missing: Vec<String>,
}

impl Resolver for Fixed {
    fn holds(&self, namespace: &str, service: &str) -> bool {
        (namespace, service) == ("shop", "cart")
    }

    fn directory(&self) -> Directory {
        let entry = Entry {
            name: "sleepy".into(),
            spec: json!({"service": "cart"}),
            status: json!({}),
        };
        let services = BTreeMap::from([("shop/cart".to_owned(), entry)]);
        Directory { services }
    }

    fn missing(&self) -> Vec<String> {
        self.missing.clone()
    }

    fn probe(&self, probe: Probe) -> BoxFuture<'_, Probed> {
        let failed = probe.count;
        let sources = Vec::new();
        Box::pin(async move { Probed { sources, failed } })
    }

    fn taken(&self, asked: Took) -> Taken {
        let taken = asked.sources.into_iter();
        Taken {
            taken: taken.filter(|source| source.port() == 1).collect(),
            strangers: Vec::new(),
        }
    }

    fn activity(&self) -> Activity {
        let activity = ServiceActivity {
            last: "2026-01-01T00:00:00Z".parse().unwrap(),
            held: 1,
            requests: 2,
            cold: None,
        };
        let services = BTreeMap::from([("shop/cart".to_owned(), activity)]);
        Activity { services }
    }

    fn metrics(&self) -> Pages {
        "# EOF\n".to_owned().into()
    }
}

#[expect(clippy::disallowed_methods, reason = "limited")]
async fn asked(
    missing: &[&str],
    method: &str,
    path: &str,
    token: &str,
    body: &str,
) -> (u16, String) {
    let missing = missing.iter().map(ToString::to_string).collect();
    let routes = ResolverRoutes {
        door: Door::for_accounts(Arc::new(Clerk), [("elasti", "o")]),
        resolver: Arc::new(Fixed { missing }),
    };
    let request = Request::builder().method(method).uri(path);
    let request = request.header("authorization", format!("Bearer {token}"));
    let request = request.body(Bytes::from(body.to_owned())).unwrap();
    let answer = routes.answer(&request).await;
    let status = answer.status().as_u16();
    let body = Limited::new(answer.into_body(), 1 << 20).collect().await;
    let body = body.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn every_endpoint_answers_byte_for_byte() {
    for (method, path, body, says) in [
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
        let answer = asked(&[], method, path, "good", body).await;
        assert_eq!(answer, (200, says.to_owned()), "{path}");
    }
}

#[tokio::test]
async fn only_how_it_is_can_be_asked_without_a_token() {
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
        assert_eq!(
            asked(&[], method, path, "bad", "").await.0,
            status,
            "{path}"
        );
        let other = if method == "GET" { "POST" } else { "GET" };
        assert_eq!(asked(&[], other, path, "good", "").await.0, 405, "{path}");
    }
    assert_eq!(asked(&[], "GET", "/else", "good", "").await.0, 404);
}

#[tokio::test]
async fn what_is_missing_is_said_and_does_no_harm_to_its_health() {
    let (status, text) = asked(&["the routes"], "GET", "/readyz", "", "").await;
    assert_eq!((status, text.as_str()), (503, "the routes\n"));
    assert_eq!(
        asked(&["the routes"], "GET", "/healthz", "", "").await.0,
        200
    );
}

#[tokio::test]
async fn what_cannot_be_meant_is_refused() {
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
        assert_eq!(
            asked(&[], "POST", path, "good", body).await.0,
            400,
            "{path}"
        );
    }
}
