//! The telemetry events of this crate.

use std::{fmt, time::Duration};

use super::{
    Metrics, TelemetryEvent,
    metrics::{
        CallLabels, ControllerLabels, LeaseLabels, ReconcileErrorLabels, ReconcileLabels,
        StepLabels, TransitionLabels, VerbLabels, WatchEventLabels, WatchLabels, WriteLabels,
    },
};
use crate::why::Code;

/// The result of a reconcile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReconcileResult {
    /// It succeeded.
    Succeeded,
    /// It returned an error.
    Failed,
    /// It exceeded its timeout.
    TimedOut,
    /// It panicked.
    Panicked,
    /// Leadership was lost while it ran; the next leader reconciles the key again.
    LostLeadership,
}

impl ReconcileResult {
    fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "well",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Panicked => "panicked",
            Self::LostLeadership => "lost_lead",
        }
    }

    fn is_error(self) -> bool {
        matches!(self, Self::Failed | Self::TimedOut | Self::Panicked)
    }
}

/// A reconcile ended.
#[derive(Debug)]
pub struct Reconciled<'a> {
    /// The name of the controller.
    pub controller: &'static str,
    /// The key.
    pub key: &'a dyn fmt::Debug,
    /// The result.
    pub result: ReconcileResult,
    /// The error, if it failed.
    pub error: Option<String>,
    /// The code of the error, if it has one.
    pub code: Option<Code>,
    /// The duration.
    pub took: Duration,
}

impl TelemetryEvent<Metrics> for Reconciled<'_> {
    fn log(&self) {
        let Self {
            controller,
            key,
            took,
            ..
        } = self;
        let error = self.error.as_deref().unwrap_or_default();
        let code = self.code.map_or("", |code| code.0);
        match self.result {
            ReconcileResult::Succeeded => tracing::debug!(controller, ?key, ?took, "reconciled"),
            ReconcileResult::LostLeadership => {
                tracing::debug!(controller, ?key, "leadership was lost during a reconcile");
            }
            ReconcileResult::Failed => {
                tracing::warn!(controller, ?key, error, code, "reconcile failed");
            }
            ReconcileResult::TimedOut => {
                tracing::warn!(controller, ?key, ?took, "reconcile timed out");
            }
            ReconcileResult::Panicked => {
                tracing::error!(controller, ?key, error, "reconcile panicked");
            }
        }
    }

    fn count(&self, metrics: &Metrics) {
        let (controller, result) = (self.controller, self.result.as_str());
        let labels = ReconcileLabels { controller, result };
        metrics.reconciles.get_or_create(&labels).inc();
        if self.result.is_error() {
            let labels = ReconcileErrorLabels {
                controller,
                class: result,
            };
            metrics.reconcile_errors.get_or_create(&labels).inc();
        }
        let durations = &metrics.reconcile_duration;
        let seconds = self.took.as_secs_f64();
        durations
            .get_or_create(&ControllerLabels { controller })
            .observe(seconds);
    }
}

/// The watches have not shown the writes for a key in time.
#[derive(Debug)]
pub struct OwnWritesLate<'a> {
    /// The name of the controller.
    pub controller: &'static str,
    /// The key.
    pub key: &'a dyn fmt::Debug,
}

impl TelemetryEvent<Metrics> for OwnWritesLate<'_> {
    fn log(&self) {
        let Self { controller, key } = self;
        tracing::warn!(
            controller,
            ?key,
            "the watches have not shown the writes for this key in time; it is reconciled without them"
        );
    }

    fn count(&self, metrics: &Metrics) {
        let controller = self.controller;
        let late = &metrics.late_own_writes;
        late.get_or_create(&ControllerLabels { controller }).inc();
    }
}

/// A write of a controller has ended, or was not started because this process does not lead.
#[derive(Debug)]
pub struct WriteFinished<'a> {
    /// The field manager.
    pub manager: &'a str,
    /// The operation.
    pub verb: &'static str,
    /// The kind of the object.
    pub kind: &'a str,
    /// The key of the object.
    pub key: &'a dyn fmt::Debug,
    /// The result, as a label value.
    pub result: &'static str,
}

impl TelemetryEvent<Metrics> for WriteFinished<'_> {
    /// Errors are logged by the caller, where they are handled.
    fn log(&self) {
        let Self {
            manager,
            verb,
            kind,
            key,
            result,
        } = self;
        tracing::debug!(manager, verb, kind, ?key, result, "write finished");
    }

    fn count(&self, metrics: &Metrics) {
        let labels = WriteLabels {
            manager: self.manager.to_owned(),
            verb: self.verb,
            result: self.result,
        };
        metrics.writes.get_or_create(&labels).inc();
    }
}

/// A request to the API has ended.
#[derive(Debug)]
pub struct ApiCallFinished {
    /// The verb of the request.
    pub verb: &'static str,
    /// The HTTP status; none if there was no response.
    pub code: Option<u16>,
    /// The duration.
    pub took: Duration,
}

impl TelemetryEvent<Metrics> for ApiCallFinished {
    fn log(&self) {
        tracing::trace!(verb = self.verb, code = self.code, took = ?self.took, "request finished");
    }

    fn count(&self, metrics: &Metrics) {
        let verb = self.verb;
        let code = self.code.map_or("none".to_owned(), |code| code.to_string());
        metrics
            .calls
            .get_or_create(&CallLabels { verb, code })
            .inc();
        let durations = &metrics.call_duration;
        durations
            .get_or_create(&VerbLabels { verb })
            .observe(self.took.as_secs_f64());
    }
}

/// A watch has received an event.
#[derive(Debug)]
pub struct WatchEventReceived<'a> {
    /// The address that is watched.
    pub watch: &'a str,
    /// The event, as a label value.
    pub event: &'static str,
}

impl WatchEventReceived<'_> {
    /// The start of a listing.
    pub const LISTING: &'static str = "listing";
}

impl TelemetryEvent<Metrics> for WatchEventReceived<'_> {
    fn log(&self) {
        if self.event == Self::LISTING {
            tracing::debug!(watch = self.watch, "a watch starts a listing");
        }
    }

    fn count(&self, metrics: &Metrics) {
        let watch = self.watch.to_owned();
        if self.event == Self::LISTING {
            metrics
                .watch_listings
                .get_or_create(&WatchLabels { watch })
                .inc();
        } else {
            let event = self.event;
            metrics
                .watch_events
                .get_or_create(&WatchEventLabels { watch, event })
                .inc();
        }
    }
}

/// A watch failed and is reopened.
#[derive(Debug)]
pub struct WatchFailed<'a> {
    /// The address that is watched.
    pub watch: &'a str,
    /// The error.
    pub error: String,
}

impl TelemetryEvent<Metrics> for WatchFailed<'_> {
    fn log(&self) {
        tracing::warn!(
            watch = self.watch,
            error = self.error,
            "a watch failed and is reopened"
        );
    }

    fn count(&self, metrics: &Metrics) {
        let watch = self.watch.to_owned();
        metrics
            .watch_failures
            .get_or_create(&WatchLabels { watch })
            .inc();
    }
}

/// This process became or ceased to be the leader.
#[derive(Debug)]
pub struct LeadershipChanged<'a> {
    /// The name of the Lease.
    pub lease: &'a str,
    /// Whether it leads now.
    pub leads: bool,
    /// The identity of the leader, if known.
    pub holder: Option<&'a str>,
}

impl TelemetryEvent<Metrics> for LeadershipChanged<'_> {
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
        let labels = LeaseLabels {
            lease: lease.clone(),
        };
        metrics.leads.get_or_create(&labels).set(self.leads.into());
        let labels = TransitionLabels { lease, to };
        metrics.lease_transitions.get_or_create(&labels).inc();
    }
}

/// A step of an operation has ended.
#[derive(Debug)]
pub struct StepEnded<'a> {
    /// The kind of work.
    pub work: &'static str,
    /// The name of the step.
    pub step: &'a str,
    /// The operation.
    pub operation: &'a str,
    /// The result, as a label value.
    pub result: &'static str,
    /// The number of attempts.
    pub attempts: u32,
    /// Why it failed.
    pub cause: Option<&'a str>,
    /// The time from its first attempt to its end.
    pub took: Duration,
}

impl TelemetryEvent<Metrics> for StepEnded<'_> {
    fn log(&self) {
        let Self {
            work,
            step,
            operation,
            result,
            attempts,
            took,
            ..
        } = self;
        let cause = self.cause.unwrap_or_default();
        tracing::info!(
            work,
            step,
            operation,
            result,
            attempts,
            ?took,
            cause,
            "step ended"
        );
    }

    fn count(&self, metrics: &Metrics) {
        let (work, result) = (self.work, self.result);
        let step = self.step.to_owned();
        let labels = StepLabels { work, step, result };
        let durations = &metrics.operation_step_duration;
        durations
            .get_or_create(&labels)
            .observe(self.took.as_secs_f64());
    }
}
