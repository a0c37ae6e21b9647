//! What is counted of wakes.

use std::time::Duration;

use kube::ResourceExt;
use neap_kit::{
    key::Key,
    telemetry::{Event, Meter, Telemetry},
};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};

use super::{Cause, Outcome};
use crate::api::ElastiService;

/// The numbers of wakes. No label of ours holds a name of an object, so there are only so many.
#[derive(Debug)]
pub(super) struct Metrics {
    wakes: Family<Labels, Counter>,
    duration: Histogram,
    /// As KubeElasti shows them: with names, which go with what they name.
    scaled: Family<Scaled, Gauge>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    cause: &'static str,
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Scaled {
    service_name: String,
    namespace: String,
    target: String,
    error: &'static str,
}

/// A meter of wakes.
pub(super) fn meter(telemetry: &Telemetry) -> Meter<Metrics> {
    let scaled = telemetry.compatible(|registry| {
        let scaled: Family<Scaled, Gauge> = Family::default();
        let help = "Wakes that resolvers asked for";
        registry.register("elasti_operator_scale_counter", help, scaled.clone());
        scaled
    });
    telemetry.meter(|registry| Metrics::register(registry, scaled))
}

impl Scaled {
    fn of(service: &ElastiService, failed: bool) -> Self {
        let target = &service.spec.scale_target_ref;
        Self {
            service_name: service.spec.service.clone(),
            namespace: service.namespace().unwrap_or_default(),
            target: format!("{}-{}", target.kind, target.name),
            error: if failed { "failed" } else { "success" },
        }
    }
}

impl Metrics {
    fn register(registry: &mut Registry, scaled: Family<Scaled, Gauge>) -> Self {
        let bounds = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0];
        let metrics = Self {
            wakes: Family::default(),
            duration: Histogram::new(bounds),
            scaled,
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
    pub(super) service: &'a ElastiService,
    pub(super) cause: &'a Cause,
    pub(super) outcome: &'a Outcome,
    pub(super) took: Duration,
}

impl Event<Metrics> for Woke<'_> {
    fn log(&self) {
        let Self { cause, took, .. } = self;
        let service = Key::of(self.service);
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
        if *self.cause == Cause::Request {
            let scaled = Scaled::of(self.service, result == "failed");
            metrics.scaled.get_or_create(&scaled).inc();
        }
    }
}

/// An ElastiService is no longer there, or no longer as it was.
#[derive(Debug)]
pub(super) struct Forgot<'a>(pub(super) &'a ElastiService);

impl Event<Metrics> for Forgot<'_> {
    fn log(&self) {}

    fn count(&self, metrics: &Metrics) {
        for failed in [false, true] {
            metrics.scaled.remove(&Scaled::of(self.0, failed));
        }
    }
}
