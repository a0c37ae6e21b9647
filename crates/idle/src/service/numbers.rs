//! How many services sleep, and what that saves, as numbers.

use std::{collections::BTreeMap, fmt};

use neap_kit::{
    clock::Clock,
    site::Site,
    watch::{Cache, Ended, Selection},
};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, gauge::ConstGauge},
};

use crate::api::{ElastiService, ElastiServiceStatus};

/// Shows the numbers of all ElastiServices among those of this process.
pub fn show(site: &Site) -> Result<(), Ended> {
    let services = site.here(&Selection::default())?;
    show_of(site, services);
    Ok(())
}

/// The same for those that `services` has.
pub fn show_of(site: &Site, services: Cache<ElastiService>) {
    let clock = site.clock;
    let numbers = Box::new(Numbers { services, clock });
    let telemetry = site.watches.process().telemetry();
    telemetry.meter(|registry| registry.register_collector(numbers));
}

/// Counts when it is asked: nothing has to be kept, and what is gone is not shown.
#[derive(Debug)]
struct Numbers {
    services: Cache<ElastiService>,
    clock: Clock,
}

impl Collector for Numbers {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let services = self.services.list("");
        let of: Vec<_> = services
            .iter()
            .filter_map(|it| it.status.as_ref())
            .collect();
        let mut states: BTreeMap<&str, i64> = STATES.iter().map(|state| (*state, 0)).collect();
        for status in &of {
            *states.entry(state(status)).or_default() += 1;
        }
        let help = "ElastiServices by what they are doing";
        let mut metric =
            encoder.encode_descriptor("idle_services", help, None, MetricType::Gauge)?;
        for (state, count) in states {
            let labels = [("state", state)];
            ConstGauge::new(count).encode(metric.encode_family(&labels)?)?;
        }
        let saved = of
            .iter()
            .map(|it| self.saved(it))
            .fold(0, i64::saturating_add);
        let would = of
            .iter()
            .map(|it| self.would_save(it))
            .fold(0, i64::saturating_add);
        for (name, help, sum) in [
            (
                "idle_saved_replica_seconds",
                "Seconds of a replica that did not run, of the ElastiServices there are",
                saved,
            ),
            (
                "idle_would_save_replica_seconds",
                "The same of those that are only observed, had they slept",
                would,
            ),
        ] {
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(sum).encode(metric)?;
        }
        Ok(())
    }
}

const STATES: [&str; 5] = ["asleep", "awake", "waking", "falling_asleep", "stalled"];

/// In one word, by the condition that says how it is.
fn state(status: &ElastiServiceStatus) -> &'static str {
    let mut conditions = status.conditions.iter();
    let ready = conditions.find(|condition| condition.type_ == "Ready");
    match ready.map_or("", |ready| ready.reason.as_str()) {
        "Asleep" => "asleep",
        "Awake" | "InPath" | "Observed" => "awake",
        "Waking" | "HandingOver" => "waking",
        "FallingAsleep" => "falling_asleep",
        _ => "stalled",
    }
}

impl Numbers {
    fn saved(&self, status: &ElastiServiceStatus) -> i64 {
        let sum = status.saved_replica_seconds.unwrap_or(0);
        let replicas = status.replicas_before.unwrap_or(1).max(1);
        let now = status.asleep_since.map(|since| self.since(since, replicas));
        sum.saturating_add(now.unwrap_or(0))
    }

    fn would_save(&self, status: &ElastiServiceStatus) -> i64 {
        let sum = status.would_save_replica_seconds.unwrap_or(0);
        let now = status.would_sleep.as_ref();
        let now = now.map(|now| self.since(now.since, now.replicas));
        sum.saturating_add(now.unwrap_or(0))
    }

    fn since(&self, since: jiff::Timestamp, replicas: i32) -> i64 {
        let seconds = self.clock.now().duration_since(since).as_secs();
        seconds.max(0).saturating_mul(replicas.into())
    }
}
