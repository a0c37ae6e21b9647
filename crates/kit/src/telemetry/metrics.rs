//! The numbers of this crate.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};

/// What this crate counts.
#[derive(Debug)]
pub struct Metrics {
    pub(super) reconciles: Family<Reconcile, Counter>,
    pub(super) reconcile_errors: Family<ReconcileError, Counter>,
    pub(super) reconcile_duration: Durations<Controller>,
    pub(super) late_echoes: Family<Controller, Counter>,
    queue: Family<Queue, Gauge>,
    pub(super) writes: Family<Write, Counter>,
    pub(super) calls: Family<Call, Counter>,
    pub(super) call_duration: Durations<Verb>,
    pub(super) watch_events: Family<WatchEvent, Counter>,
    pub(super) watch_listings: Family<Watch, Counter>,
    pub(super) watch_failures: Family<Watch, Counter>,
    pub(super) lease_transitions: Family<Transition, Counter>,
    pub(super) leads: Family<Lease, Gauge>,
}

type Durations<S> = Family<S, Histogram, fn() -> Histogram>;

macro_rules! labels {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty),+ })+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
        pub(super) struct $name { $(pub(super) $field: $type),+ }
    )+};
}

labels! {
    Controller { controller: &'static str }
    Reconcile { controller: &'static str, result: &'static str }
    ReconcileError { controller: &'static str, class: &'static str }
    Queue { controller: &'static str, state: &'static str }
    Write { manager: String, verb: &'static str, result: &'static str }
    Verb { verb: &'static str }
    Call { verb: &'static str, code: String }
    Watch { watch: String }
    WatchEvent { watch: String, event: &'static str }
    Lease { lease: String }
    Transition { lease: String, to: &'static str }
}

/// From a millisecond to a minute.
fn durations() -> Histogram {
    let bounds = [
        0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0,
    ];
    Histogram::new(bounds)
}

impl Metrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            reconciles: Family::default(),
            reconcile_errors: Family::default(),
            reconcile_duration: Family::new_with_constructor(durations),
            late_echoes: Family::default(),
            queue: Family::default(),
            writes: Family::default(),
            calls: Family::default(),
            call_duration: Family::new_with_constructor(durations),
            watch_events: Family::default(),
            watch_listings: Family::default(),
            watch_failures: Family::default(),
            lease_transitions: Family::default(),
            leads: Family::default(),
        };
        metrics.show_work(registry);
        metrics.show_traffic(registry);
        metrics
    }

    fn show_work(&self, registry: &mut Registry) {
        let reconciles = self.reconciles.clone();
        registry.register("reconciles", "Reconciles by what they came to", reconciles);
        let errors = self.reconcile_errors.clone();
        registry.register("reconcile_errors", "Reconciles that failed", errors);
        registry.register_with_unit(
            "reconcile_duration",
            "How long reconciles took",
            Unit::Seconds,
            self.reconcile_duration.clone(),
        );
        let late = self.late_echoes.clone();
        registry.register(
            "late_echoes",
            "Keys looked at again before the watches showed what was written for them",
            late,
        );
        let queue = self.queue.clone();
        registry.register("queue_keys", "Keys in the queues of controllers", queue);
    }

    fn show_traffic(&self, registry: &mut Registry) {
        let writes = self.writes.clone();
        registry.register(
            "writes",
            "Writes of controllers by what came of them",
            writes,
        );
        let calls = self.calls.clone();
        registry.register("api_calls", "Requests to the API by verb and status", calls);
        registry.register_with_unit(
            "api_call_duration",
            "How long the API took to answer; for watches, to begin",
            Unit::Seconds,
            self.call_duration.clone(),
        );
        let events = self.watch_events.clone();
        registry.register("watch_events", "What watches told", events);
        let listings = self.watch_listings.clone();
        registry.register(
            "watch_listings",
            "Listings begun, also after a break",
            listings,
        );
        let failures = self.watch_failures.clone();
        registry.register(
            "watch_failures",
            "Failures of watches, each tried again",
            failures,
        );
        let transitions = self.lease_transitions.clone();
        registry.register(
            "lease_transitions",
            "How often this process began or ceased to lead",
            transitions,
        );
        registry.register("leads", "Whether this process leads", self.leads.clone());
    }

    /// Shows how many keys of a controller are in this state.
    pub(crate) fn show_queue(&self, controller: &'static str, state: &'static str, keys: usize) {
        let labels = Queue { controller, state };
        let keys = i64::try_from(keys).unwrap_or(i64::MAX);
        self.queue.get_or_create(&labels).set(keys);
    }
}
