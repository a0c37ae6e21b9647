//! A `neap up` at work, and how it ends.

use std::{convert::Infallible, fs, io, sync::Arc, time::Duration};

use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{server::Server, signals::Signals, stages::Stages, world::World};
use crate::{
    environment::{Death, Deaths},
    exit::{Exit, Failure},
    logging,
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
        stages: &mut Stages,
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
        if logging::apart() {
            tracing::info!("stopping");
        }
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
            never = tell(stages) => match never {},
        }
    }
}

/// Tells how many containers still run, for as long as some do.
async fn tell(stages: &mut Stages) -> Infallible {
    let mut again = false;
    loop {
        let containers = containers();
        if containers > 0 {
            stages.stopping(containers, again);
            again = true;
        }
        stages.moment().await;
    }
}

/// How many there are: each has a launcher, and this process starts nothing else.
fn containers() -> usize {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten();
    let children = threads.flatten().map(|thread| {
        let children = fs::read_to_string(thread.path().join("children"));
        children.map_or(0, |ids| ids.split_whitespace().count())
    });
    children.sum()
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
        "stopped at once",
        "a second signal arrived before everything had ended; containers that still ran were killed",
    )
}
