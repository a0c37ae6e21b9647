//! TLS on a socket: a bounded number of connections, each a task of its own.

use std::{future::Future, io, sync::Arc, time::Duration};

use tokio::{
    net::TcpListener,
    sync::{Semaphore, watch},
};
use tokio_rustls::TlsAcceptor;

use super::{Service, connection::connection, tasks::Tasks};

/// How long running requests may take after shutdown was requested. Streams, which do not end by
/// themselves, are ended at once.
pub(super) const SHUTDOWN_GRACE: Duration = Duration::from_secs(3);

/// Serves `service` until `shutdown` resolves, then ends streams and lets other requests finish for
/// at most three seconds. Connections beyond its maximum wait in the kernel's queue.
pub async fn serve(
    listener: TcpListener,
    tls: Arc<rustls::ServerConfig>,
    service: Service,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let (stop, stopped) = watch::channel(false);
    let seats = Arc::new(Semaphore::new(service.max_connections()));
    let acceptor = TlsAcceptor::from(tls);
    let tasks = Tasks::new(service.machine().environment.spawner.clone());
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
                // Too many open files, or a client that left already: the next accept may succeed.
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
        tasks.spawn("connection", async move {
            connection.await;
            drop(seat);
        });
    }
    drop(listener);
    // A failed send means that every connection has ended already.
    let _ = stop.send(true);
    drop(stopped);
    tokio::select! {
        () = stop.closed() => {}
        () = service.machine().environment.clock.sleep(SHUTDOWN_GRACE) => {}
    }
    Ok(())
}
