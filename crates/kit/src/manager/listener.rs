//! Tells whoever asks how the process is.

use std::{convert::Infallible, sync::Arc, time::Duration};

use http::{Method, Request, Response, StatusCode, header};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{TlsAcceptor, rustls::ServerConfig};

use super::{Health, Service, accept};
use crate::telemetry::Pages;

/// So many may ask at once; the others wait.
const CONNECTIONS: usize = 64;
/// Who connects and does not ask is let go after this time.
const PATIENCE: Duration = Duration::from_secs(10);

type Answer = Response<Pages>;

/// Answers on `socket`: `/healthz`, `/readyz`, `/metrics` and `/debug/state.json`. It answers until
/// everything else has ended, so that a probe is not refused while work is finished.
pub fn listener(socket: TcpListener, health: Health) -> Service {
    let clock = health.clock;
    let talk = move |stream| talk(stream, health.clone());
    let serve = move |stop| accept(socket, CONNECTIONS, clock, stop, talk);
    Service::new("listener", serve).outlasting()
}

/// The same over TLS, as `identity` says.
pub fn secure_listener(
    socket: TcpListener,
    health: Health,
    identity: Arc<ServerConfig>,
) -> Service {
    let (clock, acceptor) = (health.clock, TlsAcceptor::from(identity));
    let talk = move |stream: TcpStream| {
        let (health, accepting) = (health.clone(), acceptor.accept(stream));
        async move {
            // Who does not come to an agreement is its own affair.
            if let Some(Ok(stream)) = clock.within(PATIENCE, accepting).await {
                talk(stream, health).await;
            }
        }
    };
    let serve = move |stop| accept(socket, CONNECTIONS, clock, stop, talk);
    Service::new("listener", serve).outlasting()
}

async fn talk<S>(stream: S, health: Health)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let answer = answer(&health, request.method(), request.uri().path());
        async move { Ok::<_, Infallible>(answer) }
    });
    let mut server = http1::Builder::new();
    server
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE);
    // A client that breaks off is its own affair.
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
}

pub(super) fn answer(health: &Health, method: &Method, path: &str) -> Answer {
    if !matches!(*method, Method::GET | Method::HEAD) {
        let refused = text(StatusCode::METHOD_NOT_ALLOWED, "only GET is answered here");
        return with(refused, header::ALLOW, "GET, HEAD");
    }
    match path {
        "/healthz" | "/livez" => verdict(&health.ills()),
        "/readyz" => verdict(&health.missing()),
        "/metrics" => {
            let metrics = Response::new(health.process().pages());
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            with(metrics, header::CONTENT_TYPE, kind)
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

fn verdict(against: &[String]) -> Answer {
    if against.is_empty() {
        text(StatusCode::OK, "ok")
    } else {
        text(StatusCode::SERVICE_UNAVAILABLE, &against.join("\n"))
    }
}

fn text(status: StatusCode, words: &str) -> Answer {
    let mut body = words.to_owned();
    if !body.ends_with('\n') {
        body.push('\n');
    }
    let mut answer = Response::new(Pages::from(body));
    *answer.status_mut() = status;
    with(answer, header::CONTENT_TYPE, "text/plain; charset=utf-8")
}

fn with(mut answer: Answer, name: header::HeaderName, value: &'static str) -> Answer {
    let value = header::HeaderValue::from_static(value);
    answer.headers_mut().insert(name, value);
    answer
}
