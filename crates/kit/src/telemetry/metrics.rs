//! The metrics of this crate.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};

/// The metrics of this crate.
#[derive(Debug)]
pub struct Metrics {
    pub(super) reconciles: Family<ReconcileLabels, Counter>,
    pub(super) reconcile_errors: Family<ReconcileErrorLabels, Counter>,
    pub(super) reconcile_duration: Durations<ControllerLabels>,
    /// Registered as `late_echoes`, its name from before.
    pub(super) late_own_writes: Family<ControllerLabels, Counter>,
    queue: Family<QueueLabels, Gauge>,
    pub(super) writes: Family<WriteLabels, Counter>,
    pub(super) calls: Family<CallLabels, Counter>,
    pub(super) call_duration: Durations<VerbLabels>,
    pub(super) watch_events: Family<WatchEventLabels, Counter>,
    pub(super) watch_listings: Family<WatchLabels, Counter>,
    pub(super) watch_failures: Family<WatchLabels, Counter>,
    pub(super) lease_transitions: Family<TransitionLabels, Counter>,
    pub(super) leads: Family<LeaseLabels, Gauge>,
    pub(super) operation_step_duration: Durations<StepLabels>,
    pub(super) outbound_calls: Family<OutboundCallLabels, Counter>,
    pub(super) outbound_retries: Family<OutboundClientLabels, Counter>,
    pub(super) outbound_call_duration: Durations<OutboundClientLabels>,
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
    ControllerLabels { controller: &'static str }
    ReconcileLabels { controller: &'static str, result: &'static str }
    ReconcileErrorLabels { controller: &'static str, class: &'static str }
    QueueLabels { controller: &'static str, state: &'static str }
    WriteLabels { manager: String, verb: &'static str, result: &'static str }
    VerbLabels { verb: &'static str }
    CallLabels { verb: &'static str, code: String }
    WatchLabels { watch: String }
    WatchEventLabels { watch: String, event: &'static str }
    LeaseLabels { lease: String }
    TransitionLabels { lease: String, to: &'static str }
    StepLabels { work: &'static str, step: String, result: &'static str }
    OutboundClientLabels { client: &'static str }
    OutboundCallLabels { client: &'static str, code: String }
}

/// Buckets from a millisecond to a minute.
fn durations() -> Histogram {
    let bounds = [
        0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0,
    ];
    Histogram::new(bounds)
}

/// Buckets from a tenth of a second to an hour.
fn step_durations() -> Histogram {
    let bounds = [
        0.1, 1.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 2400.0, 3600.0,
    ];
    Histogram::new(bounds)
}

impl Metrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            reconciles: Family::default(),
            reconcile_errors: Family::default(),
            reconcile_duration: Family::new_with_constructor(durations),
            late_own_writes: Family::default(),
            queue: Family::default(),
            writes: Family::default(),
            calls: Family::default(),
            call_duration: Family::new_with_constructor(durations),
            watch_events: Family::default(),
            watch_listings: Family::default(),
            watch_failures: Family::default(),
            lease_transitions: Family::default(),
            leads: Family::default(),
            operation_step_duration: Family::new_with_constructor(step_durations),
            outbound_calls: Family::default(),
            outbound_retries: Family::default(),
            outbound_call_duration: Family::new_with_constructor(durations),
        };
        metrics.register_controllers(registry);
        metrics.register_requests(registry);
        metrics.register_outbound(registry);
        metrics
    }

    fn register_controllers(&self, registry: &mut Registry) {
        let reconciles = self.reconciles.clone();
        registry.register("reconciles", "Reconciles by result", reconciles);
        let errors = self.reconcile_errors.clone();
        registry.register("reconcile_errors", "Reconciles that failed", errors);
        registry.register_with_unit(
            "reconcile_duration",
            "Duration of reconciles",
            Unit::Seconds,
            self.reconcile_duration.clone(),
        );
        let late = self.late_own_writes.clone();
        registry.register(
            "late_echoes",
            "Keys reconciled again before the watches showed what was written for them",
            late,
        );
        let queue = self.queue.clone();
        registry.register("queue_keys", "Keys in the queues of controllers", queue);
        registry.register_with_unit(
            "operation_step_duration",
            "Time from the first attempt at a step of an operation to its end",
            Unit::Seconds,
            self.operation_step_duration.clone(),
        );
    }

    fn register_requests(&self, registry: &mut Registry) {
        let writes = self.writes.clone();
        registry.register("writes", "Writes of controllers by result", writes);
        let calls = self.calls.clone();
        registry.register("api_calls", "Requests to the API by verb and status", calls);
        registry.register_with_unit(
            "api_call_duration",
            "Time until the API responded; for watches, until they started",
            Unit::Seconds,
            self.call_duration.clone(),
        );
        let events = self.watch_events.clone();
        registry.register("watch_events", "Events received by watches", events);
        let listings = self.watch_listings.clone();
        registry.register(
            "watch_listings",
            "Listings started by watches, including those after a failure",
            listings,
        );
        let failures = self.watch_failures.clone();
        registry.register(
            "watch_failures",
            "Failures of watches, each followed by a retry",
            failures,
        );
        let transitions = self.lease_transitions.clone();
        registry.register(
            "lease_transitions",
            "How often this process became or ceased to be the leader",
            transitions,
        );
        registry.register("leads", "Whether this process leads", self.leads.clone());
    }

    fn register_outbound(&self, registry: &mut Registry) {
        let calls = self.outbound_calls.clone();
        registry.register(
            "outbound_calls",
            "Requests to systems outside the cluster by client and status",
            calls,
        );
        let retries = self.outbound_retries.clone();
        registry.register(
            "outbound_retries",
            "Requests to systems outside the cluster that repeat another",
            retries,
        );
        registry.register_with_unit(
            "outbound_call_duration",
            "Time until a system outside the cluster responded",
            Unit::Seconds,
            self.outbound_call_duration.clone(),
        );
    }

    /// Sets the number of keys of a controller in this state.
    pub(crate) fn set_queue_keys(
        &self,
        controller: &'static str,
        state: &'static str,
        keys: usize,
    ) {
        let labels = QueueLabels { controller, state };
        let keys = i64::try_from(keys).unwrap_or(i64::MAX);
        self.queue.get_or_create(&labels).set(keys);
    }
}
