//! How many payloads are in which phase, and how long verdicts take.

use std::fmt;

use jiff::Timestamp;
use neap_kit::{
    context::Context,
    telemetry::{Meter, TelemetryEvent},
    watch::Cache,
};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric},
    metrics::{MetricType, family::Family, gauge::ConstGauge, histogram::Histogram},
    registry::{Registry, Unit},
};

use super::Phase;
use crate::api::{ReleasePayload, conditions};

/// Counts what the controller does.
#[derive(Debug)]
pub(super) struct PayloadMeter(Meter<PayloadMetrics>);

#[derive(Debug)]
pub(super) struct PayloadMetrics {
    time_to_verdict: Family<PhaseLabel, Histogram, fn() -> Histogram>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PhaseLabel {
    phase: &'static str,
}

/// Buckets from a minute to two days.
fn verdict_durations() -> Histogram {
    Histogram::new([
        60.0, 300.0, 900.0, 1800.0, 3600.0, 7200.0, 14400.0, 28800.0, 86400.0, 172_800.0,
    ])
}

impl PayloadMeter {
    pub(super) fn register(context: &Context, payloads: Cache<ReleasePayload>) -> Self {
        let telemetry = context.watches.process().telemetry();
        telemetry.meter(|registry| registry.register_collector(Box::new(Phases { payloads })));
        Self(telemetry.meter(PayloadMetrics::register))
    }

    pub(super) fn emit(&self, verdict: &Verdict) {
        self.0.emit(verdict);
    }
}

impl PayloadMetrics {
    fn register(registry: &mut Registry) -> Self {
        let new: fn() -> Histogram = verdict_durations;
        let time_to_verdict = Family::new_with_constructor(new);
        registry.register_with_unit(
            "release_time_to_verdict",
            "Time from the creation of a payload to its first verdict",
            Unit::Seconds,
            time_to_verdict.clone(),
        );
        Self { time_to_verdict }
    }
}

/// A status was written.
#[derive(Debug)]
pub(super) struct Verdict {
    phase: Phase,
    seconds: Option<f64>,
}

impl Verdict {
    pub(super) fn of(before: &ReleasePayload, phase: Phase, now: Timestamp) -> Self {
        let is_first = phase.is_final() && !Phase::of_payload(before).is_final();
        let created = before.metadata.creation_timestamp.as_ref();
        let age = created.map(|created| now.duration_since(created.0).as_secs_f64().max(0.0));
        Self {
            phase,
            seconds: age.filter(|_| is_first),
        }
    }
}

impl TelemetryEvent<PayloadMetrics> for Verdict {
    fn log(&self) {
        if let Some(seconds) = self.seconds {
            tracing::info!(phase = %self.phase, seconds, "a payload has a verdict");
        }
    }

    fn count(&self, metrics: &PayloadMetrics) {
        if let Some(seconds) = self.seconds {
            let phase = self.phase.as_str();
            metrics
                .time_to_verdict
                .get_or_create(&PhaseLabel { phase })
                .observe(seconds);
        }
    }
}

/// Collects on each scrape: nothing has to be stored, and deleted payloads are not counted.
#[derive(Debug)]
struct Phases {
    payloads: Cache<ReleasePayload>,
}

impl Collector for Phases {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let payloads = self.payloads.list("");
        let help = "ReleasePayloads by phase";
        let mut metric =
            encoder.encode_descriptor("release_payloads", help, None, MetricType::Gauge)?;
        for phase in [
            Phase::Pending,
            Phase::Ready,
            Phase::Accepted,
            Phase::Rejected,
            Phase::Failed,
        ] {
            let count = payloads
                .iter()
                .filter(|it| Phase::of_payload(it) == phase)
                .count();
            let labels = [("phase", phase.as_str())];
            ConstGauge::new(count as i64).encode(metric.encode_family(&labels)?)?;
        }
        let stuck = payloads.iter().filter(|it| is_stuck(it)).count();
        let help = "ReleasePayloads that have had no verdict for longer than their deadline";
        let metric =
            encoder.encode_descriptor("release_payloads_stuck", help, None, MetricType::Gauge)?;
        ConstGauge::new(stuck as i64).encode(metric)?;
        let unproved = payloads.iter().filter(|it| is_unproved(it)).count();
        let help = "ReleasePayloads whose runs cannot be proved because their key is missing";
        let name = "release_payloads_unproved";
        let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(unproved as i64).encode(metric)
    }
}

fn is_unproved(payload: &ReleasePayload) -> bool {
    let status = payload.status.as_ref();
    let record = status.and_then(|status| status.verdict.as_ref());
    record.is_some_and(|record| !record.unproved.is_empty())
}

fn is_stuck(payload: &ReleasePayload) -> bool {
    let conditions = payload.status.iter().flat_map(|status| &status.conditions);
    conditions
        .into_iter()
        .any(|it| it.type_ == conditions::STUCK && it.status == "True")
}
