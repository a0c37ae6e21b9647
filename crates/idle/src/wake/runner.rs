//! Receives requests for wakes and runs them.

use std::{collections::HashMap, fmt, sync::Arc};

use kube::ResourceExt;
use neap_kit::{
    apply::Writer,
    context::Context,
    event::EventRecorder,
    key::Key,
    lease::Leadership,
    manager::Component,
    telemetry::Meter,
    watch::{Cache, Change, Index, Selection, WatchesStopped},
};
use tokio::{
    sync::{mpsc, oneshot},
    task::{Id, JoinSet},
};
use tokio_util::sync::CancellationToken;

use super::{
    WakeCause,
    attempt::WakeTools,
    closure,
    metrics::{self, ServiceRemoved, WakeMetrics},
};
use crate::{api::ElastiService, target::KindLookup};

/// The name in logs, field managers and Events; Events of KubeElasti have the same.
const NAME: &str = "elasti-operator";
/// The largest number of requests that wait to be started. Usually none does.
const MAX_QUEUED_REQUESTS: usize = 4096;

/// The result of a wake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WakeOutcome {
    /// Replicas were written.
    Woken {
        /// The number of replicas before.
        from: i32,
        /// The number of replicas that was written.
        to: i32,
    },
    /// The target has enough replicas already.
    Awake {
        /// Their number.
        replicas: i32,
    },
    /// No ElastiService names the Service.
    Unknown,
    /// Replicas could not be written.
    Failed(String),
}

/// The queue of requests is full, or the runner has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many wakes are waiting; try again in a moment")]
pub struct WakeQueueFull;

struct WakeRequest {
    service: Key,
    reply: oneshot::Sender<WakeOutcome>,
}

/// Requests wakes. Cheap to clone.
#[derive(Debug, Clone)]
pub struct WakeHandle(mpsc::Sender<WakeRequest>);

impl WakeHandle {
    /// Requests a wake of the workload behind this Service. It happens even if the result is dropped.
    pub fn wake(&self, service: Key) -> Result<PendingWake, WakeQueueFull> {
        let (reply, outcome) = oneshot::channel();
        let request = WakeRequest { service, reply };
        self.0.try_send(request).map_err(|_| WakeQueueFull)?;
        Ok(PendingWake(outcome))
    }
}

/// A wake in progress. Dropping this does not stop it.
#[derive(Debug)]
pub struct PendingWake(oneshot::Receiver<WakeOutcome>);

impl PendingWake {
    /// Waits for the result.
    pub async fn outcome(self) -> WakeOutcome {
        let ended = || {
            WakeOutcome::Failed("it was interrupted; the operator's log has the reason".to_owned())
        };
        self.0.await.unwrap_or_else(|_| ended())
    }
}

/// An ElastiService by name and uid: one that was deleted and created again is another.
type ServiceIdentity = (Key, Option<String>);

/// Callers that wait for the outcome of a wake.
pub(super) type Waiters = Vec<oneshot::Sender<WakeOutcome>>;

/// The wake that follows the one in progress, if it was requested meanwhile.
type NextWake = Option<(Arc<ElastiService>, WakeCause, Waiters)>;

/// Runs wakes.
pub struct WakeRunner {
    requests: mpsc::Receiver<WakeRequest>,
    services: Cache<ElastiService>,
    by_service: Index<ElastiService>,
    client: kube::Client,
    tools: WakeTools,
    in_progress: HashMap<ServiceIdentity, NextWake>,
    tasks: JoinSet<()>,
    identities: HashMap<Id, ServiceIdentity>,
}

impl WakeRunner {
    /// A runner for the ElastiServices in `services`. It needs no leadership.
    pub fn new(context: &Context, services: Cache<ElastiService>) -> (WakeHandle, Self) {
        let (sender, requests) = mpsc::channel(MAX_QUEUED_REQUESTS);
        let by_service = Index::new(&services, |one| {
            let namespace = one.namespace().unwrap_or_default();
            vec![Key::new(&namespace, &one.spec.service).to_string()]
        });
        let exempt = Context {
            leadership: Leadership::without_election(context.clock),
            ..context.clone()
        };
        let writer: Writer = exempt.writer(NAME);
        let telemetry = context.watches.process().telemetry();
        let tools = WakeTools {
            recorder: EventRecorder::new(writer.clone(), NAME, context.clock),
            writer,
            kinds: Arc::new(KindLookup::default()),
            clock: context.clock,
            meter: metrics::meter(telemetry),
        };
        remove_metrics_with(&services, tools.meter.clone());
        let service = Self {
            requests,
            services,
            by_service,
            client: context.client.clone(),
            tools,
            in_progress: HashMap::new(),
            tasks: JoinSet::new(),
            identities: HashMap::new(),
        };
        (WakeHandle(sender), service)
    }

    /// A runner for all ElastiServices.
    pub fn for_all_services(context: &Context) -> Result<(WakeHandle, Self), WatchesStopped> {
        let services = context.scoped_cache(&Selection::default())?;
        Ok(Self::new(context, services))
    }

    /// Runs until `stop`, and then finishes the wakes in progress.
    pub async fn run(mut self, stop: CancellationToken) {
        let services = self.services.clone();
        tokio::select! {
            () = stop.cancelled() => return,
            () = services.synced() => {}
        }
        loop {
            tokio::select! {
                // Requests first: those that arrived before a wake finished share the one after it.
                biased;
                () = stop.cancelled() => break,
                Some(request) = self.requests.recv() => self.start(request),
                Some(done) = self.tasks.join_next_with_id() => self.finish(done),
                else => stop.cancelled().await,
            }
        }
        // No other operator knows of the requests that were accepted here.
        self.requests.close();
        while let Ok(request) = self.requests.try_recv() {
            self.start(request);
        }
        while let Some(done) = self.tasks.join_next_with_id().await {
            self.finish(done);
        }
    }

    fn start(&mut self, request: WakeRequest) {
        let Some(first) = self.find(&request.service) else {
            let _ = request.reply.send(WakeOutcome::Unknown);
            return;
        };
        let namespace = first.namespace().unwrap_or_default();
        let name = first.name_any();
        let known: HashMap<String, Arc<ElastiService>> = self.candidates(&namespace, &first);
        let woken = closure(&name, |name| {
            let one = known.get(name)?;
            Some((one.clone(), &one.spec.dependencies[..]))
        });
        let mut reply = Some(request.reply);
        for (service, by) in woken {
            let cause = by.map_or(WakeCause::Request, WakeCause::Dependency);
            self.join(service, cause, reply.take());
        }
    }

    /// The services that may be dependencies; only the one itself if it has none.
    fn candidates(
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

    /// The ElastiService of a Service; the oldest if several name it.
    fn find(&self, service: &Key) -> Option<Arc<ElastiService>> {
        let found = self.by_service.get(&service.to_string());
        found.into_iter().min_by_key(|one| {
            let made = one.creation_timestamp().map(|time| time.0);
            (made, one.uid())
        })
    }

    /// Starts a wake, or queues one after the one in progress.
    fn join(
        &mut self,
        service: Arc<ElastiService>,
        cause: WakeCause,
        reply: Option<oneshot::Sender<WakeOutcome>>,
    ) {
        let identity = (Key::of(&*service), service.uid());
        if let Some(next) = self.in_progress.get_mut(&identity) {
            let (_, _, waiters) = next.get_or_insert_with(|| (service, cause, Waiters::new()));
            waiters.extend(reply);
        } else {
            self.spawn(identity, service, cause, reply.into_iter().collect());
        }
    }

    fn spawn(
        &mut self,
        identity: ServiceIdentity,
        service: Arc<ElastiService>,
        cause: WakeCause,
        waiters: Waiters,
    ) {
        let (tools, client) = (self.tools.clone(), self.client.clone());
        let wake = tools.wake(client, service, cause, waiters);
        let task = self.tasks.spawn(wake);
        self.identities.insert(task.id(), identity.clone());
        self.in_progress.insert(identity, None);
    }

    fn finish(&mut self, done: Result<(Id, ()), tokio::task::JoinError>) {
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
        if let Some(Some((service, cause, waiters))) = self.in_progress.remove(&identity) {
            self.spawn(identity, service, cause, waiters);
        }
    }
}

/// Removes the metrics of services that were deleted or changed.
fn remove_metrics_with(services: &Cache<ElastiService>, meter: Meter<WakeMetrics>) {
    services.subscribe(move |change| match change {
        Change::Deleted(gone) => meter.emit(&ServiceRemoved(gone)),
        Change::Modified { old, new } if old.spec != new.spec => meter.emit(&ServiceRemoved(old)),
        _ => {}
    });
}

impl From<WakeRunner> for Component {
    fn from(wakes: WakeRunner) -> Self {
        Self::new("wakes", |stop| wakes.run(stop))
    }
}

impl fmt::Debug for WakeRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WakeService")
            .field("in_progress", &self.in_progress.len())
            .finish_non_exhaustive()
    }
}
