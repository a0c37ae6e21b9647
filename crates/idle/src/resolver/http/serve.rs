//! Serves an HTTP connection of a client.

use std::{
    fmt::Display,
    io,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use http::{Request, Version};
use hyper::{
    body::Incoming,
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::AsyncReadExt;

use super::{
    handle::{ClientConnection, ListenPort, handle},
    http1_validator::MAX_HEAD_SIZE,
    pool::TrackedExecutor,
    response_body::InFlightGuard,
    responses::BAD,
    validated_stream::ValidatedStream,
};
use crate::{
    api::Protocol,
    resolver::{Resolver, events::RequestRejected, net::Stream},
};

/// The connection preface of HTTP/2.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Interval of HTTP/2 pings, which detect clients that are gone.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(30);
/// A closing connection that is idle for two of these intervals is dropped: the last bytes are sent by
/// then.
const FINAL_IDLE_INTERVAL: Duration = Duration::from_secs(2);
/// Upper limit on concurrent requests of one HTTP/2 connection.
const MAX_CONCURRENT_STREAMS: u32 = 256;

pub(in crate::resolver) const TOO_SLOW: &str = "TooSlow";

/// Serves all requests of one connection.
pub fn serve(
    resolver: Resolver,
    listen_port: ListenPort,
    client: Stream,
    source: SocketAddr,
) -> impl Future<Output = ()> + Send {
    let close = resolver.shutdown.child_token();
    let downstream = ClientConnection {
        resolver,
        listen_port,
        source,
        state: Arc::default(),
        close,
    };
    serve_connection(Arc::new(downstream), client)
}

async fn serve_connection(downstream: Arc<ClientConnection>, mut client: Stream) {
    let Resolver {
        clock,
        client_timeout,
        ..
    } = &downstream.resolver;
    let (first, multiplexed) = match clock.within(*client_timeout, first(&mut client)).await {
        Some(Ok(first)) => first,
        Some(Err(_)) => return,
        None => {
            return downstream
                .resolver
                .record_client_timeout(None, Protocol::Http);
        }
    };
    downstream
        .state
        .upgraded
        .store(multiplexed, Ordering::SeqCst);
    let stream = TokioIo::new(ValidatedStream::new(
        client,
        first,
        downstream.state.clone(),
        *clock,
    ));
    // A client may disconnect at any time, and hyper has answered malformed requests.
    if multiplexed {
        // Boxed, because HTTP/2 connections are few and their futures large.
        Box::pin(serve_http2(downstream, stream)).await;
    } else {
        serve_http1(downstream, stream).await;
    }
}

/// Serves requests over HTTP/2.
async fn serve_http2(downstream: Arc<ClientConnection>, stream: TokioIo<ValidatedStream>) {
    let mut server = http2::Builder::new(TrackedExecutor(downstream.resolver.tasks.clone()));
    server
        .timer(TokioTimer::new())
        .adaptive_window(true)
        .keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .max_concurrent_streams(MAX_CONCURRENT_STREAMS)
        .max_header_list_size(MAX_HEAD_SIZE as u32);
    let service = service_fn(|request| {
        let in_flight = InFlightGuard::new(&downstream.state);
        handle(downstream.clone(), request, in_flight)
    });
    let mut connection = pin!(server.serve_connection(stream, service));
    tokio::select! {
        // First, so that requests which have arrived already are answered.
        biased;
        ended = connection.as_mut() => return downstream.ended(ended),
        () = downstream.close.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    downstream.finish(connection).await;
}

/// Serves requests over HTTP/1.
async fn serve_http1(downstream: Arc<ClientConnection>, stream: TokioIo<ValidatedStream>) {
    let mut server = http1::Builder::new();
    server
        .timer(TokioTimer::new())
        .header_read_timeout(downstream.resolver.client_timeout)
        .max_buf_size(2 * MAX_HEAD_SIZE);
    let service = service_fn(|request: Request<Incoming>| {
        // Before the first poll: hyper looks for the end of the client's side before that.
        let in_flight = InFlightGuard::new(&downstream.state);
        let awaits_answer = &downstream.state.awaits_answer;
        awaits_answer.store(request.version() == Version::HTTP_11, Ordering::SeqCst);
        let answer = handle(downstream.clone(), request, in_flight);
        async {
            let answer = answer.await;
            downstream
                .state
                .awaits_answer
                .store(false, Ordering::SeqCst);
            answer
        }
    });
    let connection = server.serve_connection(stream, service);
    let mut connection = pin!(connection.with_upgrades());
    tokio::select! {
        // First: a connection that has not read its first request yet would close without an answer.
        biased;
        ended = connection.as_mut() => return downstream.ended(ended),
        () = downstream.close.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    downstream.finish(connection).await;
}

/// Records that a connection was rejected.
fn report_rejected(resolver: &Resolver, reason: &'static str, why: &dyn Display) {
    resolver.meter.emit(&RequestRejected {
        service: None,
        protocol: Protocol::Http,
        reason,
        why: why.to_string(),
    });
}

impl ClientConnection {
    /// Records why a connection ended if the client caused it. A plain disconnect is not recorded.
    fn ended(&self, ended: hyper::Result<()>) {
        let resolver = &self.resolver;
        match (self.state.violation.get(), ended) {
            (Some(why), _) => report_rejected(resolver, BAD, why),
            (None, Err(error)) if error.is_parse() => {
                report_rejected(resolver, BAD, &error);
            }
            (None, Err(error)) if error.is_timeout() => {
                report_rejected(resolver, TOO_SLOW, &error);
            }
            (None, _) => {}
        }
    }

    /// Resolves once a closing connection has ended, or has had no request in flight for a while: some
    /// clients never finish a request they have begun, others ignore the close.
    async fn finish(&self, mut connection: Pin<&mut impl Future<Output = hyper::Result<()>>>) {
        let mut quiet = false;
        loop {
            tokio::select! {
                ended = connection.as_mut() => return self.ended(ended),
                () = self.resolver.clock.sleep(FINAL_IDLE_INTERVAL) => {}
            }
            let still = self.state.in_flight.load(Ordering::SeqCst) == 0;
            if quiet && still {
                return;
            }
            quiet = still;
        }
    }
}

/// The first bytes of the client, and whether they are HTTP/2.
async fn first(client: &mut Stream) -> io::Result<(Bytes, bool)> {
    let mut first = BytesMut::with_capacity(PREFACE.len());
    loop {
        if client.read_buf(&mut first).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let known = first.len().min(PREFACE.len());
        if first[..known] != PREFACE[..known] {
            return Ok((first.freeze(), false));
        }
        if known == PREFACE.len() {
            return Ok((first.freeze(), true));
        }
    }
}
