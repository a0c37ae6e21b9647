//! What a process tells of itself: log lines, and numbers for Prometheus.
//!
//! Whatever happens is one value, an [`Event`], and from it come both the log line and the metric,
//! so that the two cannot drift. There are no globals: who counts holds a [`Meter`], and all meters
//! of a [`Telemetry`] are shown together at `/metrics`. Names begin with `neaptide_`, units are
//! base units, and labels never hold names of objects. Only what somebody else has named, and others
//! already look at, keeps its name and its labels: [`Telemetry::compatible`].

mod calls;
mod events;
mod export;
mod log;
mod metrics;
mod pages;
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
    events::{Called, EchoLate, LeadChanged, Reconciled, Result, WatchBroke, WatchTold, Wrote},
    export::Exports,
    log::{Format, SubscribeError, subscribe},
    metrics::Metrics,
    pages::Pages,
    trace::continue_trace,
};

/// Something that happened, told once: as a log line and as a number of `M`.
pub trait Event<M> {
    /// Writes the line.
    fn log(&self);

    /// Counts it.
    fn count(&self, metrics: &M);
}

/// Tells of events. Cheap to copy.
#[derive(Debug)]
pub struct Meter<M>(Arc<M>);

impl<M> Meter<M> {
    /// Tells of `event`.
    pub fn emit(&self, event: &impl Event<M>) {
        event.log();
        event.count(&self.0);
    }
}

impl<M> Clone for Meter<M> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// The numbers of a process. Cheap to copy.
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
    /// A meter for numbers of somebody's own, which `register` adds to what is shown.
    pub fn meter<M>(&self, register: impl FnOnce(&mut Registry) -> M) -> Meter<M> {
        Meter(Arc::new(register(&mut self.registry.lock())))
    }

    /// Adds numbers under the very names that `register` gives them, for those who took over from
    /// somebody whose users look at them. They are shown after all others.
    pub fn compatible<M>(&self, register: impl FnOnce(&mut Registry) -> M) -> M {
        register(&mut self.compatible.lock())
    }

    /// Tells of an event of this crate.
    pub fn emit(&self, event: &impl Event<Metrics>) {
        self.kit.emit(event);
    }

    /// The numbers that are not counted but looked up when they are shown.
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.kit.0
    }

    /// Writes all numbers, as Prometheus reads them.
    pub fn write(&self, out: &mut impl fmt::Write) -> fmt::Result {
        for registry in [&self.registry, &self.compatible] {
            encode_registry(out, &registry.lock())?;
        }
        encode_eof(out)
    }

    /// The same as one text.
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
