//! Accepts connections, up to a maximum at a time.

use std::{sync::Arc, time::Duration};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;

/// The delay after a connection could not be accepted.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Runs `serve` for every connection to `socket` until `stop`; open connections are dropped then.
pub async fn accept<T>(
    socket: TcpListener,
    max_connections: usize,
    clock: Clock,
    stop: CancellationToken,
    serve: impl Fn(TcpStream) -> T,
) where
    T: Future<Output = ()> + Send + 'static,
{
    let permits = Arc::new(Semaphore::new(max_connections));
    let mut connections = JoinSet::new();
    loop {
        let next = async {
            // A permit first: without one, clients wait in the accept queue of the system.
            let permit = permits.clone().acquire_owned().await.ok()?;
            Some((permit, socket.accept().await))
        };
        let (permit, accepted) = tokio::select! {
            () = stop.cancelled() => return,
            Some(next) = next => next,
            else => return,
        };
        while connections.try_join_next().is_some() {}
        match accepted {
            Ok((stream, _)) => {
                // A body that follows its head waits 40 ms otherwise, until the client confirms the head. Without
                // the option, the connection is slow and as good as before.
                let _ = stream.set_nodelay(true);
                let serving = serve(stream);
                connections.spawn(async move {
                    serving.await;
                    drop(permit);
                });
            }
            // Too many open files, or a client that disconnected: both are transient.
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                clock.sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn connections_send_what_they_have() {
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
        let stop = CancellationToken::new();
        let serve = move |stream: TcpStream| {
            let sender = sender.clone();
            async move { sender.send(stream.nodelay().unwrap()).await.unwrap() }
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(socket, 1, Clock::system(), stop.clone(), serve));
        let _client = TcpStream::connect(address).await.unwrap();
        assert_eq!(receiver.recv().await, Some(true));
        stop.cancel();
        tasks.join_next().await.unwrap().unwrap();
    }
}
