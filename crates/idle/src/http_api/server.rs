//! The server's socket.

use std::{convert::Infallible, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use neap_kit::{
    clock::Clock,
    http::check_host,
    manager::{Component, accept},
};
use tokio::net::{TcpListener, TcpStream};

use super::{ApiResponse, Handler, text};

/// The largest number of connections that are served at the same time; further ones wait.
const MAX_CONNECTIONS: usize = 1024;
/// The time within which a client has to send the head of a request.
const HEADER_READ_TIMEOUT: Duration = Duration::from_secs(2);
/// The time within which the rest of a request is read and handled.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest request body that is read.
const MAX_REQUEST_BYTES: usize = 1 << 20;

/// A component that serves `handler` on `socket`. It stops after all others, which may still need its
/// responses.
pub fn serve(
    name: &'static str,
    socket: TcpListener,
    handler: Arc<dyn Handler>,
    clock: Clock,
) -> Component {
    let serve = move |stream| serve_connection(stream, handler.clone(), clock);
    let run = move |stop| accept(socket, MAX_CONNECTIONS, clock, stop, serve);
    Component::new(name, run).stopped_last()
}

async fn serve_connection(stream: TcpStream, handler: Arc<dyn Handler>, clock: Clock) {
    let service = service_fn(move |request: Request<Incoming>| {
        let handler = handler.clone();
        async move {
            let response = clock
                .within(REQUEST_TIMEOUT, respond(&*handler, request))
                .await;
            let timeout = || text(StatusCode::REQUEST_TIMEOUT, "this took too long");
            Ok::<_, Infallible>(response.unwrap_or_else(timeout))
        }
    });
    let mut server = http1::Builder::new();
    server
        .half_close(true)
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_READ_TIMEOUT);
    // A client that closes its connection early concerns only itself.
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
}

#[expect(
    clippy::disallowed_methods,
    reason = "the body that is collected is limited"
)]
async fn respond(handler: &dyn Handler, request: Request<Incoming>) -> ApiResponse {
    let (head, body) = request.into_parts();
    if let Err(why) = check_host(head.version, &head.uri, &head.headers) {
        return text(StatusCode::BAD_REQUEST, why);
    }
    let Ok(body) = Limited::new(body, MAX_REQUEST_BYTES).collect().await else {
        return text(
            StatusCode::PAYLOAD_TOO_LARGE,
            "the body is too long, or was not sent completely",
        );
    };
    let body: Bytes = body.to_bytes();
    handler.handle(&Request::from_parts(head, body)).await
}

#[cfg(test)]
mod tests;
