//! What is counted of wakes.

use std::time::Duration;

use neap_kit::{key::Key, telemetry::Event};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::{Registry, Unit},
};

use super::{Cause, Outcome};

/// The numbers of wakes. No label holds a name of an object, so there are only so many.
#[derive(Debug)]
pub(super) struct Metrics {
    wakes: Family<Labels, Counter>,
    duration: Histogram,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    cause: &'static str,
    result: &'static str,
}

impl Metrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let bounds = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0];
        let metrics = Self {
            wakes: Family::default(),
            duration: Histogram::new(bounds),
        };
        let wakes = metrics.wakes.clone();
        registry.register("idle_wakes", "Wakes by what they came to", wakes);
        registry.register_with_unit(
            "idle_wake_write_duration",
            "From a wake's beginning until replicas were written",
            Unit::Seconds,
            metrics.duration.clone(),
        );
        metrics
    }
}

/// A wake is over.
#[derive(Debug)]
pub(super) struct Woke<'a> {
    pub(super) service: &'a Key,
    pub(super) cause: &'a Cause,
    pub(super) outcome: &'a Outcome,
    pub(super) took: Duration,
}

impl Event<Metrics> for Woke<'_> {
    fn log(&self) {
        let Self {
            service,
            cause,
            took,
            ..
        } = self;
        match self.outcome {
            Outcome::Woken { from, to } => {
                tracing::info!(%service, %cause, from, to, ?took, "woken");
            }
            Outcome::Failed(error) => {
                tracing::warn!(%service, %cause, error, "a wake failed");
            }
            Outcome::Awake { .. } | Outcome::Unknown => {
                tracing::debug!(%service, %cause, "already awake");
            }
        }
    }

    fn count(&self, metrics: &Metrics) {
        let result = match self.outcome {
            Outcome::Woken { .. } => "woken",
            Outcome::Awake { .. } => "awake",
            Outcome::Unknown => "unknown",
            Outcome::Failed(_) => "failed",
        };
        let cause = self.cause.word();
        let labels = Labels { cause, result };
        metrics.wakes.get_or_create(&labels).inc();
        if result == "woken" {
            metrics.duration.observe(self.took.as_secs_f64());
        }
    }
}
