//! Lets processes stand for election, stops and kills them, and judges what came of it.
//!
//! After a leader was stopped past its lease and goes on: no write of its was begun when the lease
//! had run out; none was accepted after its successor had written; no two led in one term. That is
//! judged at the end from the whole history, by [`judge`] alone.

pub mod contestant;
pub mod history;
pub mod judge;
mod process;
mod sight;
mod tally;

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail};
use jiff::Timestamp;
use neap_kit::{clock::Clock, lease::Timings};
use tokio::task::JoinSet;

pub use self::tally::Tally;
use self::{
    history::{Held, History},
    judge::judge,
    process::{Process, Program},
    sight::{Seen, Watched},
};
use crate::{client::Client, dice::Dice, server::Server};

const NAMESPACE: &str = "default";
const LEASE: &str = "contest";
const LEDGER: &str = "ledger";
/// What has not happened after this many leases never will.
const PATIENCE: u32 = 10;
/// So many breaches are told of.
const SHOWN: usize = 10;

/// By which times the contestants go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// The shortest that a Lease can say.
    Short,
    /// Those of every controller.
    Default,
}

impl Pace {
    fn word(self) -> &'static str {
        match self {
            Self::Short => "short",
            Self::Default => "default",
        }
    }

    /// How long things last.
    pub fn timings(self) -> Timings {
        match self {
            Self::Short => Timings {
                duration: Duration::from_secs(1),
                deadline: Duration::from_millis(700),
                retry: Duration::from_millis(200),
            },
            Self::Default => Timings::default(),
        }
    }
}

/// What to do.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The program that is the server.
    pub neap: PathBuf,
    /// The program that is the contestants.
    pub load: PathBuf,
    /// By which times they go.
    pub pace: Pace,
    /// How often a leader is stopped and goes on.
    pub stops: usize,
    /// How often a leader is killed.
    pub kills: usize,
    /// How often a leader ends in order.
    pub ends: usize,
    /// Decides the moments.
    pub seed: u64,
}

#[derive(Debug, Clone, Copy)]
enum Fate {
    Stopped,
    Killed,
    Ended,
}

/// Runs the plan. An error is a broken promise, or a follower that never follows.
pub async fn run(plan: &Plan, mut progress: impl FnMut(&Tally)) -> Result<Tally> {
    let mut contest = Contest::begin(plan).await?;
    let stops = std::iter::repeat_n(Fate::Stopped, plan.stops);
    let kills = std::iter::repeat_n(Fate::Killed, plan.kills);
    let ends = std::iter::repeat_n(Fate::Ended, plan.ends);
    for fate in stops.chain(kills).chain(ends) {
        let done = contest.round(fate).await;
        done.with_context(|| format!("after {}", contest.tally))?;
        progress(&contest.tally);
    }
    contest.end().await
}

struct Contest {
    timings: Timings,
    program: Program,
    contestants: Vec<Process>,
    /// How many there have been.
    born: usize,
    seen: Arc<Seen>,
    dice: Dice,
    clock: Clock,
    tally: Tally,
    client: Client,
    _watches: JoinSet<()>,
    _server: Server,
}

impl Contest {
    async fn begin(plan: &Plan) -> Result<Self> {
        let server = Server::launch(&plan.neap, None)?;
        let server = tokio::task::spawn_blocking(|| server.ready()).await??;
        let client = server.client()?;
        let seen = Seen::new();
        let mut watches = JoinSet::new();
        for watched in Watched::BOTH {
            let from = watched.now(&client).await?;
            watches.spawn(watched.follow(from, client.clone(), seen.clone()));
        }
        let mut contest = Self {
            timings: plan.pace.timings(),
            program: Program {
                load: plan.load.clone(),
                kubeconfig: server.kubeconfig().to_owned(),
                pace: plan.pace,
            },
            contestants: Vec::new(),
            born: 0,
            seen,
            dice: Dice::new(plan.seed),
            clock: Clock::system(),
            tally: Tally::default(),
            client,
            _watches: watches,
            _server: server,
        };
        contest.complete()?;
        Ok(contest)
    }

    /// There are always two.
    fn complete(&mut self) -> Result<()> {
        while self.contestants.len() < 2 {
            let identity = format!("contestant-{}", self.born);
            self.born += 1;
            let one = self.program.start(&identity, &self.seen)?;
            self.contestants.push(one);
        }
        Ok(())
    }

    async fn round(&mut self, fate: Fate) -> Result<()> {
        self.established().await?;
        let moment = self.dice.moment(2 * self.timings.retry);
        self.clock.sleep(moment).await;
        let lease = self.lease()?;
        let holder = lease.holder.as_deref().context("nobody leads")?;
        let mut contestants = self.contestants.iter();
        let leader = contestants.position(|one| one.identity == holder);
        let leader = leader.with_context(|| format!("{holder} is none of ours"))?;
        match fate {
            Fate::Stopped => self.stop(leader, &lease).await,
            Fate::Killed => self.kill(leader, &lease).await,
            Fate::Ended => self.ask_to_end(leader, &lease).await,
        }
    }

    /// Until a leader has written, and has renewed twice since the last contestant was started, so
    /// that a follower has seen it.
    async fn established(&self) -> Result<()> {
        let newest = self.seen.history().leases.len();
        self.until("a leader that writes and renews", move |history| {
            let lease = history.leases.last()?;
            let renewed = history.leases.len() >= newest + 3;
            let writes = history.ledger.last()?.stamp.term == lease.term;
            (renewed && writes && lease.holder.is_some()).then_some(())
        })
        .await
    }

    /// Stops the leader, mostly until its successor has written, and lets it go on.
    async fn stop(&mut self, leader: usize, lease: &Held) -> Result<()> {
        self.contestants[leader].stop()?;
        self.tally.stops += 1;
        if self.dice.below(5) == 0 {
            // Somewhere about the end of its lease.
            let length = self.timings.duration.mul_f64(1.5);
            self.clock.sleep(self.dice.moment(length)).await;
        } else {
            let taken = self.taken(lease).await?;
            self.tally.after_stops.push(taken);
            let term = lease.term;
            self.until("a successor that writes", move |history| {
                let entry = history.ledger.last()?;
                (entry.stamp.term > term).then_some(())
            })
            .await?;
            let longer = self.dice.moment(self.timings.retry);
            self.clock.sleep(longer).await;
        }
        self.contestants[leader].wake()
    }

    async fn kill(&mut self, leader: usize, lease: &Held) -> Result<()> {
        self.contestants[leader].kill()?;
        let taken = self.taken(lease).await?;
        self.tally.after_kills.push(taken);
        self.replace(leader).await
    }

    async fn ask_to_end(&mut self, leader: usize, lease: &Held) -> Result<()> {
        let asked = self.clock.now();
        self.contestants[leader].ask_to_end()?;
        self.successor(lease).await?;
        self.tally.after_ends.push(since(asked, self.clock.now()));
        self.replace(leader).await
    }

    async fn replace(&mut self, gone: usize) -> Result<()> {
        self.contestants.remove(gone).ended().await?;
        self.complete()
    }

    /// From the last renewal of the term of `lease` until another was seen to lead.
    async fn taken(&self, lease: &Held) -> Result<Duration> {
        self.successor(lease).await?;
        let now = self.clock.now();
        let history = self.seen.history();
        let of_term = |held: &&Held| held.term == lease.term && held.holder.is_some();
        let last = history.leases.iter().rfind(of_term);
        Ok(since(last.context("no renewal")?.renewed, now))
    }

    async fn successor(&self, lease: &Held) -> Result<()> {
        let term = lease.term;
        self.until("a successor", move |history| {
            let lease = history.leases.last()?;
            (lease.term > term && lease.holder.is_some()).then_some(())
        })
        .await
    }

    async fn until<T>(&self, what: &str, look: impl Fn(&History) -> Option<T>) -> Result<T> {
        let patience = self.timings.duration * PATIENCE;
        self.seen.until(what, patience, look).await
    }

    fn lease(&self) -> Result<Held> {
        let last = self.seen.history().leases.pop();
        last.context("there is no lease")
    }

    /// Ends everybody, waits for the rest of the history, and judges it.
    async fn end(mut self) -> Result<Tally> {
        for contestant in self.contestants.drain(..) {
            contestant.ask_to_end()?;
            contestant.ended().await?;
        }
        for watched in Watched::BOTH {
            let newest = watched.newest(&self.client).await?;
            let whole = |history: &History| (watched.last(history) >= newest).then_some(());
            self.until("the rest of the history", whole).await?;
        }
        let history = self.seen.history();
        let breaches = judge(&history, self.timings.deadline);
        if !breaches.is_empty() {
            let first = breaches.iter().take(SHOWN).map(ToString::to_string);
            let first: Vec<_> = first.collect();
            bail!(
                "{} promises broken, the first of them:\n{}",
                breaches.len(),
                first.join("\n")
            );
        }
        self.tally.count(&history);
        Ok(self.tally)
    }
}

fn since(earlier: Timestamp, now: Timestamp) -> Duration {
    now.duration_since(earlier)
        .max(jiff::SignedDuration::ZERO)
        .unsigned_abs()
}
