//! Requests and answers as they are, under a paused clock.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode, header::CONTENT_TYPE};
use http_body_util::{BodyExt, Full};
use neap_oracle::{Tapped, Watched};
use neap_pocket::wire::{Body, Service};
use serde_json::{Value, json};
use tower::ServiceExt;

/// Sends a request and reads the whole answer.
#[expect(clippy::disallowed_methods, reason = "answers of a test are small")]
pub(crate) async fn send(
    service: &Watched<Service>,
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

/// Begins a watch.
#[allow(dead_code, reason = "not every test watches")]
pub(crate) async fn open(service: &Watched<Service>, uri: &str) -> Tapped<Body> {
    let request = Request::get(uri).body(Full::<Bytes>::default()).unwrap();
    let answer = service.clone().oneshot(request).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    answer.into_body()
}

/// What a watch has to say now: everything until it is silent, on a clock that does not wait.
#[allow(dead_code, reason = "not every test watches")]
pub(crate) async fn lines(stream: &mut Tapped<Body>) -> Vec<Value> {
    let mut lines = Vec::new();
    let silence = Duration::from_secs(1);
    while let Ok(Some(frame)) = tokio::time::timeout(silence, stream.frame()).await {
        let data = frame.unwrap().into_data().unwrap();
        let parts = data.split(|&byte| byte == b'\n');
        let parts = parts.filter(|line| !line.is_empty());
        lines.extend(parts.map(|line| serde_json::from_slice::<Value>(line).unwrap()));
    }
    lines
}

/// The names on a list, in its order.
#[allow(dead_code, reason = "not every test lists")]
pub(crate) fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().unwrap().iter();
    items
        .map(|item| item["metadata"]["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Something with a name, for any kind that needs no more.
pub(crate) fn map(name: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"color": "red"}}})
}
