//! A `neap up` at work, and how it ends.

use std::{io, sync::Arc, time::Duration};

use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{server::Server, signals::Signals, world::World};
use crate::{
    environment::{Death, Deaths},
    exit::{Exit, Failure},
};

/// How long stopping may take after the pods have ended: requests under way, which the server gives
/// less than this, and the last sync of the store.
const DRAIN: Duration = Duration::from_secs(10);

/// A server that is ready to answer.
pub(super) struct Running {
    pub(super) server: Server,
    pub(super) world: Option<World>,
    pub(super) listener: TcpListener,
    pub(super) tls: Arc<ServerConfig>,
}

impl Running {
    /// Answers and turns until a signal; then ends the pods, and after them the API: programs in pods
    /// may ask it until their end.
    pub(super) async fn until_stopped(
        self,
        signals: &mut Signals,
        deaths: &mut Deaths,
    ) -> Result<(), Failure> {
        let (world_ends, stop) = (CancellationToken::new(), CancellationToken::new());
        let stopped = stop.clone().cancelled_owned();
        let serving = self.server.serve(self.listener, self.tls, stopped);
        let turning = turn(self.world, world_ends.clone());
        tokio::pin!(serving, turning);
        tokio::select! {
            result = &mut serving => return Err(ended(result)),
            result = &mut turning => return result,
            death = deaths.next() => return Err(died(&death)),
            () = signals.next() => world_ends.cancel(),
        }
        tracing::info!("stopping");
        let ending = async {
            let turned = tokio::select! {
                turned = &mut turning => turned,
                result = &mut serving => return Err(ended(result)),
            };
            stop.cancel();
            if tokio::time::timeout(DRAIN, &mut serving).await.is_err() {
                tracing::warn!("the server did not stop in time and was cut off");
            }
            turned
        };
        tokio::select! {
            ended = ending => ended,
            () = signals.next() => Err(interrupted()),
        }
    }
}

async fn turn(world: Option<World>, stop: CancellationToken) -> Result<(), Failure> {
    if let Some(world) = world {
        return world.run(stop).await;
    }
    stop.cancelled().await;
    Ok(())
}

fn ended(result: io::Result<()>) -> Failure {
    let why = match result {
        Ok(()) => "it stopped accepting connections without being told to".to_owned(),
        Err(error) => error.to_string(),
    };
    Failure::new("NT-UP-0011", Exit::Failed, "the server ended", &why)
        .remedy("start it again; with -vv the log says more")
}

fn died(death: &Death) -> Failure {
    Failure::new(
        "NT-UP-0012",
        Exit::Failed,
        &format!("the background task {:?} died", death.name),
        &death.cause,
    )
    .remedy("this is a defect: please report it with the log; data acknowledged so far is safe")
}

fn interrupted() -> Failure {
    Failure::new(
        "NT-UP-0013",
        Exit::Interrupted,
        "stopped before all requests had ended",
        "a second signal arrived",
    )
}
