//! The numbers of resolvers. Labels have few values whatever clients send: no service, no host.

use std::fmt;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric},
    metrics::{counter::Counter, family::Family, gauge::ConstGauge, histogram::Histogram},
    registry::{Registry, Unit},
};

use super::{compatible, spoken};
use crate::{
    api::Protocol,
    resolver::hold::{Holds, Queued},
};

/// What resolvers count.
#[derive(Debug)]
pub struct Metrics {
    came: [Counter; 3],
    pub(super) cold_starts: Family<Part, Histogram, fn() -> Histogram>,
    pub(super) refused: Family<Reason, Counter>,
    pub(super) sent_elsewhere: Family<Spoken, Counter>,
    pub(super) wakes: Family<Outcome, Counter>,
    pub(super) elasti: compatible::Metrics,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Spoken {
    pub(super) protocol: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Part {
    pub(super) protocol: &'static str,
    pub(super) part: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Reason {
    pub(super) protocol: &'static str,
    pub(super) reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Outcome {
    pub(super) result: &'static str,
}

impl Metrics {
    pub(super) fn register(registry: &mut Registry, elasti: compatible::Metrics) -> Self {
        let registry = registry.sub_registry_with_prefix("idle");
        let came: Family<Spoken, Counter> = Family::default();
        let of = |protocol| {
            let protocol = spoken(protocol);
            came.get_or_create_owned(&Spoken { protocol })
        };
        let metrics = Self {
            came: [Protocol::Tcp, Protocol::Http, Protocol::Tls].map(of),
            cold_starts: Family::new_with_constructor(durations),
            refused: Family::default(),
            sent_elsewhere: Family::default(),
            wakes: Family::default(),
            elasti,
        };
        let help = "Requests and connections that came for a service";
        registry.register("requests", help, came);
        registry.register_with_unit(
            "cold_start",
            "Where the time went of requests and connections that were held",
            Unit::Seconds,
            metrics.cold_starts.clone(),
        );
        let help = "Requests and connections that were not served, and why";
        registry.register("refused", help, metrics.refused.clone());
        let help = "Requests that a pod took nothing of, so that another got them";
        registry.register("sent_elsewhere", help, metrics.sent_elsewhere.clone());
        let help = "Wakes that were asked of the operator, and what came of it";
        registry.register("wakes_asked", help, metrics.wakes.clone());
        metrics
    }

    pub(super) fn came(&self, protocol: Protocol) -> &Counter {
        let [tcp, http, tls] = &self.came;
        match protocol {
            Protocol::Tcp => tcp,
            Protocol::Http => http,
            Protocol::Tls => tls,
        }
    }
}

/// From a millisecond to ten minutes.
fn durations() -> Histogram {
    let bounds = [
        0.001, 0.005, 0.02, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 180.0, 600.0,
    ];
    Histogram::new(bounds)
}

/// What is held at this moment, for all services together.
#[derive(Debug)]
pub(super) struct HeldNow(pub(super) Holds);

impl Collector for HeldNow {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let mut all = Queued::default();
        for queued in self.0.all_queued().into_values() {
            all.requests += queued.requests;
            all.bytes += queued.bytes;
        }
        let held = [
            (
                "idle_held",
                "Requests and connections that are held",
                None,
                all.requests,
            ),
            (
                "idle_held",
                "What they keep in memory",
                Some(&Unit::Bytes),
                all.bytes,
            ),
        ];
        for (name, help, unit, value) in held {
            let gauge = ConstGauge::new(value as i64);
            let metric = encoder.encode_descriptor(name, help, unit, gauge.metric_type())?;
            gauge.encode(metric)?;
        }
        Ok(())
    }
}
