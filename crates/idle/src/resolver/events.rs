//! Events of requests and connections; each makes a log line and updates metrics.

mod compatible;
mod metrics;

use std::time::Duration;

use http::{Method, StatusCode, request};
use neap_kit::{
    key::Key,
    telemetry::{Meter, Telemetry, TelemetryEvent},
};

pub use self::metrics::ResolverMetrics;
use self::{
    compatible::{ClientLabels, HostExtractionLabels, IncomingRequestLabels},
    metrics::{ColdStartLabels, ProtocolLabels, RejectionLabels, WakeLabels},
};
use super::hold::{HeldRequests, HoldError};
use crate::api::{Breakdown, Protocol};

/// A request or connection for a service arrived.
#[derive(Debug)]
pub struct RequestReceived {
    /// Its protocol.
    pub protocol: Protocol,
}

/// A held request was answered by a pod.
#[derive(Debug)]
pub struct ColdStartServed<'a> {
    /// The requested service.
    pub service: &'a Key,
    /// Its protocol.
    pub protocol: Protocol,
    /// Where the time went.
    pub breakdown: Breakdown,
}

/// A request was not answered by a pod.
#[derive(Debug)]
pub struct RequestRejected<'a> {
    /// The requested service, if known.
    pub service: Option<&'a Key>,
    /// Its protocol.
    pub protocol: Protocol,
    /// The reason, one of a few words: the value of a metric's label.
    pub reason: &'static str,
    /// The message for the log.
    pub why: String,
}

/// A pod has not processed a request, so another pod gets it.
#[derive(Debug)]
pub struct SentToAnotherPod<'a> {
    /// The requested service.
    pub service: &'a Key,
    /// Its protocol.
    pub protocol: Protocol,
}

/// The resolver requested a wake from the operator.
#[derive(Debug)]
pub struct WakeAttempted<'a> {
    /// The service to wake.
    pub service: &'a Key,
    /// Why the request failed, if it did.
    pub error: Option<&'a str>,
}

/// A host was looked up on the shared port.
#[derive(Debug)]
pub struct HostLookedUp<'a> {
    /// The service of the host, if there is one.
    pub service: Option<&'a Key>,
    /// The labels of the request.
    pub labels: &'a RequestLabels,
}

/// Services may have been removed, whose metrics end.
pub struct ServicesRemoved<'a>(
    /// Whether a service still exists.
    pub &'a dyn Fn(&Key) -> bool,
);

/// A request got the head of its answer, from a pod or from the resolver.
#[derive(Debug)]
pub struct RequestAnswered<'a> {
    /// The requested service.
    pub service: &'a Key,
    /// The labels of the request.
    pub labels: &'a RequestLabels,
    /// The status of the answer.
    pub status: StatusCode,
    /// The time since the request arrived.
    pub took: Duration,
}

/// The labels of a request, for metrics that are updated after it was forwarded.
#[derive(Debug, Clone)]
pub struct RequestLabels {
    method: Method,
    /// Labels with client-controlled values, if enabled.
    client: Option<ClientLabels>,
}

/// Registers the metrics of resolvers.
pub fn meter(telemetry: &Telemetry) -> Meter<ResolverMetrics> {
    let elasti = telemetry.compatible(compatible::ElastiMetrics::register);
    telemetry.meter(|registry| ResolverMetrics::register(registry, elasti))
}

/// Registers gauges that read the sizes of the queues at every scrape.
pub fn register_queue_gauges(telemetry: &Telemetry, holds: &HeldRequests) {
    let queued = holds.clone();
    telemetry.meter(|registry| {
        registry.register_collector(Box::new(metrics::HeldCollector(queued)));
    });
    let queued = holds.clone();
    telemetry.compatible(|registry| {
        registry.register_collector(Box::new(compatible::QueueCollector(queued)));
    });
}

fn protocol_label(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Tcp => "tcp",
        Protocol::Http => "http",
        Protocol::Tls => "tls",
    }
}

impl HoldError {
    /// The value of the `reason` label and of the JSON field.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::QueueFull(_) => "TooManyWaiting",
            Self::DeadlineExceeded { .. } => "DeadlineExceeded",
            Self::ShuttingDown => "ResolverEnding",
            Self::ServiceGone(_) => "ServiceGone",
        }
    }
}

impl RequestLabels {
    /// The labels of a request; client-controlled values only if `unbounded`.
    pub fn of(head: &request::Parts, unbounded: bool) -> Self {
        Self {
            method: head.method.clone(),
            client: unbounded.then(|| ClientLabels::of(head)),
        }
    }
}

impl TelemetryEvent<ResolverMetrics> for RequestReceived {
    fn log(&self) {
        tracing::trace!(protocol = protocol_label(self.protocol), "request received");
    }

    fn count(&self, metrics: &ResolverMetrics) {
        metrics.requests_counter(self.protocol).inc();
    }
}

impl TelemetryEvent<ResolverMetrics> for ColdStartServed<'_> {
    fn log(&self) {
        let Breakdown {
            queue,
            scale,
            schedule,
            ready,
            connect,
            first_byte,
        } = self.breakdown;
        let service = self.service;
        tracing::debug!(
            %service, queue, scale, schedule, ready, connect, first_byte, "held request answered"
        );
    }

    fn count(&self, metrics: &ResolverMetrics) {
        let protocol = protocol_label(self.protocol);
        // Byte streams are not inspected, so they have no first byte.
        let measured = if self.protocol == Protocol::Http {
            6
        } else {
            5
        };
        let parts = self.breakdown.parts();
        let all: i64 = parts[..measured].iter().map(|(_, took)| took).sum();
        for (part, took) in parts[..measured].iter().copied().chain([("all", all)]) {
            let part = ColdStartLabels { protocol, part };
            let seconds = took as f64 / 1000.0;
            metrics.cold_starts.get_or_create(&part).observe(seconds);
        }
    }
}

impl TelemetryEvent<ResolverMetrics> for RequestRejected<'_> {
    fn log(&self) {
        let (reason, why) = (self.reason, &self.why);
        let service = self.service.map(Key::to_string);
        tracing::debug!(service, reason, why, "request rejected");
    }

    fn count(&self, metrics: &ResolverMetrics) {
        let reason = RejectionLabels {
            protocol: protocol_label(self.protocol),
            reason: self.reason,
        };
        metrics.refused.get_or_create(&reason).inc();
    }
}

impl TelemetryEvent<ResolverMetrics> for SentToAnotherPod<'_> {
    fn log(&self) {
        let service = self.service;
        tracing::debug!(%service, "a pod did not process a request; another pod gets it");
    }

    fn count(&self, metrics: &ResolverMetrics) {
        let protocol = protocol_label(self.protocol);
        let labels = ProtocolLabels { protocol };
        metrics.sent_elsewhere.get_or_create(&labels).inc();
    }
}

impl TelemetryEvent<ResolverMetrics> for WakeAttempted<'_> {
    fn log(&self) {
        let service = self.service;
        match &self.error {
            None => tracing::debug!(%service, "wake requested"),
            Some(error) => tracing::warn!(
                %service, error, "wake request failed; retrying"
            ),
        }
    }

    fn count(&self, metrics: &ResolverMetrics) {
        let failed = self.error.is_some();
        let result = if failed { "failed" } else { "done" };
        metrics.wakes.get_or_create(&WakeLabels { result }).inc();
        metrics.elasti.count_operator_call(failed);
    }
}

impl TelemetryEvent<ResolverMetrics> for HostLookedUp<'_> {
    fn log(&self) {
        let service = self.service.map(Key::to_string);
        tracing::trace!(service, "host looked up");
    }

    fn count(&self, metrics: &ResolverMetrics) {
        let client = self.labels.client.as_ref();
        metrics.elasti.count_host_lookup(&HostExtractionLabels {
            service: self.service.cloned(),
            host: client.map(|client| client.host.clone()),
        });
    }
}

impl TelemetryEvent<ResolverMetrics> for RequestAnswered<'_> {
    fn log(&self) {
        let (service, status, took) = (self.service, self.status.as_u16(), self.took);
        tracing::trace!(%service, status, ?took, "request answered");
    }

    fn count(&self, metrics: &ResolverMetrics) {
        let RequestLabels { method, client } = self.labels;
        let labels = IncomingRequestLabels {
            service: self.service.clone(),
            method: compatible::method_label(method),
            status: self.status.as_u16(),
            client: client.clone(),
        };
        metrics.elasti.observe_answer(labels, self.took);
    }
}

impl TelemetryEvent<ResolverMetrics> for ServicesRemoved<'_> {
    fn log(&self) {}

    fn count(&self, metrics: &ResolverMetrics) {
        metrics.elasti.retain(self.0);
    }
}

impl std::fmt::Debug for ServicesRemoved<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Forgot").finish_non_exhaustive()
    }
}
