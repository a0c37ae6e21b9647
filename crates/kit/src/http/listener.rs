//! Accepts connections and serves a router on them.

use std::{convert::Infallible, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use axum::{Router, body::Body, response::IntoResponse};
use http::{Request, StatusCode};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto::Builder,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
};
use tokio_rustls::{TlsAcceptor, rustls::pki_types::CertificateDer};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;
use tower_http::timeout::TimeoutLayer;

use super::TlsIdentity;
use crate::{clock::Clock, host_header::check_host, manager::Component};

/// The delay after a connection could not be accepted.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// What a client can make a server hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpLimits {
    /// The maximum number of connections; more wait in the accept queue.
    pub connections: usize,
    /// The maximum number of requests at a time on one HTTP/2 connection.
    pub streams: u32,
    /// The maximum size of the head of a request, in bytes.
    pub head: usize,
    /// The time for the TLS handshake, and for the head of a request.
    pub head_timeout: Duration,
    /// The time in which a request is answered.
    pub request_timeout: Duration,
    /// The time that requests in flight have after the server was told to stop.
    pub drain_grace: Duration,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            connections: 1024,
            streams: 100,
            head: 64 * 1024,
            head_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_mins(1),
            drain_grace: Duration::from_secs(30),
        }
    }
}

/// The client at the other end of a connection.
#[derive(Debug, Clone, Default)]
pub struct Peer {
    /// Its address.
    pub address: Option<SocketAddr>,
    /// The certificates that it presented, its own first. The TLS configuration decides whether they
    /// were verified.
    pub certificates: Vec<CertificateDer<'static>>,
}

/// Serves `router` on `socket` until it is told to stop; over TLS if there is an identity.
pub fn server(
    name: &'static str,
    socket: TcpListener,
    identity: Option<TlsIdentity>,
    router: Router,
    limits: HttpLimits,
    clock: Clock,
) -> Component {
    let timed_out = StatusCode::SERVICE_UNAVAILABLE;
    let timeout = TimeoutLayer::with_status_code(timed_out, limits.request_timeout);
    let router = router.layer(timeout);
    Component::new(name, move |stop| async move {
        let draining = CancellationToken::new();
        let permits = Arc::new(Semaphore::new(limits.connections));
        let mut connections = JoinSet::new();
        while let Some((stream, permit)) = next_client(&socket, &permits, clock, &stop).await {
            while connections.try_join_next().is_some() {}
            let connection = Connection {
                router: router.clone(),
                limits,
                clock,
                stop: draining.clone(),
            };
            let identity = identity.clone();
            connections.spawn(async move {
                connection.accept(stream, identity).await;
                drop(permit);
            });
        }
        // Later clients are refused at once instead of waiting in the accept queue.
        drop(socket);
        draining.cancel();
        let ended = async { while connections.join_next().await.is_some() {} };
        let _ = clock.within(limits.drain_grace, ended).await;
    })
    .stopped_last()
}

/// The next client, once there is room for it; nothing after `stop`.
async fn next_client(
    socket: &TcpListener,
    permits: &Arc<Semaphore>,
    clock: Clock,
    stop: &CancellationToken,
) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    let next = async {
        let permit = permits.clone().acquire_owned().await.ok()?;
        loop {
            match socket.accept().await {
                Ok((stream, _)) => return Some((stream, permit)),
                // Too many open files, or a client that disconnected: both are transient.
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    clock.sleep(ACCEPT_RETRY_DELAY).await;
                }
            }
        }
    };
    tokio::select! {
        () = stop.cancelled() => None,
        client = next => client,
    }
}

struct Connection {
    router: Router,
    limits: HttpLimits,
    clock: Clock,
    stop: CancellationToken,
}

impl Connection {
    async fn accept(self, stream: TcpStream, identity: Option<TlsIdentity>) {
        let address = stream.peer_addr().ok();
        let Some(identity) = identity else {
            let certificates = Vec::new();
            let peer = Peer {
                address,
                certificates,
            };
            return self.serve(stream, peer).await;
        };
        let handshake = TlsAcceptor::from(identity.config()).accept(stream);
        // A failed handshake concerns only that client.
        if let Some(Ok(stream)) = self.clock.within(self.limits.head_timeout, handshake).await {
            let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
            let certificates = certificates.iter().map(|it| it.clone().into_owned());
            let peer = Peer {
                address,
                certificates: certificates.collect(),
            };
            self.serve(stream, peer).await;
        }
    }

    async fn serve<S>(self, stream: S, peer: Peer)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let router = self.router;
        let service = service_fn(move |mut request: Request<Incoming>| {
            let refused = check_host(request.version(), request.uri(), request.headers()).err();
            request.extensions_mut().insert(peer.clone());
            let answer = router.clone().oneshot(request.map(Body::new));
            async move {
                match refused {
                    Some(why) => Ok((StatusCode::BAD_REQUEST, format!("{why}\n")).into_response()),
                    None => answer.await.map_err(|never: Infallible| never),
                }
            }
        });
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .http1()
            // A client may shut its side after the request; the request's timeout limits how long one
            // that has left is not noticed.
            .half_close(true)
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.head_timeout)
            .max_buf_size(self.limits.head.max(8192));
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(self.limits.streams)
            .max_header_list_size(self.limits.head as u32)
            .keep_alive_interval(Some(self.limits.request_timeout));
        let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
        // A client that disconnects concerns only itself.
        tokio::select! {
            _ = connection.as_mut() => {}
            () = self.stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                let _ = connection.await;
            }
        }
    }
}
