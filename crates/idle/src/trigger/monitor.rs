//! Polls the triggers of all services and keeps the latest verdicts in memory.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use futures::{StreamExt, future::BoxFuture, stream::FuturesUnordered};
use jiff::Timestamp;
use neap_kit::{
    clock::{Clock, Uptime},
    context::Context,
    controller::Enqueuer,
    key::Key,
    lease::Leadership,
    manager::Component,
    watch::Cache,
};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::{
    PolledService, Poller, Problem, RecentRequests, Verdict, Verdicts, Window, jitter::Jitter,
    window,
};
use crate::{api::ElastiService, reason::Reason};

/// The age at which a verdict counts as unknown, in polling intervals.
const MAX_VERDICT_AGE: u32 = 3;

/// The source of the requests that resolvers counted.
pub trait RequestCounts: fmt::Debug + Send + Sync {
    /// The recent requests for each Service, by `namespace/name`, of all resolvers together. An error if
    /// one of them does not respond.
    fn by_service(&self) -> BoxFuture<'_, Result<BTreeMap<String, RecentRequests>, Problem>>;
}

/// Polls triggers at an interval, and serves the verdicts.
#[derive(Debug)]
pub struct TriggerMonitor {
    poller: Poller,
    services: Cache<ElastiService>,
    counts: Arc<dyn RequestCounts>,
    interval: Duration,
    clock: Clock,
    leadership: Leadership,
    verdicts: Mutex<HashMap<Key, PolledVerdict>>,
    /// Services whose poll is in progress, as they were when it began.
    polling: Mutex<HashMap<Key, Arc<ElastiService>>>,
    enqueuers: Mutex<Vec<Enqueuer<Key>>>,
}

/// The verdict of the last poll of a service.
#[derive(Debug, Clone)]
struct PolledVerdict {
    /// An object that was deleted and created again has another uid, and none of the old verdicts.
    uid: Option<String>,
    at: Uptime,
    verdict: Verdict,
}

impl TriggerMonitor {
    /// Polls the triggers of `services`, about once per `interval`.
    pub fn new(
        context: &Context,
        services: Cache<ElastiService>,
        poller: Poller,
        counts: Arc<dyn RequestCounts>,
        interval: Duration,
    ) -> Arc<Self> {
        Arc::new(Self {
            poller,
            services,
            counts,
            interval,
            clock: context.clock,
            leadership: context.leadership.clone(),
            verdicts: Mutex::default(),
            polling: Mutex::default(),
            enqueuers: Mutex::default(),
        })
    }

    /// The component that polls while this process leads. With different seeds, processes poll at
    /// different moments.
    pub fn component(self: Arc<Self>, seed: u64) -> Component {
        Component::new("triggers", move |stop| self.run(seed, stop))
    }

    async fn run(self: Arc<Self>, seed: u64, stop: CancellationToken) {
        let mut jitter = Jitter::new(seed);
        let mut leadership = self.leadership.clone();
        let polling = async {
            self.services.synced().await;
            let mut rounds = FuturesUnordered::new();
            loop {
                drive_until(&mut rounds, leadership.gained()).await;
                rounds.push(self.poll_round(jitter.another()));
                let pause = self.clock.sleep(jitter.around(self.interval));
                drive_until(&mut rounds, pause).await;
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = polling => {}
        }
    }

    /// Polls every service whose poll is not in progress. Services with a requests trigger wait for the
    /// resolvers, and delay no other service.
    async fn poll_round(&self, mut jitter: Jitter) {
        let due = self.due();
        let counted = |one: &Arc<ElastiService>| one.spec.counts_requests();
        let (counted, others): (Vec<_>, Vec<_>) = due.into_iter().partition(counted);
        let mut own = jitter.another();
        let count = async {
            if !counted.is_empty() {
                let requests = self.counts.by_service().await;
                self.poll(&counted, &requests, &mut own).await;
            }
        };
        let no_requests = Ok(BTreeMap::new());
        tokio::join!(count, self.poll(&others, &no_requests, &mut jitter));
    }

    /// The services to poll. A server that responds slowly is not queried again meanwhile.
    fn due(&self) -> Vec<Arc<ElastiService>> {
        let services = self.services.list("");
        let existing: HashSet<_> = services.iter().map(|one| Key::of(&**one)).collect();
        self.verdicts.lock().retain(|key, _| existing.contains(key));
        let mut polling = self.polling.lock();
        let mut due = services;
        due.retain(|one| {
            let before = polling.insert(Key::of(&**one), one.clone());
            before.is_none_or(|before| !has_same_triggers(&before, one))
        });
        due
    }

    async fn poll(
        &self,
        services: &[Arc<ElastiService>],
        requests: &Result<BTreeMap<String, RecentRequests>, Problem>,
        jitter: &mut Jitter,
    ) {
        let polled: Vec<_> = services.iter().map(|one| polled(one, requests)).collect();
        let on_verdict = |index: usize, verdict| self.record(&services[index], verdict);
        self.poller.poll(&polled, jitter, on_verdict).await;
    }

    /// Stores the verdict of a poll, unless the service has other triggers by now.
    fn record(&self, service: &ElastiService, verdict: Verdict) {
        let key = Key::of(service);
        let mut polling = self.polling.lock();
        if polling
            .get(&key)
            .is_some_and(|now| has_same_triggers(now, service))
        {
            polling.remove(&key);
        }
        drop(polling);
        let now = self.services.get(&key);
        let Some(service) = now.filter(|now| has_same_triggers(now, service)) else {
            return;
        };
        let (uid, at) = (service.metadata.uid.clone(), self.clock.uptime());
        let polled = PolledVerdict { uid, at, verdict };
        self.enqueue_if_needed(&service, &key, &polled);
        self.verdicts.lock().insert(key, polled);
    }

    /// Enqueues a service if its verdict changed, or if it is time to record that it is in use.
    fn enqueue_if_needed(&self, service: &ElastiService, key: &Key, now: &PolledVerdict) {
        let before = self.verdicts.lock().get(key).cloned();
        let same = before.is_some_and(|before| {
            let name = |polled: &PolledVerdict| polled.verdict.reason().name;
            before.uid == now.uid && name(&before) == name(now)
        });
        let request_at = now.verdict.reason().last_request_at;
        let request_at = request_at.unwrap_or_else(|| self.clock.now());
        let busy = matches!(now.verdict, Verdict::Busy(_));
        if !same || busy && service.activity_write_is_due(request_at) {
            let enqueuers = self.enqueuers.lock();
            enqueuers
                .iter()
                .for_each(|enqueuer| enqueuer.enqueue(key.clone()));
        }
    }
}

/// Outside of its window a service counts as busy, whatever its triggers report; none if it is inside. A
/// window that cannot be parsed lets no service sleep.
pub(crate) fn closed_window(service: &ElastiService, now: Timestamp) -> Option<Verdict> {
    let window = window(service.spec.enabled_period.as_ref(), now);
    let message = match &window {
        Window::Always | Window::Open { .. } => return None,
        Window::Closed { opens: Some(opens) } => {
            format!("the service may not sleep before {opens}")
        }
        Window::Closed { opens: None } => "enabledPeriod never lets it sleep".to_owned(),
        Window::Invalid(problem) => problem.to_string(),
    };
    Some(Verdict::Busy(Reason::new(window.reason(), message)))
}

/// Drives `rounds` until `until` is done.
async fn drive_until<R: Future>(rounds: &mut FuturesUnordered<R>, until: impl Future) {
    let all = async {
        while rounds.next().await.is_some() {}
        std::future::pending::<()>().await;
    };
    tokio::select! {
        _ = until => {}
        () = all => {}
    }
}

/// Whether a verdict about one is one about the other.
fn has_same_triggers(one: &ElastiService, other: &ElastiService) -> bool {
    one.metadata.uid == other.metadata.uid
        && one.spec.triggers == other.spec.triggers
        && one.spec.cooldown_period == other.spec.cooldown_period
}

fn polled(
    service: &ElastiService,
    requests: &Result<BTreeMap<String, RecentRequests>, Problem>,
) -> PolledService {
    let key = Key::of(service);
    let public = Key::new(key.namespace(), &service.spec.service).to_string();
    let requests = requests.as_ref().map_err(Clone::clone);
    PolledService {
        key,
        cooldown: service.spec.cooldown(),
        triggers: service.spec.triggers.clone(),
        requests: requests.map(|all| all.get(&public).copied().unwrap_or_default()),
    }
}

impl Verdicts for TriggerMonitor {
    fn latest(&self, service: &ElastiService) -> Verdict {
        if let Some(closed) = closed_window(service, self.clock.now()) {
            return closed;
        }
        let polled = self.verdicts.lock().get(&Key::of(service)).cloned();
        let now = self.clock.uptime();
        let fresh = polled.filter(|polled| {
            polled.uid == service.metadata.uid
                && now.saturating_sub(polled.at) <= self.interval * MAX_VERDICT_AGE
        });
        let not_polled = || {
            let message = "its triggers have not been polled lately";
            Verdict::Unknown(Reason::new("NotPolled", message))
        };
        fresh.map_or_else(not_polled, |polled| polled.verdict)
    }

    fn poll_now<'a>(&'a self, service: &'a ElastiService) -> BoxFuture<'a, Verdict> {
        Box::pin(async move {
            if let Some(closed) = closed_window(service, self.clock.now()) {
                return closed;
            }
            let requests = if service.spec.counts_requests() {
                self.counts.by_service().await
            } else {
                Ok(BTreeMap::new())
            };
            let poller = self.poller.clone().immediate();
            let polled = [polled(service, &requests)];
            let verdicts = poller.poll_all(&polled, &mut Jitter::new(0)).await;
            let verdict = verdicts.into_values().next();
            verdict.unwrap_or_else(|| self.latest(service))
        })
    }

    fn enqueue_changes(&self, enqueuer: Enqueuer<Key>) {
        self.enqueuers.lock().push(enqueuer);
    }
}

#[cfg(test)]
mod tests;
