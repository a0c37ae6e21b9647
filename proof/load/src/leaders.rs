//! Runs candidates of an election, pauses and kills them, and judges the history.
//!
//! After a leader was paused past its lease and resumes: it began no write when the lease had
//! expired; none was accepted after its successor had written; no term had two leaders. [`judge`]
//! decides this at the end, from the whole history.

pub mod candidate;
pub mod history;
pub mod judge;
mod observer;
mod process;
mod tally;

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail};
use jiff::Timestamp;
use neap_kit::{clock::Clock, lease::LeaseTimings};
use tokio::task::JoinSet;

pub use self::tally::ElectionTally;
use self::{
    history::{History, LeaseState},
    judge::judge,
    observer::{HistoryObserver, WatchedObject},
    process::{CandidateProcess, Program},
};
use crate::{client::Client, rng::SeededRng, server::Server};

const NAMESPACE: &str = "default";
const LEASE: &str = "contest";
const LEDGER: &str = "ledger";
/// Lease durations to wait for anything that must happen.
const WAIT_LEASES: u32 = 10;
/// Breaches that are shown.
const MAX_SHOWN_BREACHES: usize = 10;

/// The timings of the candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimingsPreset {
    /// The shortest that a Lease supports.
    Short,
    /// Those of every controller.
    Default,
}

impl TimingsPreset {
    fn word(self) -> &'static str {
        match self {
            Self::Short => "short",
            Self::Default => "default",
        }
    }

    pub fn timings(self) -> LeaseTimings {
        match self {
            Self::Short => LeaseTimings {
                lease_duration: Duration::from_secs(1),
                renew_deadline: Duration::from_millis(700),
                retry_period: Duration::from_millis(200),
            },
            Self::Default => LeaseTimings::default(),
        }
    }
}

/// The parameters of a run.
#[derive(Debug, Clone)]
pub struct ElectionRunOptions {
    /// The server program.
    pub neap: PathBuf,
    /// The candidate program.
    pub load: PathBuf,
    pub pace: TimingsPreset,
    /// How often a leader is paused and resumed.
    pub stops: usize,
    /// How often a leader is killed.
    pub kills: usize,
    /// How often a leader gets SIGTERM.
    pub ends: usize,
    /// The seed of the moments.
    pub seed: u64,
}

#[derive(Debug, Clone, Copy)]
enum Disturbance {
    Paused,
    Killed,
    Terminated,
}

/// Runs the plan. An error is a breach, or a follower that never takes over.
pub async fn run(
    plan: &ElectionRunOptions,
    mut progress: impl FnMut(&ElectionTally),
) -> Result<ElectionTally> {
    let mut election = Election::begin(plan).await?;
    let stops = std::iter::repeat_n(Disturbance::Paused, plan.stops);
    let kills = std::iter::repeat_n(Disturbance::Killed, plan.kills);
    let ends = std::iter::repeat_n(Disturbance::Terminated, plan.ends);
    for disturbance in stops.chain(kills).chain(ends) {
        let done = election.round(disturbance).await;
        done.with_context(|| format!("after {}", election.tally))?;
        progress(&election.tally);
    }
    election.end().await
}

struct Election {
    timings: LeaseTimings,
    program: Program,
    candidates: Vec<CandidateProcess>,
    /// The number of candidates started so far.
    started: usize,
    observer: Arc<HistoryObserver>,
    rng: SeededRng,
    clock: Clock,
    tally: ElectionTally,
    client: Client,
    _watches: JoinSet<()>,
    _server: Server,
}

impl Election {
    async fn begin(plan: &ElectionRunOptions) -> Result<Self> {
        let server = Server::launch(&plan.neap, None)?;
        let server = tokio::task::spawn_blocking(|| server.ready()).await??;
        let client = server.client()?;
        let observer = HistoryObserver::new();
        let mut watches = JoinSet::new();
        for watched in WatchedObject::BOTH {
            let from = watched.now(&client).await?;
            watches.spawn(watched.follow(from, client.clone(), observer.clone()));
        }
        let mut election = Self {
            timings: plan.pace.timings(),
            program: Program {
                load: plan.load.clone(),
                kubeconfig: server.kubeconfig().to_owned(),
                pace: plan.pace,
            },
            candidates: Vec::new(),
            started: 0,
            observer,
            rng: SeededRng::new(plan.seed),
            clock: Clock::system(),
            tally: ElectionTally::default(),
            client,
            _watches: watches,
            _server: server,
        };
        election.complete()?;
        Ok(election)
    }

    /// Starts candidates until there are two.
    fn complete(&mut self) -> Result<()> {
        while self.candidates.len() < 2 {
            let identity = format!("contestant-{}", self.started);
            self.started += 1;
            let one = self.program.start(&identity, &self.observer)?;
            self.candidates.push(one);
        }
        Ok(())
    }

    async fn round(&mut self, disturbance: Disturbance) -> Result<()> {
        self.established().await?;
        let moment = self.rng.duration_below(2 * self.timings.retry_period);
        self.clock.sleep(moment).await;
        let lease = self.lease()?;
        let holder = lease.holder.as_deref().context("there is no leader")?;
        let mut candidates = self.candidates.iter();
        let leader = candidates.position(|one| one.identity == holder);
        let leader = leader.with_context(|| format!("{holder} is none of ours"))?;
        match disturbance {
            Disturbance::Paused => self.stop(leader, &lease).await,
            Disturbance::Killed => self.kill(leader, &lease).await,
            Disturbance::Terminated => self.ask_to_end(leader, &lease).await,
        }
    }

    /// Waits until the leader has written, and has renewed twice since the last candidate was
    /// started, so that a follower has observed it.
    async fn established(&self) -> Result<()> {
        let newest = self.observer.history().leases.len();
        self.until("a leader that writes and renews", move |history| {
            let lease = history.leases.last()?;
            let renewed = history.leases.len() >= newest + 3;
            let writes = history.ledger.last()?.stamp.term == lease.term;
            (renewed && writes && lease.holder.is_some()).then_some(())
        })
        .await
    }

    /// Pauses the leader, in most cases until its successor has written, and resumes it.
    async fn stop(&mut self, leader: usize, lease: &LeaseState) -> Result<()> {
        self.candidates[leader].stop()?;
        self.tally.stops += 1;
        if self.rng.below(5) == 0 {
            // Around the end of its lease.
            let length = self.timings.lease_duration.mul_f64(1.5);
            self.clock.sleep(self.rng.duration_below(length)).await;
        } else {
            let taken = self.taken(lease).await?;
            self.tally.after_stops.push(taken);
            let term = lease.term;
            self.until("a successor that writes", move |history| {
                let entry = history.ledger.last()?;
                (entry.stamp.term > term).then_some(())
            })
            .await?;
            let longer = self.rng.duration_below(self.timings.retry_period);
            self.clock.sleep(longer).await;
        }
        self.candidates[leader].wake()
    }

    async fn kill(&mut self, leader: usize, lease: &LeaseState) -> Result<()> {
        self.candidates[leader].kill()?;
        let taken = self.taken(lease).await?;
        self.tally.after_kills.push(taken);
        self.replace(leader).await
    }

    async fn ask_to_end(&mut self, leader: usize, lease: &LeaseState) -> Result<()> {
        let asked = self.clock.now();
        self.candidates[leader].ask_to_end()?;
        self.successor(lease).await?;
        self.tally.after_ends.push(since(asked, self.clock.now()));
        self.replace(leader).await
    }

    async fn replace(&mut self, gone: usize) -> Result<()> {
        self.candidates.remove(gone).ended().await?;
        self.complete()
    }

    /// The time from the last renewal in the term of `lease` until another leader was observed.
    async fn taken(&self, lease: &LeaseState) -> Result<Duration> {
        self.successor(lease).await?;
        let now = self.clock.now();
        let history = self.observer.history();
        let of_term = |held: &&LeaseState| held.term == lease.term && held.holder.is_some();
        let last = history.leases.iter().rfind(of_term);
        Ok(since(last.context("no renewal")?.renewed, now))
    }

    async fn successor(&self, lease: &LeaseState) -> Result<()> {
        let term = lease.term;
        self.until("a successor", move |history| {
            let lease = history.leases.last()?;
            (lease.term > term && lease.holder.is_some()).then_some(())
        })
        .await
    }

    async fn until<T>(&self, what: &str, find: impl Fn(&History) -> Option<T>) -> Result<T> {
        let limit = self.timings.lease_duration * WAIT_LEASES;
        self.observer.until(what, limit, find).await
    }

    fn lease(&self) -> Result<LeaseState> {
        let last = self.observer.history().leases.pop();
        last.context("there is no lease")
    }

    /// Ends all candidates, waits for the rest of the history, and judges it.
    async fn end(mut self) -> Result<ElectionTally> {
        for candidate in self.candidates.drain(..) {
            candidate.ask_to_end()?;
            candidate.ended().await?;
        }
        for watched in WatchedObject::BOTH {
            let newest = watched.newest(&self.client).await?;
            let whole = |history: &History| (watched.last(history) >= newest).then_some(());
            self.until("the rest of the history", whole).await?;
        }
        let history = self.observer.history();
        let breaches = judge(&history, self.timings.renew_deadline);
        if !breaches.is_empty() {
            let first = breaches
                .iter()
                .take(MAX_SHOWN_BREACHES)
                .map(ToString::to_string);
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
