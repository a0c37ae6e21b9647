//! Metrics: the states of services, and the replica-seconds that sleep saves.

use std::{collections::BTreeMap, fmt};

use neap_kit::{
    clock::Clock,
    context::Context,
    watch::{Cache, Selection, WatchesStopped},
};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, gauge::ConstGauge},
};

use crate::{account::State, api::ElastiService};

/// Registers the metrics of all ElastiServices.
pub fn register(context: &Context) -> Result<(), WatchesStopped> {
    let services = context.scoped_cache(&Selection::default())?;
    register_for(context, services);
    Ok(())
}

/// Registers the metrics of the ElastiServices in `services`.
pub fn register_for(context: &Context, services: Cache<ElastiService>) {
    let clock = context.clock;
    let collector = Box::new(StateCollector { services, clock });
    let telemetry = context.watches.process().telemetry();
    telemetry.meter(|registry| registry.register_collector(collector));
}

/// Collects on each scrape: nothing has to be stored, and deleted objects are not shown.
#[derive(Debug)]
struct StateCollector {
    services: Cache<ElastiService>,
    clock: Clock,
}

impl Collector for StateCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let services = self.services.list("");
        let mut states: BTreeMap<State, i64> = State::ALL.map(|state| (state, 0)).into();
        for service in &services {
            *states.entry(State::of(service)).or_default() += 1;
        }
        let help = "ElastiServices by state";
        let mut metric =
            encoder.encode_descriptor("idle_services", help, None, MetricType::Gauge)?;
        for (state, count) in states {
            // Labels of metrics have underscores.
            let labels = [("state", state.word().replace('-', "_"))];
            ConstGauge::new(count).encode(metric.encode_family(&labels)?)?;
        }
        let now = self.clock.now();
        let of = || services.iter().filter_map(|it| it.status.as_ref());
        let saved = of().map(|it| it.saved(now));
        let saved = saved.fold(0, i64::saturating_add);
        let would = of().filter_map(|it| it.would_save(now));
        let would = would.fold(0, i64::saturating_add);
        for (name, help, sum) in [
            (
                "idle_saved_replica_seconds",
                "Replica-seconds that did not run, of the existing ElastiServices",
                saved,
            ),
            (
                "idle_would_save_replica_seconds",
                "Replica-seconds that would not have run, of those that are only observed",
                would,
            ),
        ] {
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(sum).encode(metric)?;
        }
        Ok(())
    }
}
