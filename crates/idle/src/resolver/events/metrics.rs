//! The metrics of resolvers. Their labels have few values whatever clients send: no service, no host.

use std::fmt;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric},
    metrics::{counter::Counter, family::Family, gauge::ConstGauge, histogram::Histogram},
    registry::{Registry, Unit},
};

use super::{compatible, protocol_label};
use crate::{
    api::Protocol,
    resolver::hold::{HeldRequests, QueueSize},
};

/// The metrics of resolvers.
#[derive(Debug)]
pub struct ResolverMetrics {
    requests: [Counter; 3],
    pub(super) cold_starts: Family<ColdStartLabels, Histogram, fn() -> Histogram>,
    pub(super) refused: Family<RejectionLabels, Counter>,
    pub(super) sent_elsewhere: Family<ProtocolLabels, Counter>,
    pub(super) wakes: Family<WakeLabels, Counter>,
    pub(super) elasti: compatible::ElastiMetrics,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ProtocolLabels {
    pub(super) protocol: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ColdStartLabels {
    pub(super) protocol: &'static str,
    pub(super) part: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct RejectionLabels {
    pub(super) protocol: &'static str,
    pub(super) reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct WakeLabels {
    pub(super) result: &'static str,
}

impl ResolverMetrics {
    pub(super) fn register(registry: &mut Registry, elasti: compatible::ElastiMetrics) -> Self {
        let registry = registry.sub_registry_with_prefix("idle");
        let requests: Family<ProtocolLabels, Counter> = Family::default();
        let of = |protocol| {
            let protocol = protocol_label(protocol);
            requests.get_or_create_owned(&ProtocolLabels { protocol })
        };
        let metrics = Self {
            requests: [Protocol::Tcp, Protocol::Http, Protocol::Tls].map(of),
            cold_starts: Family::new_with_constructor(durations),
            refused: Family::default(),
            sent_elsewhere: Family::default(),
            wakes: Family::default(),
            elasti,
        };
        let help = "Requests and connections for a service";
        registry.register("requests", help, requests);
        registry.register_with_unit(
            "cold_start",
            "Where the time of held requests and connections went",
            Unit::Seconds,
            metrics.cold_starts.clone(),
        );
        let help = "Requests and connections that no pod answered, by reason";
        registry.register("refused", help, metrics.refused.clone());
        let help = "Attempts of which a pod processed nothing, so that another pod got the request";
        registry.register("sent_elsewhere", help, metrics.sent_elsewhere.clone());
        let help = "Wakes requested from the operator, by result";
        registry.register("wakes_asked", help, metrics.wakes.clone());
        metrics
    }

    pub(super) fn requests_counter(&self, protocol: Protocol) -> &Counter {
        let [tcp, http, tls] = &self.requests;
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

/// Exposes the size of all queues together.
#[derive(Debug)]
pub(super) struct HeldCollector(pub(super) HeldRequests);

impl Collector for HeldCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let mut all = QueueSize::default();
        for queued in self.0.queue_sizes().into_values() {
            all.requests += queued.requests;
            all.bytes += queued.bytes;
        }
        let held = [
            (
                "idle_held",
                "Held requests and connections",
                None,
                all.requests,
            ),
            (
                "idle_held",
                "Memory used by held requests and connections",
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
