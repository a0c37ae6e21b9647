//! The same with real processes and in real time: `neap up` is the server, the node and the data plane;
//! operators, resolvers and pods are processes that it runs. All rates and protocols of one lag at once.

mod board;
mod install;

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

use self::{board::Board, install::Installed};
use crate::{
    cell::Cell,
    ledger::{Ledger, Saw, Tally},
    load::{Leads, Load, Way},
    pod,
    service::Service,
    stopwatch::Stopwatch,
};

/// Pods take connections for so long beyond the lag of the data plane after they are told to end:
/// longer than clients keep one that they do not use, so that nobody sends anything over a connection
/// that is being closed.
const MARGIN: Duration = Duration::from_secs(7);
/// Nothing takes longer unless it is stuck.
const STUCK: Duration = Duration::from_mins(5);

/// Which programs are tried.
#[derive(Debug, Clone)]
pub struct Programs {
    /// `neap`.
    pub neap: PathBuf,
    /// This one, as a pod runs it.
    pub pod: PathBuf,
}

/// What came of a cell.
#[derive(Debug, Clone, Serialize)]
pub struct RealOutcome {
    /// Under which conditions.
    pub cell: Cell,
    /// So many cycles were asked for.
    pub asked: u64,
    /// So often it was told to sleep, and was then woken by a request.
    pub cycles: u64,
    /// So many pods there were: one, and one more after each sleep.
    pub pods: u64,
    /// What became of the requests.
    pub tally: Tally,
    /// So many requests, or connections of raw TCP, went through resolvers.
    pub resolved: u64,
    /// So many milliseconds it took.
    pub took_ms: u64,
}

impl RealOutcome {
    /// Whether everything was played, and nothing went wrong.
    pub fn holds(&self) -> bool {
        let played = self.cycles >= self.asked && self.pods > self.cycles;
        let woken = self.resolved >= self.cycles;
        played && woken && self.tally.holds() && self.tally.refused == 0
    }
}

/// Plays cells of one lag, all at once.
pub fn really(programs: &Programs, cells: &[Cell], cycles: u64) -> Result<Vec<RealOutcome>> {
    let lag = cells.first().context("no cell")?.lag;
    let home = programs.pod.parent().context("a program is in a folder")?;
    // Not where temporary files are: containers have their own there.
    let folder = tempfile::Builder::new().prefix("loss-").tempdir_in(home)?;
    let images = folder.path().join("images.toml");
    fs::write(&images, table(programs))?;
    let (lagging, images) = (format!("{lag}s"), images.to_string_lossy());
    let arguments = [
        "--without-idle",
        "--images",
        &images,
        "--service-lag",
        &lagging,
    ];
    let mut server = Server::start_whole_with(&programs.neap, &arguments)?;
    // On one thread: between two, a client over HTTP/2 may hear that a connection is about to close just
    // as it opens a stream there, and hyper does not tell it that nothing was sent.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let played = runtime.block_on(async {
        let client = client(server.kubeconfig()).await?;
        let installed = Installed::new(&client, &programs.neap, folder.path()).await?;
        let plays = Plays {
            client,
            installed,
            board: Board::default(),
            ledgers: folder.path().to_owned(),
            cycles,
        };
        plays.run(cells).await
    });
    match played {
        Err(error) if server.has_ended() => {
            Err(error.context(format!("neap up has ended: {}", server.complaints()?)))
        }
        played => played,
    }
}

/// Which programs images are.
fn table(programs: &Programs) -> String {
    format!(
        "[[image]]\nname = \"loss/pod\"\ncommand = [\"{}\", \"pod\"]\n\
         [[image]]\nname = \"{}\"\ncommand = [\"{}\"]\n",
        programs.pod.display(),
        install::IMAGE,
        programs.neap.display(),
    )
}

async fn client(kubeconfig: &Path) -> Result<Client> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
    Ok(Client::try_from(config)?)
}

/// What all plays of one lag share.
struct Plays {
    client: Client,
    installed: Installed,
    board: Board,
    ledgers: PathBuf,
    cycles: u64,
}

impl Plays {
    async fn run(&self, cells: &[Cell]) -> Result<Vec<RealOutcome>> {
        let plays = cells.iter().map(|cell| self.play(*cell));
        let mut outcomes = tokio::select! {
            played = try_join_all(plays) => played?,
            ended = self.board.follow(&self.client, Clock::system()) => match ended? {},
        };
        let asked = self.installed.asked().await?;
        for outcome in &mut outcomes {
            let name = format!("default/{}", Service::name(outcome.cell));
            outcome.resolved = asked.get(&name).copied().unwrap_or(0);
        }
        Ok(outcomes)
    }

    async fn play(&self, cell: Cell) -> Result<RealOutcome> {
        let played = self.played(cell).await;
        played.with_context(|| format!("cell {cell}"))
    }

    async fn played(&self, cell: Cell) -> Result<RealOutcome> {
        let (watch, clock) = (Stopwatch::start(), Clock::system());
        let written = self.ledgers.join(cell.to_string());
        let service = Service::new(&self.client, cell, &written, cell.lags() + MARGIN);
        let address = service.create().await?;
        let name = Service::name(cell);
        self.board.until(&name, board::Note::serves).await?;
        // Its first pod is ready, of which the data plane hears later.
        let reached = clock.within(STUCK, reached(address, clock)).await;
        reached.context("its address is never served")?;
        let (load, ledger) = load(cell, address, clock);
        let stop = CancellationToken::new();
        let loading = load.tasks.spawn(load.clone().run(stop.clone()));
        let mut cycles = 0;
        while cycles < self.cycles {
            let told = clock.now();
            service.sleep(told).await?;
            let woken = |note: &board::Note| note.was_woken(told);
            self.board.until(&name, woken).await?;
            self.board.until(&name, board::Note::serves).await?;
            cycles += 1;
        }
        stop.cancel();
        loading.await?;
        all_over(&ledger, clock).await?;
        let read = pod::read(&written)?;
        read.requests.iter().for_each(|id| ledger.saw(*id));
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
        way: Arc::new(Address(address)),
        ledger: ledger.clone(),
        tasks: TaskTracker::new(),
        may_refuse: false,
        dice: Mutex::new(fastrand::Rng::with_seed(7)),
        kept: Mutex::default(),
    };
    (Arc::new(load), ledger)
}

/// Returns once somebody takes connections at an address.
async fn reached(address: SocketAddr, clock: Clock) {
    while TcpStream::connect(address).await.is_err() {
        clock.sleep(Duration::from_millis(50)).await;
    }
}

async fn all_over(ledger: &Ledger, clock: Clock) -> Result<()> {
    let began = clock.uptime();
    while ledger.open() > 0 {
        if clock.uptime().saturating_sub(began) > STUCK {
            bail!("{} requests are never over", ledger.open());
        }
        clock.sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// The address of the Service, which everybody else has to lead on from.
#[derive(Debug)]
struct Address(SocketAddr);

impl Way for Address {
    fn leads(&self, _: usize) -> Leads {
        Leads::To(self.0)
    }

    fn place(&self, _: usize, _: &mut fastrand::Rng) -> SocketAddr {
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
            tally: Tally::default(),
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
