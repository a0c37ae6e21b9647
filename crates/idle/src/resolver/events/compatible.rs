//! The metrics of KubeElasti 0.1.30, under their names, for existing dashboards.
//!
//! KubeElasti has labels with client-controlled values such as hosts and paths, so that every request can
//! create a series. Here those labels are empty unless they are enabled. KubeElasti's counters are exposed
//! as gauges, because counters must end in `_total` in the exposition format used here.

use std::{collections::HashMap, fmt, time::Duration};

use http::{HeaderMap, Method, StatusCode, header, request};
use neap_kit::key::Key;
use parking_lot::Mutex;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabel, EncodeLabelSet, EncodeMetric, LabelSetEncoder},
    metrics::{family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

use crate::{api::names, resolver::hold::HeldRequests};

#[derive(Debug)]
pub(super) struct ElastiMetrics {
    extractions: Family<HostExtractionLabels, Gauge>,
    incoming: Family<IncomingRequestLabels, Histogram, fn() -> Histogram>,
    operator_calls: Family<OperatorCallLabels, Gauge>,
    /// The series of each service, to be removed with it.
    series: Mutex<HashMap<Key, Vec<IncomingRequestLabels>>>,
}

/// The labels of a host lookup.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct HostExtractionLabels {
    pub(super) service: Option<Key>,
    pub(super) host: Option<String>,
}

/// The labels of an answered request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct IncomingRequestLabels {
    pub(super) service: Key,
    pub(super) method: &'static str,
    pub(super) status: u16,
    pub(super) client: Option<ClientLabels>,
}

/// Labels with client-controlled values.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ClientLabels {
    pub(super) host: String,
    pub(super) uri: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OperatorCallLabels {
    error: &'static str,
}

impl ElastiMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            extractions: Family::default(),
            incoming: Family::new_with_constructor(durations),
            operator_calls: Family::default(),
            series: Mutex::default(),
        };
        registry.register(
            "elasti_resolver_host_extraction_count",
            "Hosts that were looked up on the shared port",
            metrics.extractions.clone(),
        );
        registry.register(
            "elasti_resolver_incoming_requests",
            "Seconds until the head of an answer",
            metrics.incoming.clone(),
        );
        registry.register(
            "elasti_resolver_operator_rpc_count",
            "Wakes requested from the operator",
            metrics.operator_calls.clone(),
        );
        metrics
    }

    pub(super) fn count_operator_call(&self, failed: bool) {
        let error = if failed { "failed" } else { "" };
        self.operator_calls
            .get_or_create(&OperatorCallLabels { error })
            .inc();
    }

    pub(super) fn count_host_lookup(&self, extraction: &HostExtractionLabels) {
        self.extractions.get_or_create(extraction).inc();
    }

    pub(super) fn observe_answer(&self, incoming: IncomingRequestLabels, took: Duration) {
        let seconds = took.as_secs_f64();
        if let Some(known) = self.incoming.get(&incoming) {
            known.observe(seconds);
            return;
        }
        self.incoming.get_or_create(&incoming).observe(seconds);
        let mut series = self.series.lock();
        series
            .entry(incoming.service.clone())
            .or_default()
            .push(incoming);
    }

    /// Removes the series of services that are not `known`.
    pub(super) fn retain(&self, known: &dyn Fn(&Key) -> bool) {
        self.series.lock().retain(|service, all| {
            let known = known(service);
            if !known {
                for incoming in all {
                    self.incoming.remove(incoming);
                }
                let service = Some(service.clone());
                self.extractions.remove(&HostExtractionLabels {
                    service,
                    host: None,
                });
            }
            known
        });
    }
}

/// KubeElasti's buckets.
fn durations() -> Histogram {
    Histogram::new([0.1, 0.5, 1.0, 2.0, 5.0, 10.0])
}

/// The label of a method; clients can make up others.
pub(super) fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        Method::PATCH => "PATCH",
        _ => "other",
    }
}

impl ClientLabels {
    pub(super) fn of(head: &request::Parts) -> Self {
        let host_header = |headers: &HeaderMap| {
            let host = headers.get(header::HOST)?;
            Some(host.to_str().ok()?.to_owned())
        };
        let authority = || Some(head.uri.authority()?.to_string());
        Self {
            host: host_header(&head.headers)
                .or_else(authority)
                .unwrap_or_default(),
            uri: head.uri.path().to_owned(),
        }
    }
}

impl EncodeLabelSet for HostExtractionLabels {
    fn encode(&self, encoder: &mut LabelSetEncoder) -> fmt::Result {
        // KubeElasti has a cache; here every host is known from the route table.
        let (kind, error) = match self.service {
            Some(_) => ("cache-hit", ""),
            None => ("error", "unknown"),
        };
        let source = self.service.as_ref().map_or("", Key::name);
        let host = self.host.as_deref().unwrap_or_default();
        labels(
            encoder,
            &[
                ("extractionType", kind),
                ("source", source),
                ("hostHeader", host),
                ("error", error),
            ],
        )
    }
}

impl EncodeLabelSet for IncomingRequestLabels {
    fn encode(&self, encoder: &mut LabelSetEncoder) -> fmt::Result {
        let target = names::private_service(self.service.name());
        let status = StatusCode::from_u16(self.status).ok();
        let status = status.and_then(|status| status.canonical_reason());
        let client = self.client.as_ref();
        labels(
            encoder,
            &[
                ("source", self.service.name()),
                ("target", &target),
                ("sourceHost", client.map_or("", |client| &client.host)),
                ("targetHost", client.map_or("", |_| &target)),
                ("namespace", self.service.namespace()),
                ("method", self.method),
                ("requestURI", client.map_or("", |client| &client.uri)),
                ("status", status.unwrap_or_default()),
                ("error", ""),
            ],
        )
    }
}

fn labels(encoder: &mut LabelSetEncoder, labels: &[(&str, &str)]) -> fmt::Result {
    for label in labels {
        label.encode(encoder.encode_label())?;
    }
    Ok(())
}

/// Exposes the queue size of each service.
#[derive(Debug)]
pub(super) struct QueueCollector(pub(super) HeldRequests);

impl Collector for QueueCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let queued = Family::<Vec<(&str, String)>, Gauge>::default();
        for (key, held) in self.0.queue_sizes() {
            let labels = vec![
                ("source", key.name().to_owned()),
                ("namespace", key.namespace().to_owned()),
            ];
            let count = i64::try_from(held.requests).unwrap_or(i64::MAX);
            queued.get_or_create(&labels).set(count);
        }
        let name = "elasti_resolver_queued_count";
        let help = "Held requests";
        let metric = encoder.encode_descriptor(name, help, None, queued.metric_type())?;
        queued.encode(metric)
    }
}
