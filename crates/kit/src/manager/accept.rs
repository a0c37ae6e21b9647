//! Takes connections, so many at a time.

use std::{sync::Arc, time::Duration};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;

/// Has `talk` with everybody who connects to `socket` until `stop`; those that are under way then are
/// broken off.
pub async fn accept<T>(
    socket: TcpListener,
    most: usize,
    clock: Clock,
    stop: CancellationToken,
    talk: impl Fn(TcpStream) -> T,
) where
    T: Future<Output = ()> + Send + 'static,
{
    let room = Arc::new(Semaphore::new(most));
    let mut connections = JoinSet::new();
    loop {
        let next = async {
            // A place first: who finds none waits in the line of the system.
            let place = room.clone().acquire_owned().await.ok()?;
            Some((place, socket.accept().await))
        };
        let (place, accepted) = tokio::select! {
            () = stop.cancelled() => return,
            Some(next) = next => next,
            else => return,
        };
        while connections.try_join_next().is_some() {}
        match accepted {
            Ok((stream, _)) => {
                let talk = talk(stream);
                connections.spawn(async move {
                    talk.await;
                    drop(place);
                });
            }
            // Too many open files, or a client that left: both pass.
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                clock.sleep(Duration::from_millis(100)).await;
            }
        }
    }
}
