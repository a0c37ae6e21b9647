//! State shared by all parts of a run.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use http::{StatusCode, request::Parts};
use neap_kit::clock::{Clock, Uptime};
use neap_pocket::store::Event;
use parking_lot::Mutex;
use tokio::task::JoinSet;

use crate::{
    external::{ExternalCall, Ledger, Services},
    fault_injector::{Call, Connection, PlanMatcher, WatchRecord},
    judge::{self, Violation, secrets},
    own_writes::OwnWrites,
    plan::{Action, Point},
    trace::{EntryKind, Trace},
};

/// Trace entries after which a run counts as a request loop; no run needs as many.
const MAX_TRACE_ENTRIES: usize = 20_000;

#[derive(Debug)]
pub(crate) struct RunState {
    pub(crate) clock: Clock,
    pub(crate) active_faults: ActiveFaults,
    pub(crate) matcher: Mutex<PlanMatcher>,
    pub(crate) watches: Mutex<Vec<WatchRecord>>,
    pub(crate) trace: Mutex<Trace>,
    pub(crate) ledger: Mutex<Ledger>,
    /// The systems that processes call over HTTP.
    pub(crate) services: Services,
    /// External calls in flight.
    pub(crate) in_flight: Mutex<JoinSet<()>>,
    /// The writes of each process lifetime.
    pub(crate) own_writes: Mutex<Vec<Arc<OwnWrites>>>,
}

/// The time until which active faults last.
#[derive(Debug, Clone, Default)]
pub(crate) struct ActiveFaults(Arc<AtomicU64>);

impl ActiveFaults {
    pub(crate) fn until(&self, moment: Uptime) {
        self.0
            .fetch_max(moment.as_millis() as u64, Ordering::Relaxed);
    }

    pub(crate) fn is_over(&self, now: Uptime) -> bool {
        Duration::from_millis(self.0.load(Ordering::Relaxed)) <= now
    }
}

impl RunState {
    pub(crate) fn new(
        clock: Clock,
        matcher: PlanMatcher,
        ledger: Ledger,
        services: Services,
    ) -> Self {
        Self {
            clock,
            active_faults: ActiveFaults::default(),
            matcher: Mutex::new(matcher),
            watches: Mutex::default(),
            trace: Mutex::default(),
            ledger: Mutex::new(ledger),
            services,
            in_flight: Mutex::default(),
            own_writes: Mutex::default(),
        }
    }

    pub(crate) fn strike(&self, point: Point, actor: &str, call: &Call) -> Vec<Action> {
        let actions = self.matcher.lock().strike(point, actor, call);
        for action in &actions {
            let what = EntryKind::Fault(action.word(point));
            self.trace.lock().add(self.clock, actor, call, what);
        }
        actions
    }

    /// Sleeps, and keeps the run from counting as quiet meanwhile.
    pub(crate) async fn hold(&self, time: Duration) {
        self.active_faults.until(self.clock.uptime() + time);
        self.clock.sleep(time).await;
    }

    /// Keeps the run from counting as quiet before the process had time to retry.
    pub(crate) fn expect_retry(&self, within: Duration) {
        self.active_faults.until(self.clock.uptime() + within);
    }

    pub(crate) fn record_request(
        &self,
        connection: &Connection,
        parts: &Parts,
        call: &Call,
        body: &[u8],
    ) {
        let mut trace = self.trace.lock();
        trace.hash(parts.uri.path().as_bytes());
        trace.hash(parts.uri.query().unwrap_or_default().as_bytes());
        trace.hash(body);
        trace.add(self.clock, connection.actor(), call, EntryKind::Request);
    }

    /// Records an external call.
    pub(crate) fn record_external_call(
        &self,
        connection: &Connection,
        call: &Call,
        external_call: &ExternalCall,
    ) {
        let mut trace = self.trace.lock();
        trace.hash(external_call.key.as_bytes());
        trace.hash(&external_call.fence.to_le_bytes());
        trace.add(self.clock, connection.actor(), call, EntryKind::Request);
    }

    /// Records a call over HTTP.
    pub(crate) fn record_http_call(&self, connection: &Connection, call: &Call, query: &str) {
        let mut trace = self.trace.lock();
        trace.hash(query.as_bytes());
        trace.add(self.clock, connection.actor(), call, EntryKind::Request);
    }

    pub(crate) fn record_response(&self, connection: &Connection, call: &Call, code: StatusCode) {
        let what = EntryKind::Response(code.as_u16());
        let mut trace = self.trace.lock();
        trace.add(self.clock, connection.actor(), call, what);
    }

    pub(crate) fn record_event(&self, connection: &Connection, event: &Call, change: &str) {
        let what = EntryKind::WatchEvent(change.to_owned());
        let mut trace = self.trace.lock();
        trace.add(self.clock, connection.actor(), event, what);
    }

    /// Violations observed during the run, whatever the final state. `history` holds the writes of
    /// the run.
    pub(crate) fn recorded_violations(&self, history: &[Arc<Event>]) -> Vec<Violation> {
        let mut violations = Vec::new();
        for writes in self.own_writes.lock().iter() {
            violations.extend(writes.violations());
            violations.extend(secrets::leaks("a metric", &writes.metrics_lines()));
        }
        // Events of writes at the current instant may not have been delivered yet.
        let now = self.clock.now();
        let long_ago = history.iter().rfind(|event| event.at < now);
        let told = long_ago.map_or(0, |event| event.revision());
        violations.extend(judge::judge_watches(&self.watches.lock(), history, told));
        violations
    }

    /// Whether a process is in a request loop.
    pub(crate) fn is_request_loop(&self) -> bool {
        self.trace.lock().len() > MAX_TRACE_ENTRIES
    }
}
