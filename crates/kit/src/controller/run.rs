//! Runs reconciles in the order of the queue.

use std::{collections::HashMap, fmt, future::Future, hash::Hash, sync::Arc, time::Duration};

use futures::{StreamExt, stream::FuturesUnordered};
use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    task::{Id, JoinError, JoinSet},
};
use tokio_util::sync::CancellationToken;

use super::{
    Backoff, FailureClass, NextKey, Priority, Queue, ReconcileFailure,
    backoff::jitter,
    failure::with_failures,
    finished::{Disposition, FinishedReconcile},
    state::queue_state,
};
use crate::{
    clock::{Clock, Uptime},
    lease::Leadership,
    own_writes::{ObservedWatches, PendingWrites, ReconcileObserver, ReconcileStart},
    planted,
    process::QueueState,
    telemetry::{OwnWritesLate, ReconcileResult, Reconciled, Telemetry},
    watch::Watches,
    why::Code,
};

/// Settings of a controller.
#[derive(Debug, Clone)]
pub struct ControllerOptions {
    /// The name of the controller in logs and metrics.
    pub name: &'static str,
    /// The maximum number of reconciles at a time.
    pub concurrency: usize,
    /// The time after which a reconcile counts as failed.
    pub timeout: Duration,
    /// The time after which every key is reconciled again, about, even if no change was observed.
    pub resync_interval: Duration,
    /// The delay before a failed key is retried.
    pub backoff: Backoff,
    /// How long a key is held back until the watches show what its reconcile wrote. A watch that
    /// failed is reopened within seconds; one that is silent for longer must not block the key.
    pub own_write_timeout: Duration,
}

impl ControllerOptions {
    /// The default settings of the controller `name`.
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            concurrency: if planted!(OneAtATime) { 1 } else { 8 },
            timeout: Duration::from_mins(1),
            resync_interval: Duration::from_mins(30),
            backoff: Backoff::default(),
            own_write_timeout: Duration::from_mins(1),
        }
    }
}

/// The result of a successful reconcile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The object is in its desired state; reconcile it again after the resync interval.
    Done,
    /// Reconcile again after this time at the latest.
    RequeueAfter(Duration),
    /// The object does not exist: no reconcile until the key is enqueued again.
    Gone,
}

/// Puts keys into the queue of a controller. Cheap to clone.
pub struct Enqueuer<K> {
    shared: Arc<SharedQueue<K>>,
}

struct SharedQueue<K> {
    queue: Mutex<Queue<K>>,
    added: Notify,
    clock: Clock,
}

impl<K> Clone for Enqueuer<K> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<K: Clone + Eq + Hash> Enqueuer<K> {
    /// Enqueues `key` because something changed: it is reconciled before resyncs.
    pub fn enqueue(&self, key: K) {
        self.add(key, Priority::Change);
    }

    /// Enqueues `key` though nothing is known to have changed: changes are reconciled first.
    pub fn enqueue_resync(&self, key: K) {
        self.add(key, Priority::Resync);
    }

    fn add(&self, key: K, priority: Priority) {
        let now = self.shared.clock.uptime();
        self.shared.queue.lock().add(key, priority, now, now);
        self.shared.added.notify_one();
    }
}

/// A queue, and the loop that reconciles its keys.
pub struct Controller<K> {
    options: ControllerOptions,
    shared: Arc<SharedQueue<K>>,
    /// None if no other process runs the same controller.
    leadership: Option<Leadership>,
    telemetry: Telemetry,
    /// The watches that show what reconciles wrote.
    watches: Option<Arc<dyn ObservedWatches>>,
    observer: Option<Arc<dyn ReconcileObserver>>,
}

/// How the task of a reconcile ended, unless it panicked.
enum ReconcileEnd {
    Succeeded(Outcome),
    Failed(ReconcileFailure),
    TimedOut,
}

impl<K> Controller<K>
where
    K: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static,
{
    /// A controller with an empty queue.
    pub fn new(options: ControllerOptions, clock: Clock) -> Self {
        let shared = SharedQueue {
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

    /// The same controller, which reports its reconciles to `telemetry`.
    pub fn with_telemetry(mut self, telemetry: Telemetry) -> Self {
        self.telemetry = telemetry;
        self
    }

    /// The same controller, which starts no reconcile while another process leads. Keys that are
    /// enqueued meanwhile stay in the queue.
    pub fn with_leadership(mut self, leadership: Leadership) -> Self {
        self.leadership = Some(leadership);
        self
    }

    /// The same controller, which does not reconcile a key again before `watches` show what its last
    /// reconcile wrote.
    pub fn with_watches(mut self, watches: Watches) -> Self {
        self.observer = watches.process().reconcile_observer().cloned();
        self.watches = Some(Arc::new(watches));
        self
    }

    /// A function that returns a snapshot of the queue.
    pub fn view(&self) -> impl Fn() -> QueueState + Send + Sync + use<K> {
        let (name, shared) = (self.options.name, self.shared.clone());
        let leadership = self.leadership.clone();
        move || {
            let paused = !may_reconcile(leadership.as_ref());
            queue_state(name, paused, &shared.queue.lock())
        }
    }

    /// The handle that enqueues keys.
    pub fn enqueuer(&self) -> Enqueuer<K> {
        Enqueuer {
            shared: self.shared.clone(),
        }
    }

    /// Waits for `synced`, the first listing of the caches that reconciles read, then does as
    /// [`Self::run`].
    pub async fn run_when<F, Fut, E>(
        self,
        synced: impl Future<Output = ()>,
        reconcile: F,
        stop: CancellationToken,
    ) where
        F: Fn(K) -> Fut,
        Fut: Future<Output = Result<Outcome, E>> + Send + 'static,
        E: fmt::Display + Send + 'static,
    {
        tokio::select! {
            () = stop.cancelled() => return,
            () = synced => {}
        }
        self.run(reconcile, stop).await;
    }

    /// Reconciles keys until `stop`, then waits for the reconciles that are running. Every error is
    /// retried; [`Self::run_failing`] is for errors that say more.
    pub async fn run<F, Fut, E>(self, reconcile: F, stop: CancellationToken)
    where
        F: Fn(K) -> Fut,
        Fut: Future<Output = Result<Outcome, E>> + Send + 'static,
        E: fmt::Display + Send + 'static,
    {
        let reconcile = move |key| {
            let reconciling = reconcile(key);
            async move {
                let result = reconciling.await;
                result.map_err(|error| ReconcileFailure::retryable(&error))
            }
        };
        self.run_failing(reconcile, stop).await;
    }

    /// The same for reconciles whose failures have a class.
    pub async fn run_failing<F, Fut>(self, reconcile: F, stop: CancellationToken)
    where
        F: Fn(K) -> Fut,
        Fut: Future<Output = Result<Outcome, ReconcileFailure>> + Send + 'static,
    {
        let mut tasks = JoinSet::new();
        let mut running = HashMap::new();
        let mut held_back = FuturesUnordered::new();
        loop {
            let may_reconcile = may_reconcile(self.leadership.as_ref());
            let wait_until = if may_reconcile {
                self.start(&reconcile, &mut tasks, &mut running)
            } else {
                Duration::MAX
            };
            let clock = self.shared.clock;
            tokio::select! {
                () = stop.cancelled() => break,
                () = self.shared.added.notified() => {}
                () = clock.sleep_until(wait_until) => {}
                () = gained(self.leadership.clone()), if !may_reconcile => {}
                Some(joined) = tasks.join_next_with_id() => {
                    let Some(finished) = self.record_end(joined, &mut running) else { continue };
                    if finished.pending.is_observed() || planted!(EchoUnawaited) {
                        self.requeue(&finished);
                    } else {
                        let limit = self.options.own_write_timeout;
                        held_back.push(finished.wait_observed(clock, limit));
                    }
                }
                Some((finished, observed)) = held_back.next() => {
                    if !observed {
                        let (controller, key) = (self.options.name, &finished.key);
                        self.telemetry.emit(&OwnWritesLate { controller, key });
                    }
                    self.requeue(&finished);
                }
            }
        }
        while let Some(joined) = tasks.join_next_with_id().await {
            let _ = self.record_end(joined, &mut running);
        }
    }

    /// Starts reconciles up to the limit. Returns when the next key is due.
    fn start<F, Fut>(
        &self,
        reconcile: &F,
        tasks: &mut JoinSet<ReconcileEnd>,
        running: &mut RunningKeys<K>,
    ) -> Duration
    where
        F: Fn(K) -> Fut,
        Fut: Future<Output = Result<Outcome, ReconcileFailure>> + Send + 'static,
    {
        let (clock, limit) = (self.shared.clock, self.options.timeout);
        while tasks.len() < self.options.concurrency {
            let (next, failures) = {
                let mut queue = self.shared.queue.lock();
                let next = queue.next(clock.uptime());
                let failures = match &next {
                    NextKey::Run(key) => queue.failures(key),
                    NextKey::Wait(_) | NextKey::Idle => 0,
                };
                (next, failures)
            };
            let key = match next {
                NextKey::Run(key) => key,
                NextKey::Wait(until) => return until,
                NextKey::Idle => return Duration::MAX,
            };
            let pending = PendingWrites::new(self.watches.clone(), self.notify_start(&key));
            let reconciling = with_failures(failures, reconcile(key.clone()));
            let reconciling = pending.clone().scope(reconciling);
            let task = tasks.spawn(async move {
                match clock.within(limit, reconciling).await {
                    Some(Ok(outcome)) => ReconcileEnd::Succeeded(outcome),
                    Some(Err(failure)) => ReconcileEnd::Failed(failure),
                    None => ReconcileEnd::TimedOut,
                }
            });
            running.insert(task.id(), (key, clock.uptime(), pending));
        }
        Duration::MAX
    }

    /// Reports the start of a reconcile to the observer, if any, and returns its number.
    fn notify_start(&self, key: &K) -> Option<u64> {
        let (observer, watches) = (self.observer.as_ref()?, self.watches.as_ref()?);
        let controller = self.options.name;
        Some(observer.on_start(&ReconcileStart {
            controller,
            key,
            watches: &**watches,
        }))
    }

    /// Reports the end of a reconcile, and returns what the queue does with its key.
    fn record_end(
        &self,
        joined: JoinedReconcile,
        running: &mut RunningKeys<K>,
    ) -> Option<FinishedReconcile<K>> {
        let (id, end) = match joined {
            Ok((id, end)) => (id, Ok(end)),
            Err(error) => (error.id(), Err(error)),
        };
        let (key, begun, pending) = running.remove(&id)?;
        let now = self.shared.clock.uptime();
        let (result, error, code) = self.classify(&end);
        self.telemetry.emit(&Reconciled {
            controller: self.options.name,
            key: &key,
            result,
            error,
            code,
            took: now.saturating_sub(begun),
        });
        let disposition = match end {
            Ok(ReconcileEnd::Succeeded(outcome)) => Disposition::Succeeded(outcome),
            _ if result == ReconcileResult::LostLeadership => Disposition::LostLeadership,
            Ok(ReconcileEnd::Failed(failure)) => Disposition::Failed(failure.class),
            Ok(ReconcileEnd::TimedOut) | Err(_) => Disposition::Failed(FailureClass::Retryable),
        };
        Some(FinishedReconcile {
            key,
            disposition,
            pending,
        })
    }

    /// Releases the key: it may be reconciled again.
    fn requeue(&self, finished: &FinishedReconcile<K>) {
        let now = self.shared.clock.uptime();
        let key = &finished.key;
        match finished.disposition {
            Disposition::Succeeded(outcome) => self.requeue_succeeded(key, outcome),
            // It is due at once, so it is the first to run under the next leader.
            Disposition::LostLeadership => self.requeue_now(key),
            Disposition::Failed(_) if planted!(FailureForgotten) => {
                self.requeue_succeeded(key, Outcome::Done);
            }
            Disposition::Failed(class) => {
                let retry_at =
                    |failures| now.saturating_add(self.retry_after(key, class, failures));
                self.shared.queue.lock().failed(key, retry_at, now);
            }
        }
    }

    /// The delay before a key is retried that has failed this often.
    fn retry_after(&self, key: &K, class: FailureClass, failures: u32) -> Duration {
        let backoff = self.options.backoff.wait(key, failures);
        match class {
            FailureClass::Conflict | FailureClass::Retryable => backoff,
            // Never earlier than the other side allows, and not all keys at the same moment.
            FailureClass::RetryAfter(least) => least.saturating_add(backoff / 4).max(backoff),
            FailureClass::Permanent => jitter(self.options.resync_interval, key),
        }
    }

    /// The result of a reconcile for telemetry, its error and the error's code.
    fn classify(
        &self,
        end: &Result<ReconcileEnd, JoinError>,
    ) -> (ReconcileResult, Option<String>, Option<Code>) {
        use ReconcileResult::{Failed, LostLeadership, Panicked, Succeeded, TimedOut};
        match end {
            Ok(ReconcileEnd::Succeeded(_)) => (Succeeded, None, None),
            Err(error) => (Panicked, Some(error.to_string()), None),
            // A reconcile that loses leadership cannot but fail: its writes are refused.
            Ok(_) if !may_reconcile(self.leadership.as_ref()) => (LostLeadership, None, None),
            Ok(ReconcileEnd::Failed(failure)) => {
                (Failed, Some(failure.message.clone()), failure.code)
            }
            Ok(ReconcileEnd::TimedOut) => (TimedOut, None, None),
        }
    }

    fn requeue_now(&self, key: &K) {
        let now = self.shared.clock.uptime();
        self.shared.queue.lock().done(key, Some(now), now);
    }

    fn requeue_succeeded(&self, key: &K, outcome: Outcome) {
        let now = self.shared.clock.uptime();
        let resync = || jitter(self.options.resync_interval, key);
        let requeue_after = match outcome {
            Outcome::Done => Some(resync()),
            Outcome::RequeueAfter(_) if planted!(AgainForgotten) => Some(resync()),
            Outcome::RequeueAfter(after) => Some(after.min(resync())),
            Outcome::Gone => None,
        };
        let requeue_at = requeue_after.map(|after| now.saturating_add(after));
        self.shared.queue.lock().done(key, requeue_at, now);
    }
}

fn may_reconcile(leadership: Option<&Leadership>) -> bool {
    leadership.is_none_or(|leadership| leadership.check().is_ok())
}

async fn gained(leadership: Option<Leadership>) {
    if let Some(mut leadership) = leadership {
        leadership.gained().await;
    }
}

/// The running reconciles by task: the key, when it began, and its writes.
type RunningKeys<K> = HashMap<Id, (K, Uptime, Arc<PendingWrites>)>;
type JoinedReconcile = Result<(Id, ReconcileEnd), JoinError>;

impl<K> fmt::Debug for Controller<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl<K> fmt::Debug for Enqueuer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Enqueuer").finish_non_exhaustive()
    }
}
