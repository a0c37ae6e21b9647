//! Telemetry: log lines, and metrics for Prometheus.
//!
//! Each event is one value, a [`TelemetryEvent`], that writes both the log line and the metric, so that
//! the two cannot drift apart. There are no globals: code that counts holds a [`Meter`], and all meters
//! of a [`Telemetry`] are served together at `/metrics`. Metric names begin with `neaptide_`, units are
//! base units, and labels never contain names of objects. Only metrics that replace those of another
//! product keep its names and labels: [`Telemetry::compatible`].

mod calls;
mod chunked_text;
mod events;
mod export;
mod log;
mod metrics;
mod outbound;
#[cfg(test)]
mod tests;
mod trace;

use std::{fmt, sync::Arc};

use parking_lot::Mutex;
use prometheus_client::{
    encoding::text::{encode_eof, encode_registry},
    registry::Registry,
};

pub use self::{
    calls::{CountCalls, Counted},
    chunked_text::ChunkedText,
    events::{
        ApiCallFinished, LeadershipChanged, OwnWritesLate, ReconcileResult, Reconciled,
        StepEnded, WatchEventReceived, WatchFailed, WriteFinished,
    },
    export::Exports,
    log::{Format, SubscribeError, subscribe},
    metrics::Metrics,
    outbound::OutboundCallFinished,
    trace::continue_trace,
};

/// An event, emitted as a log line and as a metric of `M`.
pub trait TelemetryEvent<M> {
    /// Writes the log line.
    fn log(&self);

    /// Updates the metrics.
    fn count(&self, metrics: &M);
}

/// Emits events to the log and to metrics. Cheap to clone.
#[derive(Debug)]
pub struct Meter<M>(Arc<M>);

impl<M> Meter<M> {
    /// Logs and counts `event`.
    pub fn emit(&self, event: &impl TelemetryEvent<M>) {
        event.log();
        event.count(&self.0);
    }
}

impl<M> Clone for Meter<M> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// The metrics of a process. Cheap to clone.
#[derive(Clone)]
pub struct Telemetry {
    registry: Arc<Mutex<Registry>>,
    compatible: Arc<Mutex<Registry>>,
    kit: Meter<Metrics>,
}

impl Default for Telemetry {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("neaptide");
        let kit = Meter(Arc::new(Metrics::register(&mut registry)));
        Self {
            registry: Arc::new(Mutex::new(registry)),
            compatible: Arc::default(),
            kit,
        }
    }
}

impl Telemetry {
    /// A meter for the metrics that `register` adds.
    pub fn meter<M>(&self, register: impl FnOnce(&mut Registry) -> M) -> Meter<M> {
        Meter(Arc::new(register(&mut self.registry.lock())))
    }

    /// Adds metrics under exactly the names that `register` gives them, without a prefix: for products
    /// that replace another one whose metrics are in use. They are written after all others.
    pub fn compatible<M>(&self, register: impl FnOnce(&mut Registry) -> M) -> M {
        register(&mut self.compatible.lock())
    }

    /// Logs and counts an event of this crate.
    pub fn emit(&self, event: &impl TelemetryEvent<Metrics>) {
        self.kit.emit(event);
    }

    /// The metrics of this crate, for gauges that are set when metrics are read.
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.kit.0
    }

    /// Writes all metrics in the format of Prometheus.
    pub fn write(&self, out: &mut impl fmt::Write) -> fmt::Result {
        for registry in [&self.registry, &self.compatible] {
            encode_registry(out, &registry.lock())?;
        }
        encode_eof(out)
    }

    /// All metrics as one text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write(&mut text);
        text
    }
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Telemetry").finish_non_exhaustive()
    }
}
