//! The same with real processes and in real time: `neap up` runs the operator, the resolver, the data
//! plane and the pods, each of which is a process. All rates and protocols of one lag at once.

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
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    cell::Cell,
    ledger::{Ledger, Saw},
    load::{Leads, Load, Way},
    play::Outcome,
    pod,
    service::Service,
    stopwatch::Stopwatch,
};

/// Pods take connections for so long beyond the lag of the data plane after they are told to end:
/// there are also probes and processes that take their time here.
const MARGIN: Duration = Duration::from_secs(2);
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

/// Plays cells of one lag, all at once.
pub fn really(programs: &Programs, cells: &[Cell], cycles: u64) -> Result<Vec<Outcome>> {
    let lag = cells.first().context("no cell")?.lag;
    let home = programs.pod.parent().context("a program is in a folder")?;
    // Not where temporary files are: containers have their own there.
    let folder = tempfile::Builder::new().prefix("loss-").tempdir_in(home)?;
    let images = folder.path().join("images.toml");
    let table = format!(
        "[[image]]\nname = \"loss/pod\"\ncommand = [\"{}\", \"pod\"]\n",
        programs.pod.display()
    );
    fs::write(&images, table)?;
    let lagging = format!("{lag}s");
    let images = images.to_string_lossy();
    let arguments = ["--images", &images, "--service-lag", &lagging];
    let server = Server::start_whole_with(&programs.neap, &arguments)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let client = client(server.kubeconfig()).await?;
        let plays = cells.iter().map(|cell| {
            let play = Real {
                cell: *cell,
                cycles,
                client: client.clone(),
                ledger: folder.path().join(cell.to_string()),
            };
            play.run()
        });
        try_join_all(plays).await
    })
}

async fn client(kubeconfig: &Path) -> Result<Client> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
    Ok(Client::try_from(config)?)
}

struct Real {
    cell: Cell,
    cycles: u64,
    client: Client,
    ledger: PathBuf,
}

impl Real {
    async fn run(self) -> Result<Outcome> {
        let watch = Stopwatch::start();
        let (cell, clock) = (self.cell, Clock::system());
        let linger = cell.lags() + MARGIN;
        let service = Service::new(&self.client, cell, &self.ledger, linger);
        let address = service.create().await?;
        let played = async {
            until(clock, "it serves", async || service.serves().await).await?;
            let ledger = Arc::new(Ledger::default());
            let load = Arc::new(Load {
                cell,
                clock,
                way: Arc::new(Address(address)),
                ledger: ledger.clone(),
                tasks: TaskTracker::new(),
                may_refuse: false,
                dice: Mutex::new(fastrand::Rng::with_seed(7)),
                kept: Mutex::default(),
            });
            let stop = CancellationToken::new();
            let loading = load.tasks.spawn(load.clone().run(stop.clone()));
            for _ in 0..self.cycles {
                service.sleep(clock.now()).await?;
                until(clock, "it sleeps", async || service.sleeps().await).await?;
                until(clock, "it serves", async || service.serves().await).await?;
            }
            stop.cancel();
            loading.await?;
            until(clock, "all are over", async || Ok(ledger.open() == 0)).await?;
            for id in pod::read(&self.ledger)? {
                ledger.saw(id);
            }
            anyhow::Ok(ledger.close())
        };
        let tally = played.await.with_context(|| format!("cell {cell}"))?;
        let took = watch.elapsed();
        Ok(Outcome {
            cell,
            asked: self.cycles,
            cycles: self.cycles,
            budgeted: false,
            tally,
            unproved: 0,
            cut_off: 0,
            played_seconds: took.as_secs(),
            took_ms: took.as_millis() as u64,
        })
    }
}

async fn until(clock: Clock, what: &str, is_so: impl AsyncFn() -> Result<bool>) -> Result<()> {
    let began = clock.uptime();
    while !is_so().await? {
        if clock.uptime().saturating_sub(began) > STUCK {
            bail!("it never came to it that {what}");
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
