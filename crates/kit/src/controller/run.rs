//! Runs reconciles as the queue says.

use std::{collections::HashMap, fmt, future::Future, hash::Hash, sync::Arc, time::Duration};

use futures::{StreamExt, stream::FuturesUnordered};
use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    task::{Id, JoinError, JoinSet},
};
use tokio_util::sync::CancellationToken;

use super::{
    Backoff, Next, Priority, Queue,
    backoff::spread,
    ended::{Ended, Later},
    state::state,
};
use crate::{
    clock::{Clock, Uptime},
    echo::{Beginning, Echoes, Observer, Own},
    lease::Leadership,
    planted,
    process::QueueState,
    telemetry::{self, EchoLate, Reconciled, Telemetry},
    watch::Watches,
};

/// How a controller works.
#[derive(Debug, Clone)]
pub struct Options {
    /// Its name in logs and metrics.
    pub name: &'static str,
    /// At most so many keys are worked on at once.
    pub concurrency: usize,
    /// A reconcile that takes longer has failed.
    pub timeout: Duration,
    /// Every key is looked at again after about this time, whatever was or was not said.
    pub look_again: Duration,
    /// How long keys that fail wait.
    pub backoff: Backoff,
    /// So long a key waits for the watches to show what was written for it. A watch that broke off
    /// is soon opened again; one that says nothing for longer keeps nobody from working.
    pub echo: Duration,
}

impl Options {
    /// The usual settings for the controller `name`.
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            concurrency: if planted!(OneAtATime) { 1 } else { 8 },
            timeout: Duration::from_mins(1),
            look_again: Duration::from_mins(30),
            backoff: Backoff::default(),
            echo: Duration::from_mins(1),
        }
    }
}

/// What a reconcile that did not fail came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// As it should be; look again some day.
    Settled,
    /// Look again after this time at the latest.
    Again(Duration),
    /// There is no such object: nothing to look at until it is added.
    Gone,
}

/// Asks a controller to look at a key. Cheap to copy.
pub struct Trigger<K> {
    shared: Arc<Shared<K>>,
}

struct Shared<K> {
    queue: Mutex<Queue<K>>,
    added: Notify,
    clock: Clock,
}

impl<K> Clone for Trigger<K> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<K: Clone + Eq + Hash> Trigger<K> {
    /// Somebody changed something: look at `key` as soon as there is room.
    pub fn changed(&self, key: K) {
        self.add(key, Priority::Change);
    }

    /// Look at `key` when nothing is in a hurry.
    pub fn resync(&self, key: K) {
        self.add(key, Priority::Resync);
    }

    fn add(&self, key: K, priority: Priority) {
        let now = self.shared.clock.uptime();
        self.shared.queue.lock().add(key, priority, now, now);
        self.shared.added.notify_one();
    }
}

/// A queue and what is done with its keys.
pub struct Controller<K> {
    options: Options,
    shared: Arc<Shared<K>>,
    /// Whoever works without asking has nobody beside it.
    leadership: Option<Leadership>,
    telemetry: Telemetry,
    /// What reconciles read, and what shows what they wrote.
    watches: Option<Arc<dyn Echoes>>,
    observer: Option<Arc<dyn Observer>>,
}

/// How the work on a key ended.
enum End<E> {
    Well(Outcome),
    Failed(E),
    TimedOut,
}

impl<K> Controller<K>
where
    K: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static,
{
    /// A controller with nothing to do yet.
    pub fn new(options: Options, clock: Clock) -> Self {
        let shared = Shared {
            queue: Mutex::default(),
            added: Notify::new(),
            clock,
        };
        Self {
            options,
            shared: Arc::new(shared),
            leadership: None,
            telemetry: Telemetry::default(),
            watches: None,
            observer: None,
        }
    }

    /// The same controller, counted by `telemetry`.
    pub fn counted_by(mut self, telemetry: Telemetry) -> Self {
        self.telemetry = telemetry;
        self
    }

    /// The same controller, which begins nothing while another process leads. What is asked for
    /// meanwhile waits.
    pub fn led_by(mut self, leadership: Leadership) -> Self {
        self.leadership = Some(leadership);
        self
    }

    /// The same controller, which does not look at a key again before `watches` show what it wrote
    /// for it.
    pub fn reading(mut self, watches: Watches) -> Self {
        self.observer = watches.process().observer().cloned();
        self.watches = Some(Arc::new(watches));
        self
    }

    /// Looks at the queue, whenever it is called.
    pub fn view(&self) -> impl Fn() -> QueueState + Send + Sync + use<K> {
        let (name, shared) = (self.options.name, self.shared.clone());
        let leadership = self.leadership.clone();
        move || state(name, !may_work(leadership.as_ref()), &shared.queue.lock())
    }

    /// What asks it to look at a key.
    pub fn trigger(&self) -> Trigger<K> {
        Trigger {
            shared: self.shared.clone(),
        }
    }

    /// As [`Self::run`], once what it reads from is `known`.
    pub async fn run_once_known<F, Fut, E>(
        self,
        known: impl Future<Output = ()>,
        reconcile: F,
        stop: CancellationToken,
    ) where
        F: Fn(K) -> Fut,
        Fut: Future<Output = Result<Outcome, E>> + Send + 'static,
        E: fmt::Display + Send + 'static,
    {
        tokio::select! {
            () = stop.cancelled() => return,
            () = known => {}
        }
        self.run(reconcile, stop).await;
    }

    /// Works until `stop`, then waits for what is under way.
    pub async fn run<F, Fut, E>(self, reconcile: F, stop: CancellationToken)
    where
        F: Fn(K) -> Fut,
        Fut: Future<Output = Result<Outcome, E>> + Send + 'static,
        E: fmt::Display + Send + 'static,
    {
        let mut work = JoinSet::new();
        let mut keys = HashMap::new();
        let mut echoes = FuturesUnordered::new();
        loop {
            let may_work = may_work(self.leadership.as_ref());
            let wait_until = if may_work {
                self.start(&reconcile, &mut work, &mut keys)
            } else {
                Duration::MAX
            };
            let clock = self.shared.clock;
            tokio::select! {
                () = stop.cancelled() => break,
                () = self.shared.added.notified() => {}
                () = clock.sleep_until(wait_until) => {}
                () = gained(self.leadership.clone()), if !may_work => {}
                Some(ended) = work.join_next_with_id() => {
                    let Some(ended) = self.note(ended, &mut keys) else { continue };
                    if ended.own.is_shown() || planted!(EchoUnawaited) {
                        self.finish(&ended);
                    } else {
                        echoes.push(ended.shown(clock, self.options.echo));
                    }
                }
                Some((ended, shown)) = echoes.next() => {
                    if !shown {
                        let (controller, key) = (self.options.name, &ended.key);
                        self.telemetry.emit(&EchoLate { controller, key });
                    }
                    self.finish(&ended);
                }
            }
        }
        while let Some(ended) = work.join_next_with_id().await {
            let _ = self.note(ended, &mut keys);
        }
    }

    /// Starts what may start; when more may.
    fn start<F, Fut, E>(
        &self,
        reconcile: &F,
        work: &mut JoinSet<End<E>>,
        keys: &mut Keys<K>,
    ) -> Duration
    where
        F: Fn(K) -> Fut,
        Fut: Future<Output = Result<Outcome, E>> + Send + 'static,
        E: Send + 'static,
    {
        let (clock, limit) = (self.shared.clock, self.options.timeout);
        while work.len() < self.options.concurrency {
            let next = self.shared.queue.lock().next(clock.uptime());
            let key = match next {
                Next::Run(key) => key,
                Next::Wait(until) => return until,
                Next::Idle => return Duration::MAX,
            };
            let own = Own::new(self.watches.clone(), self.observed(&key));
            let reconciling = own.clone().of(reconcile(key.clone()));
            let task = work.spawn(async move {
                match clock.within(limit, reconciling).await {
                    Some(Ok(outcome)) => End::Well(outcome),
                    Some(Err(error)) => End::Failed(error),
                    None => End::TimedOut,
                }
            });
            keys.insert(task.id(), (key, clock.uptime(), own));
        }
        Duration::MAX
    }

    /// The number that whoever looks on gives to a reconcile that begins.
    fn observed(&self, key: &K) -> Option<u64> {
        let (observer, watches) = (self.observer.as_ref()?, self.watches.as_ref()?);
        let controller = self.options.name;
        Some(observer.begins(&Beginning {
            controller,
            key,
            watches: &**watches,
        }))
    }

    /// Tells what came of a reconcile.
    fn note<E: fmt::Display>(&self, ended: Joined<E>, keys: &mut Keys<K>) -> Option<Ended<K>> {
        let (id, end) = match ended {
            Ok((id, end)) => (id, Ok(end)),
            Err(error) => (error.id(), Err(error)),
        };
        let (key, begun, own) = keys.remove(&id)?;
        let now = self.shared.clock.uptime();
        let (result, error) = self.judge(&end);
        self.telemetry.emit(&Reconciled {
            controller: self.options.name,
            key: &key,
            result,
            error,
            took: now.saturating_sub(begun),
        });
        let next = match end {
            Ok(End::Well(outcome)) => Later::Well(outcome),
            _ if result == telemetry::Result::LostLead => Later::PutBack,
            _ => Later::Failed,
        };
        Some(Ended { key, next, own })
    }

    /// The key may be looked at again.
    fn finish(&self, ended: &Ended<K>) {
        let now = self.shared.clock.uptime();
        let key = &ended.key;
        match ended.next {
            Later::Well(outcome) => self.well(key, outcome),
            // It is the first to go on.
            Later::PutBack => self.put_back(key),
            Later::Failed if planted!(FailureForgotten) => self.well(key, Outcome::Settled),
            Later::Failed => {
                let wait = |failures| now + self.options.backoff.wait(key, failures);
                self.shared.queue.lock().failed(key, wait, now);
            }
        }
    }

    /// What the end of a reconcile means, and why.
    fn judge<E: fmt::Display>(
        &self,
        end: &Result<End<E>, JoinError>,
    ) -> (telemetry::Result, Option<String>) {
        use telemetry::Result::{Failed, LostLead, Panicked, TimedOut, Well};
        match end {
            Ok(End::Well(_)) => (Well, None),
            Err(error) => (Panicked, Some(error.to_string())),
            // Whoever lost the lead on the way could not but fail.
            Ok(_) if !may_work(self.leadership.as_ref()) => (LostLead, None),
            Ok(End::Failed(error)) => (Failed, Some(error.to_string())),
            Ok(End::TimedOut) => (TimedOut, None),
        }
    }

    fn put_back(&self, key: &K) {
        let now = self.shared.clock.uptime();
        self.shared.queue.lock().done(key, Some(now), now);
    }

    fn well(&self, key: &K, outcome: Outcome) {
        let now = self.shared.clock.uptime();
        let some_day = || spread(self.options.look_again, key);
        let again = match outcome {
            Outcome::Settled => Some(some_day()),
            Outcome::Again(_) if planted!(AgainForgotten) => Some(some_day()),
            Outcome::Again(after) => Some(after.min(some_day())),
            Outcome::Gone => None,
        };
        let again = again.map(|after| now.saturating_add(after));
        self.shared.queue.lock().done(key, again, now);
    }
}

fn may_work(leadership: Option<&Leadership>) -> bool {
    leadership.is_none_or(|leadership| leadership.check().is_ok())
}

async fn gained(leadership: Option<Leadership>) {
    if let Some(mut leadership) = leadership {
        leadership.gained().await;
    }
}

type Keys<K> = HashMap<Id, (K, Uptime, Arc<Own>)>;
type Joined<E> = Result<(Id, End<E>), JoinError>;

impl<K> fmt::Debug for Controller<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl<K> fmt::Debug for Trigger<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trigger").finish_non_exhaustive()
    }
}
