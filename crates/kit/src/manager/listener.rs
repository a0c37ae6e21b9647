//! Serves health, readiness, metrics and the debug state over HTTP.

use std::{convert::Infallible, sync::Arc, time::Duration};

use http::{Method, Request, Response, StatusCode, header};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{TlsAcceptor, rustls::ServerConfig};

use super::{Component, Health, accept};
use crate::{host_header::check_host, telemetry::ChunkedText};

/// The maximum number of connections; more wait in the accept queue.
const MAX_CONNECTIONS: usize = 64;
/// The time that a client has to complete its TLS handshake, and to send the head of a request.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(10);

type ProbeResponse = Response<ChunkedText>;

/// Serves `/healthz`, `/readyz`, `/metrics` and, to callers with the debug token, `/debug/state.json` on
/// `socket`. It is stopped last, so
/// that probes are answered while other components finish.
pub fn listener(socket: TcpListener, health: Health) -> Component {
    let clock = health.clock;
    let serve = move |stream| serve_connection(stream, health.clone());
    let run = move |stop| accept(socket, MAX_CONNECTIONS, clock, stop, serve);
    Component::new("listener", run).stopped_last()
}

/// The same over TLS, with the certificate of `identity`.
pub fn secure_listener(
    socket: TcpListener,
    health: Health,
    identity: Arc<ServerConfig>,
) -> Component {
    let (clock, acceptor) = (health.clock, TlsAcceptor::from(identity));
    let serve = move |stream: TcpStream| {
        let (health, accepting) = (health.clone(), acceptor.accept(stream));
        async move {
            // A failed handshake concerns only that client.
            if let Some(Ok(stream)) = clock.within(CLIENT_TIMEOUT, accepting).await {
                serve_connection(stream, health).await;
            }
        }
    };
    let run = move |stop| accept(socket, MAX_CONNECTIONS, clock, stop, serve);
    Component::new("listener", run).stopped_last()
}

async fn serve_connection<S>(stream: S, health: Health)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let checked = check_host(request.version(), request.uri(), request.headers());
        let response = if let Err(why) = checked {
            text(StatusCode::BAD_REQUEST, why)
        } else {
            let token = request.headers().get(header::AUTHORIZATION);
            let token = token.map(http::HeaderValue::as_bytes);
            respond(&health, request.method(), request.uri().path(), token)
        };
        async move { Ok::<_, Infallible>(response) }
    });
    let mut server = http1::Builder::new();
    server
        .half_close(true)
        .timer(TokioTimer::new())
        .header_read_timeout(CLIENT_TIMEOUT);
    // A client that disconnects concerns only itself.
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
}

pub(super) fn respond(
    health: &Health,
    method: &Method,
    path: &str,
    authorization: Option<&[u8]>,
) -> ProbeResponse {
    if !matches!(*method, Method::GET | Method::HEAD) {
        let refused = text(
            StatusCode::METHOD_NOT_ALLOWED,
            "only GET and HEAD are allowed",
        );
        return with(refused, header::ALLOW, "GET, HEAD");
    }
    match path {
        "/healthz" | "/livez" => probe_response(&health.failures()),
        "/readyz" => ready_response(health),
        "/metrics" => {
            let metrics = Response::new(health.process().chunked_metrics());
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            with(metrics, header::CONTENT_TYPE, kind)
        }
        "/debug/state.json" if !health.may_debug(authorization) => {
            let refused = text(
                StatusCode::UNAUTHORIZED,
                "send the token of this process: Authorization: Bearer TOKEN",
            );
            with(refused, header::WWW_AUTHENTICATE, "Bearer")
        }
        "/debug/state.json" => {
            let state = text(StatusCode::OK, &format!("{:#}\n", health.state()));
            with(state, header::CONTENT_TYPE, "application/json")
        }
        _ => text(
            StatusCode::NOT_FOUND,
            "try /healthz, /readyz, /metrics or /debug/state.json",
        ),
    }
}

/// Ready processes also say which of their parts wait for a kind.
fn ready_response(health: &Health) -> ProbeResponse {
    let (problems, waiting) = (health.not_ready(), health.waiting());
    if problems.is_empty() && !waiting.is_empty() {
        return text(StatusCode::OK, &format!("ok\n{}", waiting.join("\n")));
    }
    probe_response(&[problems, waiting].concat())
}

fn probe_response(problems: &[String]) -> ProbeResponse {
    if problems.is_empty() {
        text(StatusCode::OK, "ok")
    } else {
        text(StatusCode::SERVICE_UNAVAILABLE, &problems.join("\n"))
    }
}

fn text(status: StatusCode, content: &str) -> ProbeResponse {
    let mut body = content.to_owned();
    if !body.ends_with('\n') {
        body.push('\n');
    }
    let mut response = Response::new(ChunkedText::from(body));
    *response.status_mut() = status;
    with(response, header::CONTENT_TYPE, "text/plain; charset=utf-8")
}

fn with(
    mut response: ProbeResponse,
    name: header::HeaderName,
    value: &'static str,
) -> ProbeResponse {
    let value = header::HeaderValue::from_static(value);
    response.headers_mut().insert(name, value);
    response
}
