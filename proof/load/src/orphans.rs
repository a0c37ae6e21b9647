//! Kills a `neap up` whose pods are starting, running or stopping, and looks for remaining
//! processes a second later.
//!
//! A run that finds nothing proves something only if it would have found something: it starts with
//! a process that is left on purpose, and continues only if exactly that one is found.

mod pods;
mod process_family;
mod tally;

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;
use tokio::time::sleep;

pub use self::tally::{OrphanTally, RemainingProcess};
use self::{
    pods::Pods,
    process_family::{ProcessEntry, ProcessFamily},
};
use crate::{rng::SeededRng, server::Server, stopwatch::Stopwatch};

/// Time after which a process counts as left.
const EXIT_DEADLINE: Duration = Duration::from_secs(1);
/// Interval of the polls.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Time for the pods to reach a state.
const POD_STATE_TIMEOUT: Duration = Duration::from_mins(1);
/// Random delay of a kill at most, once the pods have reached the state.
const MAX_KILL_DELAY: Duration = Duration::from_millis(150);

/// The parameters of a run.
#[derive(Debug, Clone)]
pub struct OrphanRunOptions {
    pub neap: PathBuf,
    /// The number of kills.
    pub tries: usize,
    /// The seed of the moments.
    pub seed: u64,
}

/// The state of the pods when the kill comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum KillPhase {
    /// At least one has a process, and not all run.
    Starting,
    /// All run.
    Running,
    /// All are being deleted, and some never end by themselves.
    Stopping,
}

impl KillPhase {
    pub const ALL: [Self; 3] = [Self::Starting, Self::Running, Self::Stopping];

    pub fn word(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Stopping => "stopping",
        }
    }
}

/// Runs the plan. The tally names the remaining processes; an error is a run that proves nothing.
pub async fn run(
    plan: &OrphanRunOptions,
    mut progress: impl FnMut(&OrphanTally),
) -> Result<OrphanTally> {
    let mut rng = SeededRng::new(plan.seed);
    check_detection(&plan.neap, &mut rng).await?;
    let mut tally = OrphanTally::default();
    for (number, phase) in (1..=plan.tries).zip(KillPhase::ALL.into_iter().cycle()) {
        let seen = KillAttempt::begin(&plan.neap)?.run(phase, &mut rng, None);
        let seen = seen.await;
        let seen = seen.with_context(|| format!("try {number}, {}", phase.word()))?;
        tally.count(number, phase, seen);
        progress(&tally);
    }
    Ok(tally)
}

/// The result of one kill.
#[derive(Debug)]
struct KillResult {
    /// The number of processes before it.
    processes: usize,
    /// When the last of them was gone, without those that are left.
    gone: Duration,
    left: Vec<ProcessEntry>,
}

/// Leaves a process on purpose: it must be found, and no other.
async fn check_detection(neap: &Path, rng: &mut SeededRng) -> Result<()> {
    let attempt = KillAttempt::begin(neap)?;
    let mut forgotten = Command::new("sleep")
        .arg("86400")
        .env(pods::MARK, attempt.family.mark())
        .spawn()
        .context("cannot run sleep")?;
    let id = forgotten.id();
    let seen = attempt.run(KillPhase::Running, rng, Some(id)).await;
    forgotten.kill()?;
    forgotten.wait()?;
    let left: Vec<_> = seen?.left.iter().map(|process| process.id).collect();
    ensure!(
        left == [id],
        "process {id} was left on purpose, and {left:?} were found: this run would show nothing"
    );
    Ok(())
}

/// A `neap up` and its end.
struct KillAttempt {
    family: ProcessFamily,
    pods: Pods,
    server: Server,
    _folder: TempDir,
}

impl KillAttempt {
    fn begin(neap: &Path) -> Result<Self> {
        // Its random part is unique, and it is in the name of each file that a launcher gets.
        let folder = tempfile::Builder::new().prefix("orphans-of-").tempdir()?;
        let mark = folder.path().file_name().unwrap_or_default();
        let mark = mark.to_string_lossy().into_owned();
        let mut command = Command::new(neap);
        command.env("TMPDIR", folder.path());
        let server = Server::start_whole_command(&mut command)?;
        Ok(Self {
            pods: Pods::new(server.client()?, &mark),
            family: ProcessFamily::new(mark),
            server,
            _folder: folder,
        })
    }

    /// Kills it at the moment. `spared` is not killed; its creator does that.
    async fn run(
        mut self,
        phase: KillPhase,
        rng: &mut SeededRng,
        spared: Option<u32>,
    ) -> Result<KillResult> {
        self.pods.create().await?;
        self.wait_for(phase).await?;
        sleep(rng.duration_below(MAX_KILL_DELAY)).await;
        let server = self.server.id();
        let known = process_family::below(server)?;
        ensure!(!known.is_empty(), "no process was at stake");
        self.server.kill()?;
        let watch = Stopwatch::start();
        let mut gone = Duration::ZERO;
        while watch.elapsed() < EXIT_DEADLINE {
            if !self.family.alive(&known)?.is_empty() {
                gone = watch.elapsed();
            }
            sleep(POLL_INTERVAL).await;
        }
        let left = self.family.alive(&known)?;
        for process in &left {
            if Some(process.id) != spared {
                process.end();
            }
        }
        Ok(KillResult {
            processes: known.len(),
            gone,
            left,
        })
    }

    async fn wait_for(&mut self, phase: KillPhase) -> Result<()> {
        let watch = Stopwatch::start();
        let server = self.server.id();
        loop {
            let wait_for = if phase == KillPhase::Starting {
                !process_family::below(server)?.is_empty()
            } else {
                self.pods.all_run().await?
            };
            if wait_for {
                break;
            }
            let late = watch.elapsed() > POD_STATE_TIMEOUT;
            ensure!(!late, "the pods are not {} yet", phase.word());
            sleep(POLL_INTERVAL).await;
        }
        if phase == KillPhase::Stopping {
            self.pods.delete().await?;
        }
        Ok(())
    }
}
