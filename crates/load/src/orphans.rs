//! Kills a `neap up` whose pods are starting, running or stopping, and looks for what is left of
//! them a second later.
//!
//! A run that finds nothing shows something only if it would have found something: it begins with a
//! process that is left on purpose, and goes on only if that one alone is named.

mod kin;
mod pods;
mod tally;

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;
use tokio::time::sleep;

pub use self::tally::{Left, Tally};
use self::{
    kin::{Kin, Process},
    pods::Pods,
};
use crate::{dice::Dice, server::Server, stopwatch::Stopwatch};

/// Who is still there after this long is left.
const LATEST: Duration = Duration::from_secs(1);
/// The pause between two looks.
const LOOK: Duration = Duration::from_millis(5);
/// What has not begun after this long never will.
const PATIENCE: Duration = Duration::from_mins(1);
/// A kill comes at some moment before this, once its time has come.
const LONGEST: Duration = Duration::from_millis(150);

/// What to do.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The program.
    pub neap: PathBuf,
    /// How often it is killed.
    pub tries: usize,
    /// Decides the moments.
    pub seed: u64,
}

/// What the pods are doing when the end comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// At least one has a process, and not all run.
    Starting,
    /// All run.
    Running,
    /// All were asked to end, and some never will by themselves.
    Stopping,
}

impl Moment {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Starting, Self::Running, Self::Stopping];

    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Stopping => "stopping",
        }
    }
}

/// Runs the plan. Who is left is in the tally; an error is a run that shows nothing.
pub async fn run(plan: &Plan, mut progress: impl FnMut(&Tally)) -> Result<Tally> {
    let mut dice = Dice::new(plan.seed);
    would_be_found(&plan.neap, &mut dice).await?;
    let mut tally = Tally::default();
    for (number, moment) in (1..=plan.tries).zip(Moment::ALL.into_iter().cycle()) {
        let seen = Attempt::begin(&plan.neap)?.run(moment, &mut dice, None);
        let seen = seen.await;
        let seen = seen.with_context(|| format!("try {number}, {}", moment.word()))?;
        tally.count(number, moment, seen);
        progress(&tally);
    }
    Ok(tally)
}

/// What was seen of one kill.
#[derive(Debug)]
struct Seen {
    /// How many there were.
    processes: usize,
    /// When the last of them was gone; not for those that are left.
    gone: Duration,
    /// Who is left.
    left: Vec<Process>,
}

/// Leaves a process on purpose: it has to be named, and no other.
async fn would_be_found(neap: &Path, dice: &mut Dice) -> Result<()> {
    let attempt = Attempt::begin(neap)?;
    let mut forgotten = Command::new("sleep")
        .arg("86400")
        .env(pods::MARK, attempt.kin.mark())
        .spawn()
        .context("cannot run sleep")?;
    let id = forgotten.id();
    let seen = attempt.run(Moment::Running, dice, Some(id)).await;
    forgotten.kill()?;
    forgotten.wait()?;
    let left: Vec<_> = seen?.left.iter().map(|process| process.id).collect();
    ensure!(
        left == [id],
        "process {id} was left on purpose, and {left:?} were found: this run would show nothing"
    );
    Ok(())
}

/// One `neap up` and its end.
struct Attempt {
    kin: Kin,
    pods: Pods,
    server: Server,
    _folder: TempDir,
}

impl Attempt {
    fn begin(neap: &Path) -> Result<Self> {
        // Its random part makes it unlike every other, and it is in the name of each file that a
        // launcher is given.
        let folder = tempfile::Builder::new().prefix("orphans-of-").tempdir()?;
        let mark = folder.path().file_name().unwrap_or_default();
        let mark = mark.to_string_lossy().into_owned();
        let mut command = Command::new(neap);
        command.env("TMPDIR", folder.path());
        let server = Server::start_whole_command(&mut command)?;
        Ok(Self {
            pods: Pods::new(server.client()?, &mark),
            kin: Kin::new(mark),
            server,
            _folder: folder,
        })
    }

    /// Kills it at the moment. `spared` is left to whoever made it.
    async fn run(mut self, moment: Moment, dice: &mut Dice, spared: Option<u32>) -> Result<Seen> {
        self.pods.create().await?;
        self.come(moment).await?;
        sleep(dice.moment(LONGEST)).await;
        let server = self.server.id();
        let known = kin::below(server)?;
        ensure!(!known.is_empty(), "no process was at stake");
        self.server.kill()?;
        let watch = Stopwatch::start();
        let mut gone = Duration::ZERO;
        while watch.elapsed() < LATEST {
            if !self.kin.alive(&known)?.is_empty() {
                gone = watch.elapsed();
            }
            sleep(LOOK).await;
        }
        let left = self.kin.alive(&known)?;
        for process in &left {
            if Some(process.id) != spared {
                process.end();
            }
        }
        Ok(Seen {
            processes: known.len(),
            gone,
            left,
        })
    }

    async fn come(&mut self, moment: Moment) -> Result<()> {
        let watch = Stopwatch::start();
        let server = self.server.id();
        loop {
            let come = if moment == Moment::Starting {
                !kin::below(server)?.is_empty()
            } else {
                self.pods.all_run().await?
            };
            if come {
                break;
            }
            let late = watch.elapsed() > PATIENCE;
            ensure!(!late, "the pods are not {} yet", moment.word());
            sleep(LOOK).await;
        }
        if moment == Moment::Stopping {
            self.pods.delete().await?;
        }
        Ok(())
    }
}
