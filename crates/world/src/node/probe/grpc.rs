//! The gRPC health protocol: one request, one response.

use bytes::{BufMut, Bytes, BytesMut};
use http_body_util::{BodyExt, Full, Limited};
use hyper::{Request, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo};

use super::check::connect;

/// The maximum size of a response; a valid one has a few bytes.
const MAX_RESPONSE_BYTES: usize = 4096;

#[expect(
    clippy::disallowed_methods,
    reason = "the body that is collected is limited"
)]
pub(super) async fn check(host: &str, port: u16, service: &str) -> Result<(), String> {
    let stream = connect(host, port).await?;
    let message = |error: &dyn std::error::Error| format!("grpc {host}:{port}: {error}");
    let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|error| message(&error))?;
    let request = Request::post(format!("http://{host}:{port}/grpc.health.v1.Health/Check"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Full::new(health_request(service)))
        .map_err(|error| message(&error))?;
    let response = async {
        let answer = sender
            .send_request(request)
            .await
            .map_err(|error| message(&error))?;
        let body = Limited::new(answer.into_body(), MAX_RESPONSE_BYTES)
            .collect()
            .await;
        let body = body.map_err(|error| message(&*error))?;
        parse_response(&body.to_bytes())
    };
    tokio::select! {
        answer = response => answer,
        ended = connection => Err(ended.err().map_or_else(|| "connection closed".to_owned(), |error| message(&error))),
    }
}

/// A `HealthCheckRequest` that names a service, in a frame.
fn health_request(service: &str) -> Bytes {
    let mut message = BytesMut::new();
    if !service.is_empty() {
        message.put_u8(0x0a);
        message.put_u8(u8::try_from(service.len()).unwrap_or(u8::MAX));
        message.put_slice(&service.as_bytes()[..service.len().min(127)]);
    }
    let mut frame = BytesMut::new();
    frame.put_u8(0);
    frame.put_u32(u32::try_from(message.len()).unwrap_or(0));
    frame.put_slice(&message);
    frame.freeze()
}

/// Reads the status of a `HealthCheckResponse` in its frame.
fn parse_response(answer: &[u8]) -> Result<(), String> {
    match answer.get(5..) {
        Some([0x08, 1, ..]) => Ok(()),
        Some([0x08, status, ..]) => Err(format!(
            "service unhealthy (responded with status {status})"
        )),
        _ => Err("the response is not of the gRPC health protocol".to_owned()),
    }
}
