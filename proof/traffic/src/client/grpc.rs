use std::io;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use neap_idle::resolver::net::Stream;
use tokio_util::task::TaskTracker;

use super::RequestError;
use crate::payloads::{ID, MAX_BODY, STATUS, message};

pub(super) async fn open(
    stream: Stream,
    tasks: &TaskTracker,
) -> io::Result<SendRequest<Full<Bytes>>> {
    let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream))
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
    let request = Request::builder()
        .method("POST")
        .uri("http://web/echo.Echo/Say")
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header(ID, id)
        .body(Full::new(message(id)));
    let request = request.map_err(|error| RequestError::Lost(error.to_string()))?;
    let response = super::sent(sender.try_send_request(request).await)?;
    let status = response.status();
    let early = response.headers().get(STATUS).cloned();
    let body = Limited::new(response.into_body(), MAX_BODY).collect().await;
    let body = body.map_err(|error| RequestError::Lost(format!("{status}, then {error}")))?;
    let said = body.trailers().and_then(|it| it.get(STATUS)).cloned();
    let said = said.or(early);
    let fine = said.as_ref().is_some_and(|it| it == "0");
    // Nothing was sent to a pod.
    let unavailable = said.as_ref().is_some_and(|it| it == "14");
    if status == StatusCode::SERVICE_UNAVAILABLE || unavailable {
        return Err(RequestError::Refused(format!("{status}")));
    }
    if status == StatusCode::OK && fine && body.to_bytes() == message(id) {
        return Ok(());
    }
    Err(RequestError::Lost(format!("{status}, {STATUS} {said:?}")))
}
