//! Polls the triggers of many services at once, and shares the capacity fairly between servers.
//!
//! A server that hangs delays only the services that need its response: only a few of all query slots may
//! wait for the same server, and each service gets its verdict as soon as its own queries are answered.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use futures::{StreamExt, stream::FuturesUnordered};
use neap_kit::{clock::Clock, key::Key};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::{
    Measurement, Problem, PrometheusApi, PrometheusDefaults, Query, RecentRequests, Verdict,
    evaluate, jitter::Jitter, query::TriggerQueries,
};
use crate::api::{Trigger, TriggerKind};

/// A service whose triggers are polled.
#[derive(Debug, Clone, PartialEq)]
pub struct PolledService {
    /// The ElastiService.
    pub key: Key,
    /// The time without a request after which it is idle.
    pub cooldown: Duration,
    /// The triggers.
    pub triggers: Vec<Trigger>,
    /// The requests that resolvers received for it.
    pub requests: Result<RecentRequests, Problem>,
}

/// The largest number of concurrent queries: enough that many servers may hang beside those that respond.
const MAX_QUERIES: usize = 512;
/// The largest number of concurrent queries to the same server.
const MAX_QUERIES_PER_SERVER: usize = 8;
/// The time over which the queries of a round are spread.
const SPREAD: Duration = Duration::from_secs(2);

/// Polls triggers.
#[derive(Debug, Clone)]
pub struct Poller {
    prometheus: Arc<dyn PrometheusApi>,
    defaults: PrometheusDefaults,
    clock: Clock,
    spread: Duration,
    /// Shared by all rounds: one that takes long leaves others the same capacity.
    slots: Arc<QuerySlots>,
}

/// The capacity for concurrent queries.
#[derive(Debug)]
struct QuerySlots {
    all: Semaphore,
    servers: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl Default for QuerySlots {
    fn default() -> Self {
        Self {
            all: Semaphore::new(MAX_QUERIES),
            servers: Mutex::default(),
        }
    }
}

impl QuerySlots {
    fn of_server(&self, server: String) -> Arc<Semaphore> {
        let mut servers = self.servers.lock();
        let slots = || Arc::new(Semaphore::new(MAX_QUERIES_PER_SERVER));
        servers.entry(server).or_insert_with(slots).clone()
    }

    /// Removes servers without a query in progress.
    fn remove_unused(&self) {
        let mut servers = self.servers.lock();
        servers.retain(|_, slots| Arc::strong_count(slots) > 1);
    }
}

/// A trigger whose measurement is known, or waits for queries.
enum PendingTrigger {
    Prometheus(TriggerQueries),
    Known(Measurement),
}

type QueryResults = HashMap<Query, Result<f64, Problem>>;

impl Poller {
    /// Sends queries to `prometheus`, with the operator's defaults.
    pub fn new(
        prometheus: Arc<dyn PrometheusApi>,
        defaults: PrometheusDefaults,
        clock: Clock,
    ) -> Self {
        Self {
            prometheus,
            defaults,
            clock,
            spread: SPREAD,
            slots: Arc::default(),
        }
    }

    /// The same poller, whose queries are neither spread over time nor wait for slots of others.
    pub fn immediate(mut self) -> Self {
        self.spread = Duration::ZERO;
        self.slots = Arc::default();
        self
    }

    /// The verdicts of these services.
    pub async fn poll_all(
        &self,
        services: &[PolledService],
        jitter: &mut Jitter,
    ) -> BTreeMap<Key, Verdict> {
        let mut verdicts = BTreeMap::new();
        let on_verdict = |index: usize, verdict| {
            verdicts.insert(services[index].key.clone(), verdict);
        };
        self.poll(services, jitter, on_verdict).await;
        verdicts
    }

    /// Calls `on_verdict` for each service, by its index in the list, as soon as its own triggers are
    /// answered. A query that several services need is sent once.
    pub async fn poll(
        &self,
        services: &[PolledService],
        jitter: &mut Jitter,
        mut on_verdict: impl FnMut(usize, Verdict),
    ) {
        let pending: Vec<Vec<PendingTrigger>> =
            services.iter().map(|one| self.pending(one)).collect();
        let mut unanswered = vec![0; services.len()];
        let mut needed_by: HashMap<&Query, Vec<usize>> = HashMap::new();
        let mut in_progress = FuturesUnordered::new();
        // In the order of the services, so that a seed gives each query the same delay again.
        for (index, triggers) in pending.iter().enumerate() {
            for query in triggers.iter().flat_map(PendingTrigger::queries) {
                let by = needed_by.entry(query).or_insert_with(|| {
                    in_progress.push(self.send(query, jitter.below(self.spread)));
                    Vec::new()
                });
                by.push(index);
                unanswered[index] += 1;
            }
        }
        tracing::debug!(queries = in_progress.len(), "triggers are polled");
        let mut results = QueryResults::new();
        let mut finish = |index: usize, results: &QueryResults| {
            let measurements = pending[index].iter().map(|one| one.measurement(results));
            let measurements: Vec<_> = measurements.collect();
            let cooldown = services[index].cooldown;
            on_verdict(index, evaluate(&measurements, self.clock.now(), cooldown));
        };
        for (index, _) in unanswered
            .iter()
            .enumerate()
            .filter(|(_, left)| **left == 0)
        {
            finish(index, &results);
        }
        while let Some((query, result)) = in_progress.next().await {
            results.insert(query.clone(), result);
            for index in needed_by.remove(query).into_iter().flatten() {
                unanswered[index] -= 1;
                if unanswered[index] == 0 {
                    finish(index, &results);
                }
            }
        }
        drop(in_progress);
        self.slots.remove_unused();
    }

    fn pending(&self, service: &PolledService) -> Vec<PendingTrigger> {
        let triggers = service.triggers.iter().map(|trigger| match trigger.kind {
            TriggerKind::Requests => {
                PendingTrigger::Known(Measurement::Requests(service.requests.clone()))
            }
            TriggerKind::Prometheus => {
                match TriggerQueries::of(trigger, service.cooldown, &self.defaults) {
                    Ok(queries) => PendingTrigger::Prometheus(queries),
                    Err(problem) => PendingTrigger::Known(Measurement::NotQueried(problem)),
                }
            }
        });
        triggers.collect()
    }

    /// Waits for a slot of the server first: a query that waits there occupies no slot of others.
    async fn send<'a>(
        &self,
        query: &'a Query,
        delay: Duration,
    ) -> (&'a Query, Result<f64, Problem>) {
        self.clock.sleep(delay).await;
        let server = self.slots.of_server(query.server_origin());
        let _server_slot = server.acquire().await;
        let _slot = self.slots.all.acquire().await;
        let result = self.prometheus.query(query).await;
        (query, result)
    }
}

impl PendingTrigger {
    fn queries(&self) -> impl Iterator<Item = &Query> {
        let queries = match self {
            Self::Prometheus(queries) => Some([&queries.health, &queries.value]),
            Self::Known(_) => None,
        };
        queries.into_iter().flatten()
    }

    fn measurement(&self, results: &QueryResults) -> Measurement {
        let result = |query| {
            let missing = || Err(Problem::Unreachable("it was not queried".to_owned()));
            results.get(query).cloned().unwrap_or_else(missing)
        };
        match self {
            Self::Known(measurement) => measurement.clone(),
            Self::Prometheus(queries) => Measurement::Prometheus {
                health: result(&queries.health)
                    .map_err(|problem| queries.health.explain_uptime(problem)),
                value: result(&queries.value),
                threshold: queries.threshold,
            },
        }
    }
}

#[cfg(test)]
mod tests;
