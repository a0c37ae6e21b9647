//! What everybody in a run shares.

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
    judge::{self, Violation, secrets},
    outside::{Errand, Ledger},
    own::Own,
    plan::{Action, Point},
    seam::{Call, Director, Line, Stream},
    trace::{Trace, What},
};

/// No run needs so many requests; whoever asks more is in a loop.
const MOST: usize = 20_000;

#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) clock: Clock,
    pub(crate) open: Open,
    pub(crate) director: Mutex<Director>,
    pub(crate) streams: Mutex<Vec<Stream>>,
    pub(crate) trace: Mutex<Trace>,
    pub(crate) ledger: Mutex<Ledger>,
    /// Requests to systems outside that are on their way.
    pub(crate) travelling: Mutex<JoinSet<()>>,
    /// What each life of each actor wrote.
    pub(crate) lives: Mutex<Vec<Arc<Own>>>,
}

/// Until when faults that have begun go on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Open(Arc<AtomicU64>);

impl Open {
    pub(crate) fn until(&self, moment: Uptime) {
        self.0
            .fetch_max(moment.as_millis() as u64, Ordering::Relaxed);
    }

    pub(crate) fn is_over(&self, now: Uptime) -> bool {
        Duration::from_millis(self.0.load(Ordering::Relaxed)) <= now
    }
}

impl Scene {
    pub(crate) fn new(clock: Clock, director: Director, ledger: Ledger) -> Self {
        Self {
            clock,
            open: Open::default(),
            director: Mutex::new(director),
            streams: Mutex::default(),
            trace: Mutex::default(),
            ledger: Mutex::new(ledger),
            travelling: Mutex::default(),
            lives: Mutex::default(),
        }
    }

    pub(crate) fn strike(&self, point: Point, actor: &str, call: &Call) -> Vec<Action> {
        let actions = self.director.lock().strike(point, actor, call);
        for action in &actions {
            let what = What::Struck(action.word(point));
            self.trace.lock().add(self.clock, actor, call, what);
        }
        actions
    }

    /// Makes somebody wait, and everybody know that the fault still goes on.
    pub(crate) async fn hold(&self, time: Duration) {
        self.open.until(self.clock.uptime() + time);
        self.clock.sleep(time).await;
    }

    /// Nothing is at rest before somebody had time to try again.
    pub(crate) fn expect_another_try(&self, within: Duration) {
        self.open.until(self.clock.uptime() + within);
    }

    pub(crate) fn asked(&self, line: &Line, parts: &Parts, call: &Call, body: &[u8]) {
        let mut trace = self.trace.lock();
        trace.hash(parts.uri.path().as_bytes());
        trace.hash(parts.uri.query().unwrap_or_default().as_bytes());
        trace.hash(body);
        trace.add(self.clock, line.actor(), call, What::Asked);
    }

    /// Somebody outside is asked.
    pub(crate) fn sent(&self, line: &Line, call: &Call, errand: &Errand) {
        let mut trace = self.trace.lock();
        trace.hash(errand.key.as_bytes());
        trace.hash(&errand.fence.to_le_bytes());
        trace.add(self.clock, line.actor(), call, What::Asked);
    }

    pub(crate) fn answered(&self, line: &Line, call: &Call, code: StatusCode) {
        let what = What::Answered(code.as_u16());
        let mut trace = self.trace.lock();
        trace.add(self.clock, line.actor(), call, what);
    }

    pub(crate) fn told(&self, line: &Line, event: &Call, change: &str) {
        let what = What::Told(change.to_owned());
        let mut trace = self.trace.lock();
        trace.add(self.clock, line.actor(), event, what);
    }

    /// What was seen to be wrong while it was played, whatever it came to. `history` is what was
    /// written meanwhile.
    pub(crate) fn noted(&self, history: &[Arc<Event>]) -> Vec<Violation> {
        let mut violations = Vec::new();
        for own in self.lives.lock().iter() {
            violations.extend(own.early());
            violations.extend(secrets::told("a metric", &own.numbers()));
        }
        // What was written this very moment may not have been told yet.
        let now = self.clock.now();
        let long_ago = history.iter().rfind(|event| event.at < now);
        let told = long_ago.map_or(0, |event| event.revision());
        violations.extend(judge::streams(&self.streams.lock(), history, told));
        violations
    }

    /// Whether somebody asks and asks.
    pub(crate) fn is_storm(&self) -> bool {
        self.trace.lock().len() > MOST
    }
}
