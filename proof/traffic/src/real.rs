//! The same with real processes and in real time: `neap up` is the API server, the node and the
//! data plane; operators, resolvers and pods are processes that it runs. All rates and protocols of
//! one lag run at once.

mod install;
mod status_poller;

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use futures::future::try_join_all;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use neap_kit::clock::Clock;
use neap_load::server::Server;
use parking_lot::Mutex;
use serde::Serialize;
use tokio::net::TcpStream;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{install::Installed, status_poller::StatusPoller};
use crate::{
    Stopwatch,
    cell::Cell,
    ledger::{Ledger, RequestSink, RequestTally},
    load::{Destination, Load, Router},
    pod,
    service::Service,
};

/// Time beyond the lag of the data plane for which terminating pods accept connections: longer than
/// clients keep an idle connection, so that no request is sent over a connection that is being
/// closed.
const LINGER_MARGIN: Duration = Duration::from_secs(15);
/// Time to wait for anything that must happen.
const WAIT_TIMEOUT: Duration = Duration::from_mins(5);

/// The tested programs.
#[derive(Debug, Clone)]
pub struct Programs {
    pub neap: PathBuf,
    /// This program, which also runs as a pod.
    pub pod: PathBuf,
}

/// The result of a cell.
#[derive(Debug, Clone, Serialize)]
pub struct RealOutcome {
    pub cell: Cell,
    /// Cycles that were requested.
    pub asked: u64,
    /// How often it was put to sleep, and then woken by a request.
    pub cycles: u64,
    /// The number of pods: one, and one more after each sleep.
    pub pods: u64,
    pub tally: RequestTally,
    /// Requests, or raw TCP connections, that went through resolvers.
    pub resolved: u64,
    /// Real milliseconds that it took.
    pub took_ms: u64,
}

impl RealOutcome {
    /// Whether the test was complete and nothing went wrong.
    pub fn holds(&self) -> bool {
        let played = self.cycles >= self.asked && self.pods > self.cycles;
        let woken = self.resolved >= self.cycles;
        played && woken && self.tally.holds() && self.tally.refused == 0
    }
}

/// Runs cells of one lag, all at once.
pub fn run_real(programs: &Programs, cells: &[Cell], cycles: u64) -> Result<Vec<RealOutcome>> {
    let lag = cells.first().context("no cell")?.lag;
    let home = programs.pod.parent().context("a program is in a folder")?;
    // Containers have temporary files of their own, so the table names the folder.
    let folder = tempfile::Builder::new().prefix("loss-").tempdir_in(home)?;
    let images = folder.path().join("images.toml");
    fs::write(&images, table(programs, folder.path()))?;
    let (lagging, images) = (format!("{lag}s"), images.to_string_lossy());
    let arguments = [
        "--without-idle",
        "--images",
        &images,
        "--service-lag",
        &lagging,
    ];
    let mut server = Server::start_whole_with(&programs.neap, &arguments)?;
    // On one thread: between two, an HTTP/2 client may learn that a connection is about to close
    // just as it opens a stream there, and hyper does not report that nothing was sent.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let played = runtime.block_on(async {
        let client = client(server.kubeconfig()).await?;
        let installed = Installed::new(&client, &programs.neap, folder.path()).await?;
        let real_run = RealRun {
            client,
            installed,
            poller: StatusPoller::default(),
            ledgers: folder.path().to_owned(),
            cycles,
        };
        real_run.run(cells).await
    });
    match played {
        Err(error) if server.has_ended() => {
            Err(error.context(format!("neap up has ended: {}", server.complaints()?)))
        }
        played => played,
    }
}

/// The programs of the images, and the folder to which pods write their ledgers.
fn table(programs: &Programs, ledgers: &Path) -> String {
    // A JSON string is a basic string of TOML, whatever the path contains.
    let quoted = |path: &Path| serde_json::json!(path.to_string_lossy()).to_string();
    format!(
        "[[image]]\nname = \"loss/pod\"\ncommand = [{}, \"pod\"]\nfolder = {}\n\
         [[image]]\nname = \"{}\"\ncommand = [{}]\n",
        quoted(&programs.pod),
        quoted(ledgers),
        install::IMAGE,
        quoted(&programs.neap),
    )
}

async fn client(kubeconfig: &Path) -> Result<Client> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
    Ok(Client::try_from(config)?)
}

/// What all runs of one lag share.
struct RealRun {
    client: Client,
    installed: Installed,
    poller: StatusPoller,
    ledgers: PathBuf,
    cycles: u64,
}

impl RealRun {
    async fn run(&self, cells: &[Cell]) -> Result<Vec<RealOutcome>> {
        let real_run = cells.iter().map(|cell| self.run_cell(*cell));
        let mut outcomes = tokio::select! {
            played = try_join_all(real_run) => played?,
            ended = self.poller.follow(&self.client, Clock::system()) => match ended? {},
        };
        let asked = self.installed.accepted_requests().await?;
        for outcome in &mut outcomes {
            let name = format!("default/{}", Service::name(outcome.cell));
            outcome.resolved = asked.get(&name).copied().unwrap_or(0);
        }
        Ok(outcomes)
    }

    async fn run_cell(&self, cell: Cell) -> Result<RealOutcome> {
        let played = self.played(cell).await;
        played.with_context(|| format!("cell {cell}"))
    }

    async fn played(&self, cell: Cell) -> Result<RealOutcome> {
        let (watch, clock) = (Stopwatch::start(), Clock::system());
        let written = self.ledgers.join(cell.to_string());
        let service = Service::new(&self.client, cell, &written, cell.lags() + LINGER_MARGIN);
        let address = service.create().await?;
        let name = Service::name(cell);
        self.poller
            .until(&name, status_poller::ServiceState::serves)
            .await?;
        // Its first pod is ready, which the data plane learns later.
        let reached = clock
            .within(WAIT_TIMEOUT, wait_until_reachable(address, clock))
            .await;
        reached.context("its address is never served")?;
        let (load, ledger) = load(cell, address, clock);
        let stop = CancellationToken::new();
        let loading = load.tasks.spawn(load.clone().run(stop.clone()));
        let mut cycles = 0;
        while cycles < self.cycles {
            let told = clock.now();
            service.sleep(told).await?;
            let woken = |state: &status_poller::ServiceState| state.was_woken(told);
            self.poller.until(&name, woken).await?;
            self.poller
                .until(&name, status_poller::ServiceState::serves)
                .await?;
            cycles += 1;
        }
        stop.cancel();
        loading.await?;
        wait_until_done(&ledger, clock).await?;
        let read = pod::read(&written)?;
        read.requests
            .iter()
            .for_each(|id| ledger.record_received(*id));
        Ok(RealOutcome {
            cell,
            asked: self.cycles,
            cycles,
            pods: read.pods,
            tally: ledger.close(),
            resolved: 0,
            took_ms: watch.elapsed().as_millis() as u64,
        })
    }
}

fn load(cell: Cell, address: SocketAddr, clock: Clock) -> (Arc<Load>, Arc<Ledger>) {
    let ledger = Arc::new(Ledger::default());
    let load = Load {
        cell,
        clock,
        router: Arc::new(FixedAddress(address)),
        ledger: ledger.clone(),
        tasks: TaskTracker::new(),
        may_refuse: false,
        rng: Mutex::new(fastrand::Rng::with_seed(7)),
        idle: Mutex::default(),
    };
    (Arc::new(load), ledger)
}

/// Waits until connections are accepted at an address.
async fn wait_until_reachable(address: SocketAddr, clock: Clock) {
    while TcpStream::connect(address).await.is_err() {
        clock.sleep(Duration::from_millis(50)).await;
    }
}

async fn wait_until_done(ledger: &Ledger, clock: Clock) -> Result<()> {
    let began = clock.uptime();
    while ledger.open() > 0 {
        if clock.uptime().saturating_sub(began) > WAIT_TIMEOUT {
            bail!("{} requests are never over", ledger.open());
        }
        clock.sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// The address of the Service; the data plane of the cluster decides where connections go.
#[derive(Debug)]
struct FixedAddress(SocketAddr);

impl Router for FixedAddress {
    fn route(&self, _: usize) -> Destination {
        Destination::To(self.0)
    }

    fn client_address(&self, _: usize, _: &mut fastrand::Rng) -> SocketAddr {
        SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome() -> RealOutcome {
        RealOutcome {
            cell: "1,50,grpc".parse().unwrap(),
            asked: 5,
            cycles: 5,
            pods: 6,
            tally: RequestTally::default(),
            resolved: 5,
            took_ms: 1,
        }
    }

    #[test]
    fn it_holds_only_if_all_was_played_through_resolvers_and_nothing_was_lost_or_refused() {
        assert!(outcome().holds());
        let cases: [fn(&mut RealOutcome); 6] = [
            |it| it.cycles = 4,
            |it| it.pods = 5,
            |it| it.resolved = 4,
            |it| it.tally.lost = 1,
            |it| it.tally.duplicated = 1,
            |it| it.tally.refused = 1,
        ];
        for (number, change) in cases.into_iter().enumerate() {
            let mut other = outcome();
            change(&mut other);
            assert!(!other.holds(), "case {number}");
        }
    }
}
