//! Metrics of wakes.

use std::time::Duration;

use kube::ResourceExt;
use neap_kit::{
    key::Key,
    telemetry::{Meter, Telemetry, TelemetryEvent},
};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};

use super::{WakeCause, WakeOutcome};
use crate::api::ElastiService;

/// The metrics. Ours have no names of objects as labels, so their number is bounded.
#[derive(Debug)]
pub(super) struct WakeMetrics {
    wakes: Family<WakeMetricLabels, Counter>,
    duration: Histogram,
    /// A metric of KubeElasti, with names of objects as labels; it is removed with the object.
    scaled: Family<ScaleLabels, Gauge>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WakeMetricLabels {
    cause: &'static str,
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ScaleLabels {
    service_name: String,
    namespace: String,
    target: String,
    error: &'static str,
}

/// The meter of wakes.
pub(super) fn meter(telemetry: &Telemetry) -> Meter<WakeMetrics> {
    let scaled = telemetry.compatible(|registry| {
        let scaled: Family<ScaleLabels, Gauge> = Family::default();
        let help = "Wakes that resolvers requested";
        registry.register("elasti_operator_scale_counter", help, scaled.clone());
        scaled
    });
    telemetry.meter(|registry| WakeMetrics::register(registry, scaled))
}

impl ScaleLabels {
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

impl WakeMetrics {
    fn register(registry: &mut Registry, scaled: Family<ScaleLabels, Gauge>) -> Self {
        let bounds = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0];
        let metrics = Self {
            wakes: Family::default(),
            duration: Histogram::new(bounds),
            scaled,
        };
        let wakes = metrics.wakes.clone();
        registry.register("idle_wakes", "Wakes by cause and result", wakes);
        registry.register_with_unit(
            "idle_wake_write_duration",
            "From the start of a wake until replicas were written",
            Unit::Seconds,
            metrics.duration.clone(),
        );
        metrics
    }
}

/// A wake finished.
#[derive(Debug)]
pub(super) struct WakeFinished<'a> {
    pub(super) service: &'a ElastiService,
    pub(super) cause: &'a WakeCause,
    pub(super) outcome: &'a WakeOutcome,
    pub(super) took: Duration,
}

impl TelemetryEvent<WakeMetrics> for WakeFinished<'_> {
    fn log(&self) {
        let Self { cause, took, .. } = self;
        let service = Key::of(self.service);
        match self.outcome {
            WakeOutcome::Woken { from, to } => {
                tracing::info!(%service, %cause, from, to, ?took, "woken");
            }
            WakeOutcome::Failed(error) => {
                tracing::warn!(%service, %cause, error, "a wake failed");
            }
            WakeOutcome::Awake { .. } | WakeOutcome::Unknown => {
                tracing::debug!(%service, %cause, "already awake");
            }
        }
    }

    fn count(&self, metrics: &WakeMetrics) {
        let result = match self.outcome {
            WakeOutcome::Woken { .. } => "woken",
            WakeOutcome::Awake { .. } => "awake",
            WakeOutcome::Unknown => "unknown",
            WakeOutcome::Failed(_) => "failed",
        };
        let cause = self.cause.label();
        let labels = WakeMetricLabels { cause, result };
        metrics.wakes.get_or_create(&labels).inc();
        if result == "woken" {
            metrics.duration.observe(self.took.as_secs_f64());
        }
        if *self.cause == WakeCause::Request {
            let scaled = ScaleLabels::of(self.service, result == "failed");
            metrics.scaled.get_or_create(&scaled).inc();
        }
    }
}

/// An ElastiService was deleted or its spec changed, so its labels are no longer valid.
#[derive(Debug)]
pub(super) struct ServiceRemoved<'a>(pub(super) &'a ElastiService);

impl TelemetryEvent<WakeMetrics> for ServiceRemoved<'_> {
    fn log(&self) {}

    fn count(&self, metrics: &WakeMetrics) {
        for failed in [false, true] {
            metrics.scaled.remove(&ScaleLabels::of(self.0, failed));
        }
    }
}
