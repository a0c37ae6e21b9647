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

use crate::{account::State, api::ElastiService};

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
        let mut states: BTreeMap<State, i64> = State::ALL.map(|state| (state, 0)).into();
        for service in &services {
            *states.entry(State::of(service)).or_default() += 1;
        }
        let help = "ElastiServices by what they are doing";
        let mut metric =
            encoder.encode_descriptor("idle_services", help, None, MetricType::Gauge)?;
        for (state, count) in states {
            // As numbers are labelled everywhere.
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
