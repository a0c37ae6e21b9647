use std::io;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use neap_idle::resolver::net::Stream;
use tokio_util::task::TaskTracker;

use super::RequestError;
use crate::payloads::{MAX_BODY, payload};

pub(super) async fn open(
    stream: Stream,
    tasks: &TaskTracker,
) -> io::Result<SendRequest<Full<Bytes>>> {
    let (sender, connection) = handshake(TokioIo::new(stream))
        .await
        .map_err(io::Error::other)?;
    tasks.spawn(async move {
        let _ = connection.await;
    });
    Ok(sender)
}

#[expect(clippy::disallowed_methods, reason = "what is collected is limited")]
pub(super) async fn request(
    sender: &mut SendRequest<Full<Bytes>>,
    id: u64,
) -> Result<(), RequestError> {
    let ready = sender.ready().await;
    ready.map_err(|_| RequestError::Unsent)?;
    let posts = id % 2 == 1;
    let body = if posts { payload(id) } else { Bytes::new() };
    let request = Request::builder()
        .method(if posts { Method::POST } else { Method::GET })
        .uri(format!("/{id}"))
        .header("host", "web")
        .body(Full::new(body));
    let request = request.map_err(|error| RequestError::Lost(error.to_string()))?;
    let response = super::sent(sender.try_send_request(request).await)?;
    let status = response.status();
    let body = Limited::new(response.into_body(), MAX_BODY).collect().await;
    let body = body.map_err(|error| RequestError::Lost(format!("{status}, then {error}")))?;
    let body = body.to_bytes();
    if status == StatusCode::SERVICE_UNAVAILABLE {
        return Err(RequestError::Refused(format!("{status}")));
    }
    if status == StatusCode::OK && body == payload(id) {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
    Err(RequestError::Lost(format!("{status}: {said}")))
}
