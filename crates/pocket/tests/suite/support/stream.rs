//! Raw watches under a paused clock.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use neap_oracles::{ObservedBody, ObservedService};
use neap_pocket::wire::{Body, Service};
use serde_json::Value;
use tower::ServiceExt;

/// Opens a watch.
pub(crate) async fn open(service: &ObservedService<Service>, uri: &str) -> ObservedBody<Body> {
    let request = Request::get(uri).body(Full::<Bytes>::default()).unwrap();
    let answer = service.clone().oneshot(request).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    answer.into_body()
}

/// The lines of a watch until it is silent, on a paused clock.
pub(crate) async fn lines(stream: &mut ObservedBody<Body>) -> Vec<Value> {
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
