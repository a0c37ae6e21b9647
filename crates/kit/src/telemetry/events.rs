//! What happens in this crate.

use std::{fmt, time::Duration};

use super::{
    Event, Metrics,
    metrics::{
        Call, Controller, Lease, Reconcile, ReconcileError, Transition, Verb, Watch, WatchEvent,
        Write,
    },
};

/// What a reconcile came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Result {
    /// It did not fail.
    Well,
    /// It said that it failed.
    Failed,
    /// It took too long.
    TimedOut,
    /// It panicked.
    Panicked,
    /// The lead was lost on the way; it is begun anew by whoever leads.
    LostLead,
}

impl Result {
    fn as_str(self) -> &'static str {
        match self {
            Self::Well => "well",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Panicked => "panicked",
            Self::LostLead => "lost_lead",
        }
    }

    fn is_error(self) -> bool {
        matches!(self, Self::Failed | Self::TimedOut | Self::Panicked)
    }
}

/// A reconcile ended.
#[derive(Debug)]
pub struct Reconciled<'a> {
    /// Of which controller.
    pub controller: &'static str,
    /// For which key.
    pub key: &'a dyn fmt::Debug,
    /// How.
    pub result: Result,
    /// Why, if it failed.
    pub error: Option<String>,
    /// After how long.
    pub took: Duration,
}

impl Event<Metrics> for Reconciled<'_> {
    fn log(&self) {
        let Self {
            controller,
            key,
            took,
            ..
        } = self;
        let error = self.error.as_deref().unwrap_or_default();
        match self.result {
            Result::Well => tracing::debug!(controller, ?key, ?took, "reconciled"),
            Result::LostLead => tracing::debug!(controller, ?key, "the lead was lost on the way"),
            Result::Failed => tracing::warn!(controller, ?key, error, "reconcile failed"),
            Result::TimedOut => tracing::warn!(controller, ?key, ?took, "reconcile took too long"),
            Result::Panicked => tracing::error!(controller, ?key, error, "reconcile panicked"),
        }
    }

    fn count(&self, metrics: &Metrics) {
        let (controller, result) = (self.controller, self.result.as_str());
        let labels = Reconcile { controller, result };
        metrics.reconciles.get_or_create(&labels).inc();
        if self.result.is_error() {
            let labels = ReconcileError {
                controller,
                class: result,
            };
            metrics.reconcile_errors.get_or_create(&labels).inc();
        }
        let durations = &metrics.reconcile_duration;
        let seconds = self.took.as_secs_f64();
        durations
            .get_or_create(&Controller { controller })
            .observe(seconds);
    }
}

/// The watches have not shown in time what was written for a key.
#[derive(Debug)]
pub struct EchoLate<'a> {
    /// Of which controller.
    pub controller: &'static str,
    /// Which key.
    pub key: &'a dyn fmt::Debug,
}

impl Event<Metrics> for EchoLate<'_> {
    fn log(&self) {
        let Self { controller, key } = self;
        tracing::warn!(
            controller,
            ?key,
            "the watches are late with what was written here; going on without"
        );
    }

    fn count(&self, metrics: &Metrics) {
        let controller = self.controller;
        let late = &metrics.late_echoes;
        late.get_or_create(&Controller { controller }).inc();
    }
}

/// A write of a controller was answered, or not begun.
#[derive(Debug)]
pub struct Wrote<'a> {
    /// Who wrote.
    pub manager: &'a str,
    /// What was done.
    pub verb: &'static str,
    /// To a thing of which kind.
    pub kind: &'a str,
    /// Which one.
    pub key: &'a dyn fmt::Debug,
    /// What came of it, in one word.
    pub result: &'static str,
}

impl Event<Metrics> for Wrote<'_> {
    /// Who asked for the write logs why it failed, once, where that is handled.
    fn log(&self) {
        let Self {
            manager,
            verb,
            kind,
            key,
            result,
        } = self;
        tracing::debug!(manager, verb, kind, ?key, result, "wrote");
    }

    fn count(&self, metrics: &Metrics) {
        let labels = Write {
            manager: self.manager.to_owned(),
            verb: self.verb,
            result: self.result,
        };
        metrics.writes.get_or_create(&labels).inc();
    }
}

/// The API answered a request, or the request failed.
#[derive(Debug)]
pub struct Called {
    /// What was asked for.
    pub verb: &'static str,
    /// The status of the answer; nothing if there was none.
    pub code: Option<u16>,
    /// After how long.
    pub took: Duration,
}

impl Event<Metrics> for Called {
    fn log(&self) {
        tracing::trace!(verb = self.verb, code = self.code, took = ?self.took, "called");
    }

    fn count(&self, metrics: &Metrics) {
        let verb = self.verb;
        let code = self.code.map_or("none".to_owned(), |code| code.to_string());
        metrics.calls.get_or_create(&Call { verb, code }).inc();
        let durations = &metrics.call_duration;
        durations
            .get_or_create(&Verb { verb })
            .observe(self.took.as_secs_f64());
    }
}

/// A watch told something.
#[derive(Debug)]
pub struct WatchTold<'a> {
    /// The address that is watched.
    pub watch: &'a str,
    /// What it told, in one word.
    pub event: &'static str,
}

impl WatchTold<'_> {
    /// The word for the beginning of a listing.
    pub const LISTING: &'static str = "listing";
}

impl Event<Metrics> for WatchTold<'_> {
    fn log(&self) {
        if self.event == Self::LISTING {
            tracing::debug!(watch = self.watch, "a watch lists");
        }
    }

    fn count(&self, metrics: &Metrics) {
        let watch = self.watch.to_owned();
        if self.event == Self::LISTING {
            metrics.watch_listings.get_or_create(&Watch { watch }).inc();
        } else {
            let event = self.event;
            metrics
                .watch_events
                .get_or_create(&WatchEvent { watch, event })
                .inc();
        }
    }
}

/// A watch failed and is tried again.
#[derive(Debug)]
pub struct WatchBroke<'a> {
    /// The address that is watched.
    pub watch: &'a str,
    /// Why.
    pub error: String,
}

impl Event<Metrics> for WatchBroke<'_> {
    fn log(&self) {
        tracing::warn!(
            watch = self.watch,
            error = self.error,
            "a watch is tried again"
        );
    }

    fn count(&self, metrics: &Metrics) {
        let watch = self.watch.to_owned();
        metrics.watch_failures.get_or_create(&Watch { watch }).inc();
    }
}

/// This process began or ceased to lead.
#[derive(Debug)]
pub struct LeadChanged<'a> {
    /// By which Lease.
    pub lease: &'a str,
    /// Whether it leads now.
    pub leads: bool,
    /// Who does, as far as is known.
    pub holder: Option<&'a str>,
}

impl Event<Metrics> for LeadChanged<'_> {
    fn log(&self) {
        let Self { lease, holder, .. } = self;
        if self.leads {
            tracing::info!(lease, "this process leads");
        } else {
            tracing::info!(lease, holder, "this process does not lead");
        }
    }

    fn count(&self, metrics: &Metrics) {
        let lease = self.lease.to_owned();
        let to = if self.leads { "leading" } else { "following" };
        let labels = Lease {
            lease: lease.clone(),
        };
        metrics.leads.get_or_create(&labels).set(self.leads.into());
        let labels = Transition { lease, to };
        metrics.lease_transitions.get_or_create(&labels).inc();
    }
}
