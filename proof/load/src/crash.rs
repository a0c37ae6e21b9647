//! Kills a server under writes, again and again, and checks that it keeps its promises.
//!
//! After every restart: each acknowledged write is there at its revision; a write without an answer
//! happened as a whole or not at all; no revision is assigned twice or decreases; each watch
//! resumes with exactly the events it missed, or is told that its revision has expired.

mod check;
mod folder;
mod ledger;
mod promises;
mod watcher;
mod writer;

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result};
use tempfile::TempDir;
use tokio::{task::JoinSet, time::sleep};

use self::{folder::DataFolder, promises::Promises, watcher::ResumingWatcher, writer::LoadWriter};
use crate::{client::Client, rng::SeededRng, server::Server, stopwatch::Stopwatch};

/// Time for which writers write before a kill.
const MAX_WRITE_TIME: Duration = Duration::from_millis(600);
/// Time to wait for a compaction to start, to kill in the middle of it.
const COMPACTION_WAIT: Duration = Duration::from_secs(2);
/// Interval at which the data folder is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// The parameters of a crash run.
#[derive(Debug, Clone)]
pub struct CrashOptions {
    pub neap: PathBuf,
    pub kills: usize,
    pub writers: usize,
    /// The seed of the moments and the writes.
    pub seed: u64,
}

/// The counts of a crash run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CrashTally {
    pub kills: usize,
    /// Kills before the server was ready.
    pub starting: usize,
    /// Kills while a snapshot was being written.
    pub compacting: usize,
    /// Writes that were answered.
    pub acknowledged: u64,
    /// Writes that were not answered.
    pub unknown: usize,
    /// Unanswered writes that happened.
    pub landed: usize,
    /// Watches that resumed at their revision.
    pub resumed: usize,
    /// Watches whose revision had expired.
    pub expired: usize,
    /// Compactions that were completed.
    pub compactions: usize,
}

impl fmt::Display for CrashTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} kills ({} while starting, {} while compacting), {} writes acknowledged, {} unknown \
             ({} happened), {} watches resumed, {} expired, {} compactions",
            self.kills,
            self.starting,
            self.compacting,
            self.acknowledged,
            self.unknown,
            self.landed,
            self.resumed,
            self.expired,
            self.compactions
        )
    }
}

/// When a server is killed.
#[derive(Debug, Clone, Copy)]
enum KillMoment {
    Starting(Duration),
    Running(Duration),
    /// This long after a compaction started.
    Compacting(Duration),
}

impl KillMoment {
    fn choose(rng: &mut SeededRng, start: Duration) -> Self {
        match rng.below(10) {
            0 | 1 => Self::Starting(rng.duration_below(start)),
            2 | 3 => Self::Compacting(rng.duration_below(Duration::from_millis(20))),
            _ => Self::Running(rng.duration_below(MAX_WRITE_TIME)),
        }
    }
}

/// Runs the plan. An error is a broken promise, or a server that does not start.
pub async fn run(plan: &CrashOptions, mut progress: impl FnMut(&CrashTally)) -> Result<CrashTally> {
    let mut run = CrashRun::new(plan)?;
    let mut start = run.prepare(&plan.neap).await?;
    while run.tally.kills < plan.kills {
        let round = run.round(&plan.neap, start).await;
        start = round.with_context(|| format!("after {}", run.tally))?;
        progress(&run.tally);
    }
    let server = launch(&plan.neap, run.data.path()).await?;
    run.check(&server.client()?).await?;
    run.check_ballast(&server.client()?).await?;
    server.stop()?;
    Ok(run.tally)
}

struct CrashRun {
    data: TempDir,
    folder: DataFolder,
    rng: SeededRng,
    promises: Arc<Promises>,
    writers: Vec<LoadWriter>,
    watchers: Vec<ResumingWatcher>,
    tally: CrashTally,
}

impl CrashRun {
    fn new(plan: &CrashOptions) -> Result<Self> {
        let data = tempfile::tempdir()?;
        let folder = DataFolder::new(data.path().join("store"));
        let mut rng = SeededRng::new(plan.seed);
        let promises = Arc::new(Promises::default());
        let writers = (0..plan.writers)
            .map(|index| LoadWriter::new(index, rng.split(), promises.clone()))
            .collect();
        Ok(Self {
            data,
            folder,
            rng,
            promises,
            writers,
            watchers: Vec::new(),
            tally: CrashTally::default(),
        })
    }

    /// One start and one kill. Returns the time of the start, or the last known one.
    async fn round(&mut self, neap: &Path, start: Duration) -> Result<Duration> {
        self.tally.kills += 1;
        let kill_moment = KillMoment::choose(&mut self.rng, start);
        if let KillMoment::Starting(after) = kill_moment {
            let server = Server::launch(neap, Some(self.data.path()))?;
            sleep(after).await;
            server.kill()?;
            self.tally.starting += 1;
            return Ok(start);
        }
        let server = launch(neap, self.data.path()).await?;
        let client = server.client()?;
        self.check(&client).await?;
        if self.tally.kills.is_multiple_of(50) {
            self.check_ballast(&client).await?;
        }
        let took = server.ready_after();
        self.write_until_killed(server, &client, kill_moment)
            .await?;
        Ok(took)
    }

    async fn write_until_killed(
        &mut self,
        server: Server,
        client: &Client,
        kill_moment: KillMoment,
    ) -> Result<()> {
        let mut writers = JoinSet::new();
        for mut writer in self.writers.drain(..) {
            let client = client.clone();
            writers.spawn(async move {
                let cpu_seconds = writer.work(&client).await;
                (writer, cpu_seconds)
            });
        }
        let mut followers = JoinSet::new();
        for mut watcher in self.watchers.extract_if(.., |watcher| watcher.follows) {
            let client = client.clone();
            followers.spawn(async move {
                let followed = watcher.follow(&client).await;
                (watcher, followed)
            });
        }
        self.wait_for(kill_moment).await;
        server.kill()?;
        self.tally.compacting += usize::from(self.folder.poll());
        while let Some(joined) = writers.join_next().await {
            let (writer, cpu_seconds) = joined?;
            self.writers.push(writer);
            cpu_seconds?;
        }
        while let Some(joined) = followers.join_next().await {
            let (watcher, followed) = joined?;
            self.watchers.push(watcher);
            followed?;
        }
        self.count();
        Ok(())
    }

    async fn wait_for(&mut self, kill_moment: KillMoment) {
        let watch = Stopwatch::start();
        match kill_moment {
            KillMoment::Starting(_) => {}
            KillMoment::Running(after) => {
                while watch.elapsed() < after {
                    self.folder.poll();
                    sleep(POLL_INTERVAL.min(after.saturating_sub(watch.elapsed()))).await;
                }
            }
            KillMoment::Compacting(after) => {
                while !self.folder.poll() && watch.elapsed() < COMPACTION_WAIT {
                    sleep(POLL_INTERVAL).await;
                }
                sleep(after).await;
            }
        }
    }

    fn count(&mut self) {
        let entries = self
            .writers
            .iter()
            .flat_map(|writer| writer.ledger.values());
        let unknown = entries.filter(|entry| entry.unknown.is_some()).count();
        self.tally.unknown += unknown;
        self.tally.acknowledged = self.promises.acknowledged();
        self.tally.compactions = self.folder.compactions();
    }
}

/// Starts a server and waits until it is ready, without blocking the clients.
async fn launch(neap: &Path, data: &Path) -> Result<Server> {
    let server = Server::launch(neap, Some(data))?;
    tokio::task::spawn_blocking(|| server.ready()).await?
}
