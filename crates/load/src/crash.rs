//! Kills a server that is being written to, again and again, and holds it to what it promised.
//!
//! After every restart: each acknowledged write is there at its revision; a write without an answer
//! happened as a whole or not at all; no revision is given twice or goes back; each watch goes on
//! from where it was with exactly the events it missed, or is told that its place expired.

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

use self::{folder::Folder, promises::Promises, watcher::Watcher, writer::Writer};
use crate::{client::Client, dice::Dice, server::Server, stopwatch::Stopwatch};

/// How long writers may write before a kill.
const LONGEST: Duration = Duration::from_millis(600);
/// How long to wait for a compaction to begin, to kill in the middle of it.
const COMPACTION_WAIT: Duration = Duration::from_secs(2);
/// The folder is looked at this often.
const LOOK: Duration = Duration::from_millis(2);

/// What to do.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The program.
    pub neap: PathBuf,
    /// How often it is killed.
    pub kills: usize,
    /// How many clients write.
    pub writers: usize,
    /// Decides the moments and the writes.
    pub seed: u64,
}

/// What happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// All kills.
    pub kills: usize,
    /// Kills before the server was ready.
    pub starting: usize,
    /// Kills while a snapshot was being written.
    pub compacting: usize,
    /// Writes that were answered.
    pub acknowledged: u64,
    /// Writes that were not.
    pub unknown: usize,
    /// Those of them that happened.
    pub landed: usize,
    /// Watches that went on from where they were.
    pub resumed: usize,
    /// Watches that were told that their place expired.
    pub expired: usize,
    /// Compactions that came to an end.
    pub compactions: usize,
}

impl fmt::Display for Tally {
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
enum Moment {
    Starting(Duration),
    Running(Duration),
    /// So long after a compaction began.
    Compacting(Duration),
}

impl Moment {
    fn choose(dice: &mut Dice, start: Duration) -> Self {
        match dice.below(10) {
            0 | 1 => Self::Starting(dice.moment(start)),
            2 | 3 => Self::Compacting(dice.moment(Duration::from_millis(20))),
            _ => Self::Running(dice.moment(LONGEST)),
        }
    }
}

/// Runs the plan. An error is a broken promise, or a server that does not start.
pub async fn run(plan: &Plan, mut progress: impl FnMut(&Tally)) -> Result<Tally> {
    let mut run = Run::new(plan)?;
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

struct Run {
    data: TempDir,
    folder: Folder,
    dice: Dice,
    promises: Arc<Promises>,
    writers: Vec<Writer>,
    watchers: Vec<Watcher>,
    tally: Tally,
}

impl Run {
    fn new(plan: &Plan) -> Result<Self> {
        let data = tempfile::tempdir()?;
        let folder = Folder::new(data.path().join("store"));
        let mut dice = Dice::new(plan.seed);
        let promises = Arc::new(Promises::default());
        let writers = (0..plan.writers)
            .map(|index| Writer::new(index, dice.split(), promises.clone()))
            .collect();
        Ok(Self {
            data,
            folder,
            dice,
            promises,
            writers,
            watchers: Vec::new(),
            tally: Tally::default(),
        })
    }

    /// One start and one kill; returns how long the start took or was known to take.
    async fn round(&mut self, neap: &Path, start: Duration) -> Result<Duration> {
        self.tally.kills += 1;
        let moment = Moment::choose(&mut self.dice, start);
        if let Moment::Starting(after) = moment {
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
        self.write_until_killed(server, &client, moment).await?;
        Ok(took)
    }

    async fn write_until_killed(
        &mut self,
        server: Server,
        client: &Client,
        moment: Moment,
    ) -> Result<()> {
        let mut writers = JoinSet::new();
        for mut writer in self.writers.drain(..) {
            let client = client.clone();
            writers.spawn(async move {
                let worked = writer.work(&client).await;
                (writer, worked)
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
        self.wait_for(moment).await;
        server.kill()?;
        self.tally.compacting += usize::from(self.folder.look());
        while let Some(joined) = writers.join_next().await {
            let (writer, worked) = joined?;
            self.writers.push(writer);
            worked?;
        }
        while let Some(joined) = followers.join_next().await {
            let (watcher, followed) = joined?;
            self.watchers.push(watcher);
            followed?;
        }
        self.count();
        Ok(())
    }

    async fn wait_for(&mut self, moment: Moment) {
        let watch = Stopwatch::start();
        match moment {
            Moment::Starting(_) => {}
            Moment::Running(after) => {
                while watch.elapsed() < after {
                    self.folder.look();
                    sleep(LOOK.min(after.saturating_sub(watch.elapsed()))).await;
                }
            }
            Moment::Compacting(after) => {
                while !self.folder.look() && watch.elapsed() < COMPACTION_WAIT {
                    sleep(LOOK).await;
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

/// Starts a server and waits until it is ready, without holding up the clients.
async fn launch(neap: &Path, data: &Path) -> Result<Server> {
    let server = Server::launch(neap, Some(data))?;
    tokio::task::spawn_blocking(|| server.ready()).await?
}
