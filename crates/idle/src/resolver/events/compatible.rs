//! The numbers of KubeElasti 0.1.30, under their names, for dashboards that look at them.
//!
//! What clients choose, such as addresses and hosts, makes a number of its own of every request in the
//! original. Here those labels are empty unless somebody asks for them. What the original calls
//! counters has names that counters cannot have in the format that is spoken here, so they are shown
//! as gauges.

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

use crate::{api::names, resolver::hold::Holds};

#[derive(Debug)]
pub(super) struct Metrics {
    extractions: Family<Extraction, Gauge>,
    incoming: Family<Incoming, Histogram, fn() -> Histogram>,
    operator_calls: Family<Call, Gauge>,
    /// What is shown of each service, to be forgotten with it.
    shown: Mutex<HashMap<Key, Vec<Incoming>>>,
}

/// A name that was looked up.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Extraction {
    pub(super) service: Option<Key>,
    pub(super) host: Option<String>,
}

/// A request and what was answered.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Incoming {
    pub(super) service: Key,
    pub(super) method: &'static str,
    pub(super) status: u16,
    pub(super) rest: Option<Unbounded>,
}

/// What a client chooses.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Unbounded {
    pub(super) host: String,
    pub(super) uri: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Call {
    error: &'static str,
}

impl Metrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            extractions: Family::default(),
            incoming: Family::new_with_constructor(durations),
            operator_calls: Family::default(),
            shown: Mutex::default(),
        };
        registry.register(
            "elasti_resolver_host_extraction_count",
            "Names that were looked up on the shared port",
            metrics.extractions.clone(),
        );
        registry.register(
            "elasti_resolver_incoming_requests",
            "Seconds until the head of an answer",
            metrics.incoming.clone(),
        );
        registry.register(
            "elasti_resolver_operator_rpc_count",
            "Wakes that were asked of the operator",
            metrics.operator_calls.clone(),
        );
        metrics
    }

    pub(super) fn asked_operator(&self, failed: bool) {
        let error = if failed { "failed" } else { "" };
        self.operator_calls.get_or_create(&Call { error }).inc();
    }

    pub(super) fn extracted(&self, extraction: &Extraction) {
        self.extractions.get_or_create(extraction).inc();
    }

    pub(super) fn answered(&self, incoming: Incoming, took: Duration) {
        let seconds = took.as_secs_f64();
        if let Some(known) = self.incoming.get(&incoming) {
            known.observe(seconds);
            return;
        }
        self.incoming.get_or_create(&incoming).observe(seconds);
        let mut shown = self.shown.lock();
        shown
            .entry(incoming.service.clone())
            .or_default()
            .push(incoming);
    }

    /// Shows nothing more of services that are not `known`.
    pub(super) fn retain(&self, known: &dyn Fn(&Key) -> bool) {
        self.shown.lock().retain(|service, all| {
            let known = known(service);
            if !known {
                for incoming in all {
                    self.incoming.remove(incoming);
                }
                let service = Some(service.clone());
                self.extractions.remove(&Extraction {
                    service,
                    host: None,
                });
            }
            known
        });
    }
}

/// The bounds of the original.
fn durations() -> Histogram {
    Histogram::new([0.1, 0.5, 1.0, 2.0, 5.0, 10.0])
}

/// A method that is known; clients can make up others.
pub(super) fn known(method: &Method) -> &'static str {
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

impl Unbounded {
    pub(super) fn of(head: &request::Parts) -> Self {
        let said = |headers: &HeaderMap| {
            let host = headers.get(header::HOST)?;
            Some(host.to_str().ok()?.to_owned())
        };
        let authority = || Some(head.uri.authority()?.to_string());
        Self {
            host: said(&head.headers).or_else(authority).unwrap_or_default(),
            uri: head.uri.path().to_owned(),
        }
    }
}

impl EncodeLabelSet for Extraction {
    fn encode(&self, encoder: &mut LabelSetEncoder) -> fmt::Result {
        // The original keeps a cache; ours knows all names at all times.
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

impl EncodeLabelSet for Incoming {
    fn encode(&self, encoder: &mut LabelSetEncoder) -> fmt::Result {
        let target = names::private_service(self.service.name());
        let status = StatusCode::from_u16(self.status).ok();
        let status = status.and_then(|status| status.canonical_reason());
        let rest = self.rest.as_ref();
        labels(
            encoder,
            &[
                ("source", self.service.name()),
                ("target", &target),
                ("sourceHost", rest.map_or("", |rest| &rest.host)),
                ("targetHost", rest.map_or("", |_| &target)),
                ("namespace", self.service.namespace()),
                ("method", self.method),
                ("requestURI", rest.map_or("", |rest| &rest.uri)),
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

/// What is held at this moment for each service.
#[derive(Debug)]
pub(super) struct QueuedNow(pub(super) Holds);

impl Collector for QueuedNow {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let queued = Family::<Vec<(&str, String)>, Gauge>::default();
        for (key, held) in self.0.all_queued() {
            let labels = vec![
                ("source", key.name().to_owned()),
                ("namespace", key.namespace().to_owned()),
            ];
            let count = i64::try_from(held.requests).unwrap_or(i64::MAX);
            queued.get_or_create(&labels).set(count);
        }
        let name = "elasti_resolver_queued_count";
        let help = "Requests that are held";
        let metric = encoder.encode_descriptor(name, help, None, queued.metric_type())?;
        queued.encode(metric)
    }
}
