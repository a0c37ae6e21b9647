//! The health protocol of gRPC: one message there, one back.

use bytes::{BufMut, Bytes, BytesMut};
use http_body_util::{BodyExt, Full, Limited};
use hyper::{Request, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo};

use super::check::connect;

/// An answer has two bytes; whoever sends many more does not speak the protocol.
const LONGEST: usize = 4096;

#[expect(
    clippy::disallowed_methods,
    reason = "the body that is collected is limited"
)]
pub(super) async fn check(host: &str, port: u16, service: &str) -> Result<(), String> {
    let stream = connect(host, port).await?;
    let words = |error: &dyn std::error::Error| format!("grpc {host}:{port}: {error}");
    let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|error| words(&error))?;
    let request = Request::post(format!("http://{host}:{port}/grpc.health.v1.Health/Check"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Full::new(question(service)))
        .map_err(|error| words(&error))?;
    let asked = async {
        let answer = sender
            .send_request(request)
            .await
            .map_err(|error| words(&error))?;
        let body = Limited::new(answer.into_body(), LONGEST).collect().await;
        let body = body.map_err(|error| words(&*error))?;
        judge(&body.to_bytes())
    };
    tokio::select! {
        answer = asked => answer,
        ended = connection => Err(ended.err().map_or_else(|| "hung up".to_owned(), |error| words(&error))),
    }
}

/// A `HealthCheckRequest` that names a service, in a frame.
fn question(service: &str) -> Bytes {
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
fn judge(answer: &[u8]) -> Result<(), String> {
    match answer.get(5..) {
        Some([0x08, 1, ..]) => Ok(()),
        Some([0x08, status, ..]) => Err(format!(
            "service unhealthy (responded with status {status})"
        )),
        _ => Err("the answer is none of the gRPC health protocol".to_owned()),
    }
}
