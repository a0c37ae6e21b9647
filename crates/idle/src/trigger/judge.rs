//! Keeps at hand whether anybody asks for each service.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use futures::{StreamExt, future::BoxFuture, stream::FuturesUnordered};
use neap_kit::{
    clock::{Clock, Uptime},
    controller::Trigger as Look,
    key::Key,
    lease::Leadership,
    manager::Service,
    site::Site,
    watch::Cache,
};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::{Poll, Problem, Quiet, Watched, Window, jitter::Jitter, window};
use crate::{
    api::{ElastiService, TriggerKind},
    service::verdict::{Because, Verdict, Verdicts},
    wake::is_due,
};

/// What was said so many polls ago says nothing about now.
const BELIEVED: u32 = 3;

/// Knows what resolvers counted.
pub trait Counters: fmt::Debug + Send + Sync {
    /// How quiet it is for each Service, by `namespace/name`, as all resolvers see it together. One
    /// that does not say makes it unknown.
    fn quiet(&self) -> BoxFuture<'_, Result<BTreeMap<String, Quiet>, Problem>>;
}

/// Asks triggers again and again, and says what they said.
#[derive(Debug)]
pub struct Judge {
    poll: Poll,
    services: Cache<ElastiService>,
    counters: Arc<dyn Counters>,
    interval: Duration,
    clock: Clock,
    leadership: Leadership,
    said: Mutex<HashMap<Key, Said>>,
    /// Those whose triggers have not said anything yet, as they were when they were asked.
    asked: Mutex<HashMap<Key, Arc<ElastiService>>>,
    told: Mutex<Vec<Look<Key>>>,
}

/// What the triggers of a service said.
#[derive(Debug, Clone)]
struct Said {
    /// Another object of that name is another.
    uid: Option<String>,
    at: Uptime,
    verdict: Verdict,
}

impl Judge {
    /// Asks for `services`, about every `interval`.
    pub fn new(
        site: &Site,
        services: Cache<ElastiService>,
        poll: Poll,
        counters: Arc<dyn Counters>,
        interval: Duration,
    ) -> Arc<Self> {
        Arc::new(Self {
            poll,
            services,
            counters,
            interval,
            clock: site.clock,
            leadership: site.leadership.clone(),
            said: Mutex::default(),
            asked: Mutex::default(),
            told: Mutex::default(),
        })
    }

    /// Asks while this process leads; `seed` sets it apart from others.
    pub fn service(self: Arc<Self>, seed: u64) -> Service {
        Service::new("triggers", move |stop| self.run(seed, stop))
    }

    async fn run(self: Arc<Self>, seed: u64, stop: CancellationToken) {
        let mut jitter = Jitter::new(seed);
        let mut leadership = self.leadership.clone();
        let asking = async {
            self.services.synced().await;
            let mut rounds = FuturesUnordered::new();
            loop {
                beside(&mut rounds, leadership.gained()).await;
                rounds.push(self.round(jitter.another()));
                let pause = self.clock.sleep(jitter.around(self.interval));
                beside(&mut rounds, pause).await;
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = asking => {}
        }
    }

    /// Asks for all whom nobody has asked for yet. Those whose resolvers count wait for these, and
    /// keep nobody else waiting.
    async fn round(&self, mut jitter: Jitter) {
        let due = self.due();
        let (counted, others): (Vec<_>, Vec<_>) = due.into_iter().partition(|one| counts(one));
        let mut own = jitter.another();
        let count = async {
            if !counted.is_empty() {
                let quiet = self.counters.quiet().await;
                self.ask_for(&counted, &quiet, &mut own).await;
            }
        };
        let uncounted = Ok(BTreeMap::new());
        tokio::join!(count, self.ask_for(&others, &uncounted, &mut jitter));
    }

    /// The services to ask for. A server that is slow to answer is not asked again meanwhile.
    fn due(&self) -> Vec<Arc<ElastiService>> {
        let services = self.services.list("");
        let there: HashSet<_> = services.iter().map(|one| Key::of(&**one)).collect();
        self.said.lock().retain(|key, _| there.contains(key));
        let mut asked = self.asked.lock();
        let mut due = services;
        due.retain(|one| {
            let before = asked.insert(Key::of(&**one), one.clone());
            before.is_none_or(|before| !asks_the_same(&before, one))
        });
        due
    }

    async fn ask_for(
        &self,
        services: &[Arc<ElastiService>],
        quiet: &Result<BTreeMap<String, Quiet>, Problem>,
        jitter: &mut Jitter,
    ) {
        let watched: Vec<_> = services.iter().map(|one| watched(one, quiet)).collect();
        let said = |index: usize, verdict| self.said(&services[index], verdict);
        self.poll.each(&watched, jitter, said).await;
    }

    /// The triggers of a service said so. If it has others by now, that is not said of it.
    fn said(&self, service: &ElastiService, verdict: Verdict) {
        let key = Key::of(service);
        let mut asked = self.asked.lock();
        if asked
            .get(&key)
            .is_some_and(|now| asks_the_same(now, service))
        {
            asked.remove(&key);
        }
        drop(asked);
        let now = self.services.get(&key);
        let Some(service) = now.filter(|now| asks_the_same(now, service)) else {
            return;
        };
        let (uid, at) = (service.metadata.uid.clone(), self.clock.uptime());
        let said = Said { uid, at, verdict };
        self.compare(&service, &key, &said);
        self.said.lock().insert(key, said);
    }

    /// Has a service looked at again if something else is said than before, or if it is time to note
    /// that somebody asks.
    fn compare(&self, service: &ElastiService, key: &Key, now: &Said) {
        let before = self.said.lock().get(key).cloned();
        let same = before.is_some_and(|before| {
            let word = |said: &Said| said.verdict.because().reason;
            before.uid == now.uid && word(&before) == word(now)
        });
        let asked = now.verdict.because().asked;
        let asked = asked.unwrap_or_else(|| self.clock.now());
        let due = matches!(now.verdict, Verdict::Busy(_)) && is_due(service, asked);
        if !same || due {
            let told = self.told.lock();
            told.iter().for_each(|look| look.changed(key.clone()));
        }
    }

    /// Outside of its window a service is wanted, whatever triggers say. A window that cannot be read
    /// lets nothing sleep.
    fn in_window(&self, service: &ElastiService) -> Option<Verdict> {
        let window = window(service.spec.enabled_period.as_ref(), self.clock.now());
        let sentence = match &window {
            Window::Always | Window::Open { .. } => return None,
            Window::Closed { opens: Some(opens) } => format!("it may not sleep before {opens}"),
            Window::Closed { opens: None } => "enabledPeriod never lets it sleep".to_owned(),
            Window::Invalid(problem) => problem.to_string(),
        };
        Some(Verdict::Busy(Because::new(window.reason(), sentence)))
    }
}

/// Goes on with `rounds` until something else has come to its end.
async fn beside<R: Future>(rounds: &mut FuturesUnordered<R>, until: impl Future) {
    let all = async {
        while rounds.next().await.is_some() {}
        std::future::pending::<()>().await;
    };
    tokio::select! {
        _ = until => {}
        () = all => {}
    }
}

/// Whether resolvers say who asks for it.
fn counts(service: &ElastiService) -> bool {
    let mut triggers = service.spec.triggers.iter();
    triggers.any(|trigger| trigger.kind == TriggerKind::Requests)
}

/// Whether what was said of one can be said of the other.
fn asks_the_same(one: &ElastiService, other: &ElastiService) -> bool {
    one.metadata.uid == other.metadata.uid
        && one.spec.triggers == other.spec.triggers
        && one.spec.cooldown_period == other.spec.cooldown_period
}

fn watched(service: &ElastiService, quiet: &Result<BTreeMap<String, Quiet>, Problem>) -> Watched {
    let key = Key::of(service);
    let public = Key::new(key.namespace(), &service.spec.service).to_string();
    let quiet = quiet.as_ref().map_err(Clone::clone);
    let quiet = quiet.map(|all| all.get(&public).copied().unwrap_or_default());
    let cooldown = service.spec.cooldown_period.filter(|it| *it > 0);
    let cooldown = u64::try_from(cooldown.unwrap_or(900)).unwrap_or(900);
    Watched {
        key,
        cooldown: Duration::from_secs(cooldown),
        triggers: service.spec.triggers.clone(),
        quiet,
    }
}

impl Verdicts for Judge {
    fn of(&self, service: &ElastiService) -> Verdict {
        if let Some(closed) = self.in_window(service) {
            return closed;
        }
        let said = self.said.lock().get(&Key::of(service)).cloned();
        let now = self.clock.uptime();
        let fresh = said.filter(|said| {
            said.uid == service.metadata.uid
                && now.saturating_sub(said.at) <= self.interval * BELIEVED
        });
        let unasked = || {
            let because = "its triggers have not been asked lately";
            Verdict::Unknown(Because::new("NotAsked", because))
        };
        fresh.map_or_else(unasked, |said| said.verdict)
    }

    fn anew<'a>(&'a self, service: &'a ElastiService) -> BoxFuture<'a, Verdict> {
        Box::pin(async move {
            if let Some(closed) = self.in_window(service) {
                return closed;
            }
            let quiet = if counts(service) {
                self.counters.quiet().await
            } else {
                Ok(BTreeMap::new())
            };
            let poll = self.poll.clone().at_once();
            let watched = [watched(service, &quiet)];
            let verdicts = poll.round(&watched, &mut Jitter::new(0)).await;
            let verdict = verdicts.into_values().next();
            verdict.unwrap_or_else(|| self.of(service))
        })
    }

    fn tell(&self, trigger: Look<Key>) {
        self.told.lock().push(trigger);
    }
}

#[cfg(test)]
mod tests;
