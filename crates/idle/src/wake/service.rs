//! Takes wakes in, and sees them through.

use std::{collections::HashMap, fmt, sync::Arc};

use kube::ResourceExt;
use neap_kit::{
    apply::Hand,
    event::Recorder,
    key::Key,
    lease::Leadership,
    manager::Service,
    site::Site,
    telemetry::Meter,
    watch::{Cache, Change, Ended, Index, Selection},
};
use tokio::{
    sync::{mpsc, oneshot},
    task::{Id, JoinSet},
};
use tokio_util::sync::CancellationToken;

use super::{
    Cause, closure,
    flight::Tools,
    metrics::{self, Forgot, Metrics},
};
use crate::{api::ElastiService, target::Kinds};

/// The name in logs, field managers and Events; that of the Events is known from the original.
const NAME: &str = "elasti-operator";
/// So many wakes may wait to be looked at; there is hardly ever one.
const WAITING: usize = 4096;

/// What came of a wake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Replicas were written.
    Woken {
        /// So many there were.
        from: i32,
        /// So many there are to be.
        to: i32,
    },
    /// There was nothing to write.
    Awake {
        /// So many there are to be already.
        replicas: i32,
    },
    /// There is no such ElastiService.
    Unknown,
    /// Replicas could not be written.
    Failed(String),
}

/// Too many wakes wait already, or none are done any longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("more services are to be woken than can be looked at; ask again in a moment")]
pub struct Full;

struct Ask {
    service: Key,
    reply: oneshot::Sender<Outcome>,
}

/// Asks for wakes. Cheap to copy.
#[derive(Debug, Clone)]
pub struct Waker(mpsc::Sender<Ask>);

impl Waker {
    /// Has what stands behind the Service of this name woken for a request, whether anybody waits for
    /// it or not.
    pub fn wake(&self, service: Key) -> Result<Pending, Full> {
        let (reply, outcome) = oneshot::channel();
        let ask = Ask { service, reply };
        self.0.try_send(ask).map_err(|_| Full)?;
        Ok(Pending(outcome))
    }
}

/// A wake under way. Dropping it stops nothing.
#[derive(Debug)]
pub struct Pending(oneshot::Receiver<Outcome>);

impl Pending {
    /// What came of it.
    pub async fn outcome(self) -> Outcome {
        let ended = || Outcome::Failed("it broke off; the operator's log says why".to_owned());
        self.0.await.unwrap_or_else(|_| ended())
    }
}

/// An ElastiService that lives once: another of its name is another.
type Identity = (Key, Option<String>);

/// Those who wait for the outcome of a wake.
pub(super) type Waiters = Vec<oneshot::Sender<Outcome>>;

/// What was asked for since a wake began.
type Next = Option<(Arc<ElastiService>, Cause, Waiters)>;

/// Sees wakes through.
pub struct WakeService {
    asked: mpsc::Receiver<Ask>,
    services: Cache<ElastiService>,
    by_service: Index<ElastiService>,
    client: kube::Client,
    tools: Tools,
    under_way: HashMap<Identity, Next>,
    flights: JoinSet<()>,
    identities: HashMap<Id, Identity>,
}

impl WakeService {
    /// Wakes the ElastiServices that `services` shows, at `site`, whoever leads there.
    pub fn new(site: &Site, services: Cache<ElastiService>) -> (Waker, Self) {
        let (sender, asked) = mpsc::channel(WAITING);
        let by_service = Index::new(&services, |one| {
            let namespace = one.namespace().unwrap_or_default();
            vec![Key::new(&namespace, &one.spec.service).to_string()]
        });
        let exempt = Site {
            leadership: Leadership::alone(site.clock),
            ..site.clone()
        };
        let hand: Hand = exempt.hand(NAME);
        let telemetry = site.watches.process().telemetry();
        let tools = Tools {
            recorder: Recorder::new(hand.clone(), NAME, site.clock),
            hand,
            kinds: Arc::new(Kinds::default()),
            clock: site.clock,
            meter: metrics::meter(telemetry),
        };
        forget_with(&services, tools.meter.clone());
        let service = Self {
            asked,
            services,
            by_service,
            client: site.client.clone(),
            tools,
            under_way: HashMap::new(),
            flights: JoinSet::new(),
            identities: HashMap::new(),
        };
        (Waker(sender), service)
    }

    /// The same for all ElastiServices there are.
    pub fn of_all(site: &Site) -> Result<(Waker, Self), Ended> {
        let services = site.here(&Selection::default())?;
        Ok(Self::new(site, services))
    }

    /// Wakes until `stop`, and then ends what is under way.
    pub async fn run(mut self, stop: CancellationToken) {
        let services = self.services.clone();
        tokio::select! {
            () = stop.cancelled() => return,
            () = services.synced() => {}
        }
        loop {
            tokio::select! {
                // Whoever has asked before a wake is over shares the one after it.
                biased;
                () = stop.cancelled() => break,
                Some(ask) = self.asked.recv() => self.begin(ask),
                Some(done) = self.flights.join_next_with_id() => self.landed(done),
                else => stop.cancelled().await,
            }
        }
        // Nobody else may come to wake what was asked for here.
        self.asked.close();
        while let Ok(ask) = self.asked.try_recv() {
            self.begin(ask);
        }
        while let Some(done) = self.flights.join_next_with_id().await {
            self.landed(done);
        }
    }

    fn begin(&mut self, ask: Ask) {
        let Some(first) = self.find(&ask.service) else {
            let _ = ask.reply.send(Outcome::Unknown);
            return;
        };
        let namespace = first.namespace().unwrap_or_default();
        let name = first.name_any();
        let known: HashMap<String, Arc<ElastiService>> = self.around(&namespace, &first);
        let woken = closure(&name, |name| {
            let one = known.get(name)?;
            Some((one.clone(), &one.spec.dependencies[..]))
        });
        let mut reply = Some(ask.reply);
        for (service, by) in woken {
            let cause = by.map_or(Cause::Request, Cause::Dependency);
            self.join(service, cause, reply.take());
        }
    }

    /// The services that may be needed; only the one itself if it says that it needs none.
    fn around(
        &self,
        namespace: &str,
        first: &Arc<ElastiService>,
    ) -> HashMap<String, Arc<ElastiService>> {
        let neighbours = if first.spec.dependencies.is_empty() {
            Vec::new()
        } else {
            self.services.list(namespace)
        };
        let all = neighbours.into_iter().chain([first.clone()]);
        all.map(|one| (one.name_any(), one)).collect()
    }

    /// If two name the same Service, the one that was there first.
    fn find(&self, service: &Key) -> Option<Arc<ElastiService>> {
        let found = self.by_service.get(&service.to_string());
        found.into_iter().min_by_key(|one| {
            let made = one.creation_timestamp().map(|time| time.0);
            (made, one.uid())
        })
    }

    /// Begins a wake, or has one follow the one that is under way.
    fn join(
        &mut self,
        service: Arc<ElastiService>,
        cause: Cause,
        reply: Option<oneshot::Sender<Outcome>>,
    ) {
        let identity = (Key::of(&*service), service.uid());
        if let Some(next) = self.under_way.get_mut(&identity) {
            let (_, _, waiters) = next.get_or_insert_with(|| (service, cause, Waiters::new()));
            waiters.extend(reply);
        } else {
            self.fly(identity, service, cause, reply.into_iter().collect());
        }
    }

    fn fly(
        &mut self,
        identity: Identity,
        service: Arc<ElastiService>,
        cause: Cause,
        waiters: Waiters,
    ) {
        let (tools, client) = (self.tools.clone(), self.client.clone());
        let flight = tools.wake(client, service, cause, waiters);
        let task = self.flights.spawn(flight);
        self.identities.insert(task.id(), identity.clone());
        self.under_way.insert(identity, None);
    }

    fn landed(&mut self, done: Result<(Id, ()), tokio::task::JoinError>) {
        let id = match done {
            Ok((id, ())) => id,
            Err(error) => {
                tracing::error!(%error, "a wake panicked; please report it");
                error.id()
            }
        };
        let Some(identity) = self.identities.remove(&id) else {
            return;
        };
        if let Some(Some((service, cause, waiters))) = self.under_way.remove(&identity) {
            self.fly(identity, service, cause, waiters);
        }
    }
}

/// Nothing is shown of what is no longer there, or is another now.
fn forget_with(services: &Cache<ElastiService>, meter: Meter<Metrics>) {
    services.follow(move |change| match change {
        Change::Deleted(gone) => meter.emit(&Forgot(gone)),
        Change::Modified { old, new } if old.spec != new.spec => meter.emit(&Forgot(old)),
        _ => {}
    });
}

impl From<WakeService> for Service {
    fn from(wakes: WakeService) -> Self {
        Self::new("wakes", |stop| wakes.run(stop))
    }
}

impl fmt::Debug for WakeService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WakeService")
            .field("under_way", &self.under_way.len())
            .finish_non_exhaustive()
    }
}
