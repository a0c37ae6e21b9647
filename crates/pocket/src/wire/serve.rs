//! TLS on a socket: connections with deadlines, each a task of its own.

use std::{future::Future, io, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
    service::TowerToHyperService,
};
use rustls::pki_types::CertificateDer;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
};
use tokio_rustls::TlsAcceptor;

use super::{Service, service::cause};

/// How long a client may take for its TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long a client may take to send the headers of a request.
const HEADERS: Duration = Duration::from_secs(30);
/// How long requests under way may take after the end was asked for. Streams, which have no end of
/// their own, are ended at once.
const GRACE: Duration = Duration::from_secs(3);
/// More connections than this wait in the kernel's queue.
const CONNECTIONS: usize = 20_000;

/// Serves `service` until `shutdown` resolves, then ends streams and lets other requests finish for
/// at most three seconds.
pub async fn serve(
    listener: TcpListener,
    tls: Arc<rustls::ServerConfig>,
    service: Service,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let (stop, stopped) = watch::channel(false);
    let seats = Arc::new(Semaphore::new(CONNECTIONS));
    let acceptor = TlsAcceptor::from(tls);
    let spawner = service.machine().environment.spawner.clone();
    tokio::pin!(shutdown);
    loop {
        let seat = tokio::select! {
            seat = seats.clone().acquire_owned() => seat,
            () = &mut shutdown => break,
        };
        let Ok(seat) = seat else { break };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut shutdown => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Too many open files, or a client that left already: the next accept may do.
                tracing::warn!(%error, "a connection could not be accepted");
                service
                    .machine()
                    .environment
                    .clock
                    .sleep(Duration::from_millis(50))
                    .await;
                continue;
            }
        };
        let connection = connection(stream, acceptor.clone(), service.clone(), stopped.clone());
        spawner.spawn(
            "connection",
            Box::pin(async move {
                // What a defect in one connection costs is this connection.
                if let Err(panic) = AssertUnwindSafe(connection).catch_unwind().await {
                    tracing::error!(cause = cause(&*panic), "a connection met a defect");
                }
                drop(seat);
            }),
        );
    }
    drop(listener);
    // Nobody listening means that every connection has ended already.
    let _ = stop.send(true);
    drop(stopped);
    tokio::select! {
        () = stop.closed() => {}
        () = service.machine().environment.clock.sleep(GRACE) => {}
    }
    Ok(())
}

async fn connection(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    service: Service,
    mut stopped: watch::Receiver<bool>,
) {
    // Answers are small and interactive; waiting to fill a segment only delays them.
    let _ = stream.set_nodelay(true);
    let clock = service.machine().environment.clock.clone();
    let accepted = tokio::select! {
        accepted = acceptor.accept(stream) => accepted,
        () = clock.sleep(HANDSHAKE) => return,
        _ = stopped.wait_for(|stopped| *stopped) => return,
    };
    let Ok(stream) = accepted else {
        return;
    };
    let (_, session) = stream.get_ref();
    let presented = session.peer_certificates().unwrap_or_default();
    let presented = presented
        .iter()
        .cloned()
        .map(CertificateDer::into_owned)
        .collect();
    let service = TowerToHyperService::new(service.for_connection(presented, stopped.clone()));
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(1000)
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(30));
    let served = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    tokio::pin!(served);
    let stop = async {
        // A server that is gone without a word has stopped too.
        let _ = stopped.wait_for(|stopped| *stopped).await;
    };
    let ended = tokio::select! {
        ended = &mut served => ended,
        () = stop => {
            served.as_mut().graceful_shutdown();
            tokio::select! {
                ended = &mut served => ended,
                () = clock.sleep(GRACE) => Ok(()),
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke");
    }
}
