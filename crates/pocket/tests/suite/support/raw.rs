//! Raw requests and responses.

use bytes::Bytes;
use http::{Request, StatusCode, header::CONTENT_TYPE};
use http_body_util::{BodyExt, Full};
use neap_oracles::ObservedService;
use neap_pocket::wire::Service;
use serde_json::{Value, json};
use tower::ServiceExt;

/// Sends a request and reads the whole response.
#[expect(clippy::disallowed_methods, reason = "answers of a test are small")]
pub(crate) async fn send(
    service: &ObservedService<Service>,
    method: &str,
    uri: &str,
    body: Option<Value>,
) -> (StatusCode, Value) {
    let kind = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    let body = body.map(|body| body.to_string()).unwrap_or_default();
    let request = Request::builder()
        .method(method)
        .uri(uri)
        .header(CONTENT_TYPE, kind)
        .body(Full::<Bytes>::from(body))
        .unwrap();
    let answer = service.clone().oneshot(request).await.unwrap();
    let status = answer.status();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap())
}

/// An object with a name, for any kind that needs no more.
pub(crate) fn map(name: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"color": "red"}}})
}
