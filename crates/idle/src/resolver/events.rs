//! What is told of the path of connections: as log lines and as numbers.

use neap_kit::{
    key::Key,
    telemetry::{Event, Meter, Telemetry},
};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::{Registry, Unit},
};

use super::hold::Refused;
use crate::api::{Breakdown, Protocol};

/// What resolvers count. Labels have few values whatever clients send: no service, no host.
#[derive(Debug)]
pub struct Metrics {
    cold_starts: Family<Part, Histogram, fn() -> Histogram>,
    refused: Family<Reason, Counter>,
    wakes: Family<Outcome, Counter>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Part {
    protocol: &'static str,
    part: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reason {
    protocol: &'static str,
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    result: &'static str,
}

/// Somebody was held and then served.
#[derive(Debug)]
pub struct ServedCold<'a> {
    /// By whom.
    pub service: &'a Key,
    /// In what.
    pub protocol: Protocol,
    /// Where the time went.
    pub breakdown: Breakdown,
}

/// Somebody was not served.
#[derive(Debug)]
pub struct TurnedAway<'a> {
    /// By whom.
    pub service: &'a Key,
    /// In what.
    pub protocol: Protocol,
    /// Why.
    pub why: &'a Refused,
}

/// The operator was asked to wake a service.
#[derive(Debug)]
pub struct AskedToWake<'a> {
    /// Which.
    pub service: &'a Key,
    /// Why it did not, if it did not.
    pub error: Option<String>,
}

/// A meter of what resolvers count.
pub fn meter(telemetry: &Telemetry) -> Meter<Metrics> {
    telemetry.meter(Metrics::register)
}

impl Metrics {
    fn register(registry: &mut Registry) -> Self {
        let registry = registry.sub_registry_with_prefix("idle");
        let metrics = Self {
            cold_starts: Family::new_with_constructor(durations),
            refused: Family::default(),
            wakes: Family::default(),
        };
        registry.register_with_unit(
            "cold_start",
            "Where the time went of requests and connections that were held",
            Unit::Seconds,
            metrics.cold_starts.clone(),
        );
        registry.register(
            "refused",
            "Requests and connections that were not served, and why",
            metrics.refused.clone(),
        );
        registry.register(
            "wakes_asked",
            "Wakes that were asked of the operator, and what came of it",
            metrics.wakes.clone(),
        );
        metrics
    }
}

/// From a millisecond to ten minutes.
fn durations() -> Histogram {
    let bounds = [
        0.001, 0.005, 0.02, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 180.0, 600.0,
    ];
    Histogram::new(bounds)
}

fn spoken(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Tcp => "tcp",
        Protocol::Http => "http",
        Protocol::Tls => "tls",
    }
}

impl Refused {
    /// In one word, for those who count.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Full(_) => "TooManyWaiting",
            Self::Late { .. } => "DeadlineExceeded",
            Self::Closing => "ResolverEnding",
            Self::Gone(_) => "ServiceGone",
        }
    }
}

impl Event<Metrics> for ServedCold<'_> {
    fn log(&self) {
        let Breakdown {
            queue,
            scale,
            ready,
            connect,
            first_byte,
            ..
        } = self.breakdown;
        let service = self.service;
        tracing::debug!(%service, queue, scale, ready, connect, first_byte, "served after a wake");
    }

    fn count(&self, metrics: &Metrics) {
        let protocol = spoken(self.protocol);
        let Breakdown {
            queue,
            scale,
            ready,
            connect,
            first_byte,
            ..
        } = self.breakdown;
        let all = queue + scale + ready + connect + first_byte;
        for (part, milliseconds) in [
            ("queue", queue),
            ("scale", scale),
            ("ready", ready),
            ("connect", connect),
            ("first_byte", first_byte),
            ("all", all),
        ] {
            let part = Part { protocol, part };
            let seconds = milliseconds as f64 / 1000.0;
            metrics.cold_starts.get_or_create(&part).observe(seconds);
        }
    }
}

impl Event<Metrics> for TurnedAway<'_> {
    fn log(&self) {
        let (service, why) = (self.service, self.why);
        tracing::debug!(%service, %why, "a client was not served");
    }

    fn count(&self, metrics: &Metrics) {
        let reason = Reason {
            protocol: spoken(self.protocol),
            reason: self.why.reason(),
        };
        metrics.refused.get_or_create(&reason).inc();
    }
}

impl Event<Metrics> for AskedToWake<'_> {
    fn log(&self) {
        let service = self.service;
        match &self.error {
            None => tracing::debug!(%service, "asked to wake"),
            Some(error) => tracing::warn!(
                %service, error, "a service could not be woken; it is tried again"
            ),
        }
    }

    fn count(&self, metrics: &Metrics) {
        let result = if self.error.is_some() {
            "failed"
        } else {
            "done"
        };
        metrics.wakes.get_or_create(&Outcome { result }).inc();
    }
}
