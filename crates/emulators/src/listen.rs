//! Binds a system to a socket.

use std::{sync::Arc, time::Duration};

use http::{Request, Response, StatusCode, header};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use neap_kit::{
    client::Body,
    clock::Clock,
    http::check_host,
    manager::{Component, accept},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{TlsAcceptor, rustls::ServerConfig};
use tower::ServiceExt;

use crate::system::{Emulator, OverTls, System};

/// The maximum number of connections; more wait in the accept queue.
const MAX_CONNECTIONS: usize = 512;
/// The time that a client has for its TLS handshake, and to send the head of a request.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(30);

/// Serves a system on a socket, over HTTP/1.1 and HTTP/2, until the component is stopped.
pub fn listen<S: System>(
    name: &'static str,
    socket: TcpListener,
    clock: Clock,
    emulator: Emulator<S>,
) -> Component {
    let serve = move |stream: TcpStream| serve_connection(stream, emulator.clone(), false);
    Component::new(name, move |stop| {
        accept(socket, MAX_CONNECTIONS, clock, stop, serve)
    })
}

/// The same over TLS, with the certificate of `identity`.
pub fn listen_with_tls<S: System>(
    name: &'static str,
    socket: TcpListener,
    clock: Clock,
    emulator: Emulator<S>,
    identity: Arc<ServerConfig>,
) -> Component {
    let acceptor = TlsAcceptor::from(identity);
    let serve = move |stream: TcpStream| {
        let (emulator, accepting) = (emulator.clone(), acceptor.accept(stream));
        async move {
            // A failed handshake concerns only that client.
            if let Some(Ok(stream)) = clock.within(CLIENT_TIMEOUT, accepting).await {
                serve_connection(stream, emulator, true).await;
            }
        }
    };
    Component::new(name, move |stop| {
        accept(socket, MAX_CONNECTIONS, clock, stop, serve)
    })
}

async fn serve_connection<S: System>(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    emulator: Emulator<S>,
    over_tls: bool,
) {
    // An error of the service is an injected fault: the connection breaks, as it should.
    let service = service_fn(move |request: Request<Incoming>| {
        let refused = check_host(request.version(), request.uri(), request.headers()).err();
        let mut request = request.map(Body::new);
        if over_tls {
            request.extensions_mut().insert(OverTls);
        }
        let emulator = emulator.clone();
        async move {
            match refused {
                Some(why) => Ok(bad_request(why)),
                None => emulator.oneshot(request).await,
            }
        }
    });
    let mut server = auto::Builder::new(TokioExecutor::new());
    server
        .http1()
        // A client may shut its side after the request.
        .half_close(true)
        .timer(TokioTimer::new())
        .header_read_timeout(CLIENT_TIMEOUT);
    server.http2().timer(TokioTimer::new());
    // A client that disconnects concerns only itself.
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
}

fn bad_request(why: &str) -> Response<Body> {
    let mut response = Response::new(Body::from(format!("{why}\n")));
    *response.status_mut() = StatusCode::BAD_REQUEST;
    let kind = header::HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

#[cfg(test)]
mod tests;
