//! A running `neap up`, and its shutdown.

use std::{convert::Infallible, fs, io, sync::Arc, time::Duration};

use neap_world::node::process::CONTAINER_THREAD;
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    ready_notice::ReadyNotice, server::Server, signals::Signals, transcript::Transcript,
    world::World,
};
use crate::{
    environment::{TaskPanic, TaskPanics},
    exit::{Exit, Failure},
    logging,
};

/// Bounds the shutdown of the API server after the pods have ended: requests in flight, for which the
/// server itself allows less, and the last sync of the store.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// Bounds the wait for the kinds of the areas before the start-up transcript says "Ready".
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// A server that is ready to serve.
pub(super) struct Running {
    pub(super) server: Server,
    pub(super) world: Option<World>,
    pub(super) listener: TcpListener,
    pub(super) tls: Arc<ServerConfig>,
    /// Printed when the server serves, with the kinds of the areas.
    pub(super) notice: ReadyNotice,
}

impl Running {
    /// Serves until a signal arrives; then stops the pods and after them the API server, because programs
    /// in pods may use it until they end.
    pub(super) async fn until_stopped(
        self,
        signals: &mut Signals,
        panics: &mut TaskPanics,
        transcript: &mut Transcript,
    ) -> Result<(), Failure> {
        let (stop_world, stop) = (CancellationToken::new(), CancellationToken::new());
        let stopped = stop.clone().cancelled_owned();
        let serving = self.server.serve(self.listener, self.tls, stopped);
        let gates = self.world.as_ref().map(|world| world.gates.clone());
        let world_running = run_world(self.world, stop_world.clone());
        tokio::pin!(serving, world_running);
        tokio::select! {
            never = announce(gates, &self.notice, transcript) => match never {},
            result = &mut serving => return Err(ended(result)),
            result = &mut world_running => return result,
            panicked = panics.next() => return Err(task_panicked(&panicked)),
            () = signals.next() => stop_world.cancel(),
        }
        if logging::separate_from_stdout() {
            tracing::info!("stopping");
        }
        let ending = async {
            let world_result = tokio::select! {
                world_result = &mut world_running => world_result,
                result = &mut serving => return Err(ended(result)),
            };
            stop.cancel();
            if tokio::time::timeout(SHUTDOWN_TIMEOUT, &mut serving)
                .await
                .is_err()
            {
                tracing::warn!("the server did not stop in time and was aborted");
            }
            world_result
        };
        tokio::select! {
            ended = ending => ended,
            () = signals.next_distinct() => Err(interrupted()),
            never = report_waiting(transcript) => match never {},
        }
    }
}

/// Prints the end of the transcript when everything is there that a user may ask for at once.
async fn announce(
    gates: Option<TaskTracker>,
    notice: &ReadyNotice,
    transcript: &mut Transcript,
) -> Infallible {
    if let Some(gates) = gates {
        gates.close();
        match tokio::time::timeout(START_TIMEOUT, gates.wait()).await {
            Ok(()) => transcript.done("kinds", "custom resources of all areas are served"),
            Err(_) => transcript.note("some custom resources are not served yet; see the log"),
        }
    }
    notice.print(transcript);
    std::future::pending().await
}

/// Prints the number of containers that still run, until none does.
async fn report_waiting(transcript: &mut Transcript) -> Infallible {
    let mut reported = false;
    loop {
        let containers = containers();
        if containers > 0 {
            transcript.stopping(containers, reported);
            reported = true;
        }
        transcript.wait_report_interval().await;
    }
}

/// Counts the containers. Each has a launcher process, a child of a thread with a known name; commands
/// such as probes have launchers too, but their threads have another name.
fn containers() -> usize {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten();
    let threads = threads.flatten().filter(|thread| {
        let name = fs::read_to_string(thread.path().join("comm"));
        name.is_ok_and(|name| name.trim_end() == CONTAINER_THREAD)
    });
    let children = threads.map(|thread| {
        let children = fs::read_to_string(thread.path().join("children"));
        children.map_or(0, |ids| ids.split_whitespace().count())
    });
    children.sum()
}

async fn run_world(world: Option<World>, stop: CancellationToken) -> Result<(), Failure> {
    if let Some(world) = world {
        return world.run(stop).await;
    }
    stop.cancelled().await;
    Ok(())
}

fn ended(result: io::Result<()>) -> Failure {
    let why = match result {
        Ok(()) => "it stopped accepting connections unexpectedly".to_owned(),
        Err(error) => error.to_string(),
    };
    Failure::new("NT-UP-0011", Exit::Failed, "the server stopped", &why)
        .remedy("start it again; -vv logs details")
}

fn task_panicked(panicked: &TaskPanic) -> Failure {
    Failure::new(
        "NT-UP-0012",
        Exit::Failed,
        &format!("the background task {:?} panicked", panicked.name),
        &panicked.cause,
    )
    .remedy("this is a bug: please report it with the log; acknowledged writes are safe")
}

fn interrupted() -> Failure {
    Failure::new(
        "NT-UP-0013",
        Exit::Interrupted,
        "stopped immediately",
        "a second signal arrived during the shutdown; containers that still ran were killed",
    )
}
