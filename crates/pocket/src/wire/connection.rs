//! One connection: its handshake, its protocol, and its bounds on memory and time.
//!
//! Whatever a client does or fails to do, its connection costs a bounded amount of memory, and ends
//! if it makes no progress.

use std::{future::Future, pin::Pin, time::Duration};

use hyper::server::conn::{http1, http2};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use rustls::pki_types::CertificateDer;
use tokio::{net::TcpStream, sync::watch};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::{Service, paced::Paced, serve::SHUTDOWN_GRACE, tasks::Tasks};
use crate::environment::PollOnWake;

/// How long a client may take for its TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client may take to send the headers of a request.
const HEADERS_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of buffered output for a slow client; also of the headers of a request, at most.
const BUFFER_BYTES: usize = 128 << 10;
/// Bytes of that which are encrypted already.
const TLS_BUFFER_BYTES: usize = 32 << 10;
/// The same for one HTTP/2 stream, of which a connection has many.
const STREAM_BUFFER_BYTES: usize = 64 << 10;

/// HTTP/2 streams of a client at a time, at most; a client that needs more waits or opens another
/// connection.
const MAX_STREAMS: u32 = 250;

/// Serves one client until it leaves, or until `stopped` turns true and running requests have
/// ended.
pub(super) async fn connection(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    service: Service,
    mut stopped: watch::Receiver<bool>,
) {
    // Responses are small and interactive; waiting to fill a segment only delays them.
    let _ = stream.set_nodelay(true);
    let clock = service.machine().environment.clock.clone();
    // On the heap, so that the memory of the handshake is not kept for the life of the connection.
    let accepted = Box::pin(acceptor.accept(stream));
    let accepted = tokio::select! {
        accepted = accepted => accepted,
        () = clock.sleep(HANDSHAKE_TIMEOUT) => return,
        _ = stopped.wait_for(|stopped| *stopped) => return,
    };
    let Ok(mut stream) = accepted else {
        return;
    };
    stream.get_mut().1.set_buffer_limit(Some(TLS_BUFFER_BYTES));
    let ended = if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
        Box::pin(over_http2(stream, service, stopped)).await
    } else {
        Box::pin(over_http1(stream, service, stopped)).await
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection failed");
    }
}

async fn over_http1(
    stream: TlsStream<TcpStream>,
    service: Service,
    stopped: watch::Receiver<bool>,
) -> hyper::Result<()> {
    let answers = answers(&stream, &service, &stopped);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_TIMEOUT)
        .max_buf_size(BUFFER_BYTES)
        .serve_connection(TokioIo::new(Paced::new(stream)), answers)
        .with_upgrades();
    let shut_down = http1::UpgradeableConnection::graceful_shutdown;
    until_stopped(connection, shut_down, service, stopped).await
}

async fn over_http2(
    stream: TlsStream<TcpStream>,
    service: Service,
    stopped: watch::Receiver<bool>,
) -> hyper::Result<()> {
    let answers = answers(&stream, &service, &stopped);
    let tasks = Tasks::new(service.machine().environment.spawner.clone());
    let connection = http2::Builder::new(tasks)
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_send_buf_size(STREAM_BUFFER_BYTES)
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(30))
        .serve_connection(TokioIo::new(Paced::new(stream)), answers);
    let shut_down = http2::Connection::graceful_shutdown;
    until_stopped(connection, shut_down, service, stopped).await
}

/// The service for the client of this connection.
fn answers(
    stream: &TlsStream<TcpStream>,
    service: &Service,
    stopped: &watch::Receiver<bool>,
) -> TowerToHyperService<Service> {
    let presented = stream.get_ref().1.peer_certificates().unwrap_or_default();
    let presented = presented.iter().cloned();
    let presented = presented.map(CertificateDer::into_owned).collect();
    TowerToHyperService::new(service.for_connection(presented, stopped.clone()))
}

async fn until_stopped<C>(
    connection: C,
    shut_down: fn(Pin<&mut C>),
    service: Service,
    mut stopped: watch::Receiver<bool>,
) -> hyper::Result<()>
where
    C: Future<Output = hyper::Result<()>>,
{
    tokio::pin!(connection);
    let stop = PollOnWake::new(async {
        // A dropped sender means that the server has stopped too.
        let _ = stopped.wait_for(|stopped| *stopped).await;
    });
    tokio::select! {
        biased;
        ended = &mut connection => return ended,
        () = stop => shut_down(connection.as_mut()),
    }
    tokio::select! {
        ended = &mut connection => ended,
        () = service.machine().environment.clock.sleep(SHUTDOWN_GRACE) => Ok(()),
    }
}
