//! Evaluations of users' configurations, outside of reconciles.
//!
//! An evaluation takes seconds, and a reconcile that waited for it would keep one of the few slots in which the
//! farms of others are reconciled. So a reconcile asks and reports what it knows, and its farm is reconciled
//! again when the result is there.
//!
//! Invariants:
//! - namespaces take turns, and each has one evaluation at a time: configurations that never end delay only
//!   those of their own namespace;
//! - only a result that follows from the configuration is kept; what the machine failed to evaluate is
//!   evaluated again, after a growing delay; what took too long each time counts as a result;
//! - memory is bounded: a component waits once, for its newest configuration, and the oldest results go first.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
    sync::Arc,
    time::Duration,
};

use futures::{StreamExt, stream::FuturesUnordered};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use neap_kit::{
    clock::{Clock, Uptime},
    controller::Enqueuer,
    key::Key,
};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::user_config::{self, UserConfig};
use crate::{
    farm::{Component, objects::hash_of},
    jsonnet::{Evaluate, EvaluationError},
    platform::QueueName,
};

/// The evaluations at a time. A second one keeps the first namespace from delaying the others, and more would
/// need more memory than the operator's pod has.
const AT_ONCE: usize = 2;
/// The configurations of a namespace that wait; those beyond ask again.
const MAX_WAITING: usize = 64;
/// The delay after which those ask again.
const WAITING_POLL: Duration = Duration::from_secs(30);
/// The number of results that are kept.
const MAX_RESULTS: usize = 2048;
/// The delay after the first evaluation that failed for a reason outside of the configuration.
const INITIAL_RETRY: Duration = Duration::from_secs(5);
/// The longest such delay.
const MAX_RETRY: Duration = Duration::from_mins(10);

/// The evaluations of all farms.
pub(crate) struct Evaluations {
    evaluator: Arc<dyn Evaluate>,
    clock: Clock,
    queue: Mutex<Queue>,
    added: Notify,
}

/// What is known about a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// It is evaluated.
    Known(UserConfig),
    /// Its farm is reconciled again when it is.
    Pending {
        /// Why it could not be evaluated the last time.
        failure: Option<String>,
        /// The delay after which to ask again; none if nothing but the result is waited for.
        ask_again: Option<Duration>,
    },
}

impl Evaluations {
    pub(super) fn new(evaluator: Arc<dyn Evaluate>, clock: Clock) -> Self {
        Self {
            evaluator,
            clock,
            queue: Mutex::default(),
            added: Notify::new(),
        }
    }

    /// What is known about the configuration of a component; if nothing is, it is evaluated.
    pub(super) fn ask(&self, component: &Component, config_map: Arc<ConfigMap>) -> Answer {
        let job = Job::new(component, config_map);
        let answer = self.queue.lock().ask(job, self.clock.uptime());
        self.added.notify_one();
        answer
    }

    /// Evaluates what is asked for until `stop`.
    pub(crate) async fn run(&self, enqueuer: Enqueuer<Key>, stop: CancellationToken) {
        let mut running = FuturesUnordered::new();
        loop {
            while running.len() < AT_ONCE
                && let Some(job) = self.take()
            {
                running.push(self.evaluate(job));
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.added.notified() => {}
                Some(farms) = running.next() => {
                    for farm in farms {
                        enqueuer.enqueue(farm);
                    }
                }
            }
        }
    }

    /// Evaluates what waits, for callers that do not run the controller.
    pub(crate) async fn evaluate_waiting(&self) {
        while let Some(job) = self.take() {
            self.evaluate(job).await;
        }
    }

    fn take(&self) -> Option<Job> {
        self.queue.lock().take()
    }

    /// Evaluates a configuration, and returns the farms that wait for it.
    async fn evaluate(&self, job: Job) -> BTreeSet<Key> {
        let timeouts = self.queue.lock().timeouts(&job.id);
        let Job {
            component,
            config_map,
            ..
        } = &job;
        let checked = user_config::check(component, config_map, &*self.evaluator, timeouts).await;
        let now = self.clock.uptime();
        self.queue.lock().finish(&job, checked, now)
    }
}

impl fmt::Debug for Evaluations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Evaluations").finish_non_exhaustive()
    }
}

/// A configuration to evaluate.
#[derive(Debug, Clone)]
struct Job {
    /// Of the component and of everything that the result depends on.
    id: String,
    component: Component,
    config_map: Arc<ConfigMap>,
}

impl Job {
    fn new(component: &Component, config_map: Arc<ConfigMap>) -> Self {
        let pod = component.pod().map(|pod| &pod.env);
        let worker = component.worker();
        let instance = worker.map(|it| (it.instance_name().to_owned(), QueueName::of(it)));
        let hash = hash_of(format!(
            "{:?} {} {} {pod:?} {instance:?}",
            config_map.data,
            config_map.name_any(),
            component.image(),
        ));
        Self {
            id: format!("{}/{}/{hash}", component.namespace(), component.uid()),
            component: component.clone(),
            config_map,
        }
    }

    fn farm(&self) -> Key {
        Key::new(self.component.namespace(), self.component.farm())
    }
}

/// What waits, what runs, and what is known.
#[derive(Debug, Default)]
struct Queue {
    waiting: BTreeMap<String, VecDeque<Job>>,
    /// The namespaces in which a configuration waits, in the order of their turns.
    turns: VecDeque<String>,
    /// The configuration that is evaluated, by namespace.
    running: BTreeMap<String, String>,
    /// The farms that wait, by the id of the configuration.
    waiters: BTreeMap<String, BTreeSet<Key>>,
    results: BTreeMap<String, Evaluated>,
    /// The ids of the results, the oldest first.
    order: VecDeque<String>,
}

#[derive(Debug)]
enum Evaluated {
    Done(UserConfig),
    Failed {
        failures: u32,
        /// How many of them took too long.
        timeouts: u32,
        cause: String,
        retry_at: Uptime,
    },
}

impl Queue {
    fn ask(&mut self, job: Job, now: Uptime) -> Answer {
        let mut failure = None;
        match self.results.get(&job.id) {
            Some(Evaluated::Done(config)) => return Answer::Known(config.clone()),
            Some(Evaluated::Failed {
                cause, retry_at, ..
            }) => {
                let left = retry_at.saturating_sub(now);
                failure = Some(cause.clone());
                if !left.is_zero() {
                    return Answer::Pending {
                        failure,
                        ask_again: Some(left),
                    };
                }
            }
            None => {}
        }
        let ask_again = (!self.add(job)).then_some(WAITING_POLL);
        Answer::Pending { failure, ask_again }
    }

    /// Adds a configuration unless it is there. False if too many of its namespace wait.
    fn add(&mut self, job: Job) -> bool {
        let namespace = job.component.namespace().to_owned();
        let (id, farm) = (job.id.clone(), job.farm());
        if self.running.get(&namespace) != Some(&id) && !self.wait(namespace, job) {
            return false;
        }
        self.waiters.entry(id).or_default().insert(farm);
        true
    }

    /// Puts a configuration into the queue of its namespace, in the place of an earlier one of its component.
    fn wait(&mut self, namespace: String, job: Job) -> bool {
        let waiting = self.waiting.entry(namespace.clone()).or_default();
        let uid = job.component.uid();
        if let Some(known) = waiting.iter_mut().find(|it| it.component.uid() == uid) {
            if known.id != job.id {
                self.waiters.remove(&known.id);
                *known = job;
            }
            return true;
        }
        if waiting.len() >= MAX_WAITING {
            return false;
        }
        if waiting.is_empty() {
            self.turns.push_back(namespace);
        }
        waiting.push_back(job);
        true
    }

    /// The next configuration to evaluate: of the first namespace in which none is.
    fn take(&mut self) -> Option<Job> {
        let mut turns = self.turns.iter();
        let next = turns.position(|namespace| !self.running.contains_key(namespace))?;
        let namespace = self.turns.remove(next)?;
        let waiting = self.waiting.get_mut(&namespace)?;
        let job = waiting.pop_front()?;
        if waiting.is_empty() {
            self.waiting.remove(&namespace);
        } else {
            self.turns.push_back(namespace.clone());
        }
        self.running.insert(namespace, job.id.clone());
        Some(job)
    }

    /// How many evaluations of a configuration took too long.
    fn timeouts(&self, id: &str) -> u32 {
        match self.results.get(id) {
            Some(Evaluated::Failed { timeouts, .. }) => *timeouts,
            _ => 0,
        }
    }

    /// Keeps what an evaluation has found, and returns the farms that wait for it.
    fn finish(
        &mut self,
        job: &Job,
        checked: Result<UserConfig, EvaluationError>,
        now: Uptime,
    ) -> BTreeSet<Key> {
        self.running.remove(job.component.namespace());
        let result = match checked {
            Ok(config) => Evaluated::Done(config),
            Err(error) => {
                let timed_out = matches!(error, EvaluationError::TimedOut(_));
                let timeouts = self.timeouts(&job.id) + u32::from(timed_out);
                let failures = match self.results.get(&job.id) {
                    Some(Evaluated::Failed { failures, .. }) => failures.saturating_add(1),
                    _ => 1,
                };
                let factor = 1u32 << (failures - 1).min(16);
                let delay = INITIAL_RETRY.saturating_mul(factor).min(MAX_RETRY);
                Evaluated::Failed {
                    failures,
                    timeouts,
                    cause: error.to_string(),
                    retry_at: now.saturating_add(delay),
                }
            }
        };
        if self.results.insert(job.id.clone(), result).is_none() {
            self.order.push_back(job.id.clone());
        }
        while self.order.len() > MAX_RESULTS {
            if let Some(oldest) = self.order.pop_front() {
                self.results.remove(&oldest);
            }
        }
        self.waiters.remove(&job.id).unwrap_or_default()
    }
}
