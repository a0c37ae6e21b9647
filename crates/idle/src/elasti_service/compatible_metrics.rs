//! The metrics of KubeElasti 0.1.30's operator, under their names, for existing dashboards.
//!
//! Where KubeElasti has the text of an error as a label there is one of two words, and the metrics of an
//! ElastiService are removed with it, so their number is bounded. What KubeElasti calls counters has names
//! that counters cannot have in OpenMetrics, so they are gauges.

use std::{collections::HashMap, fmt, time::Duration};

use kube::ResourceExt;
use neap_kit::{
    context::Context,
    key::Key,
    telemetry::{Meter, TelemetryEvent},
    watch::Cache,
};
use parking_lot::Mutex;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric},
    metrics::{
        MetricType,
        family::Family,
        gauge::{ConstGauge, Gauge},
        histogram::Histogram,
    },
    registry::Registry,
};

use crate::api::{ElastiService, Mode};

/// The metrics.
#[derive(Debug)]
pub(crate) struct Metrics {
    reconciles: Family<ReconcileLabels, Histogram, fn() -> Histogram>,
    handled: Family<HandlerLabels, Gauge>,
    finalizers: Family<ReconcileLabels, Gauge>,
    updates: Family<StatusLabels, Gauge>,
    watches: Family<WatchLabels, Gauge>,
    begun: Family<WatchStartLabels, Gauge>,
    /// The label sets in `handled`, to be removed with their ElastiService.
    handled_labels: Mutex<HashMap<Key, Vec<HandlerLabels>>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReconcileLabels {
    crd_name: String,
    error: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HandlerLabels {
    crd_name: String,
    key: String,
    error: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StatusLabels {
    crd_name: String,
    mode: &'static str,
    error: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WatchLabels {
    informer_name: String,
}

/// KubeElasti has the key of the watched object where other metrics have the name of an ElastiService.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WatchStartLabels {
    crd_name: String,
    action: &'static str,
    error: &'static str,
}

const RESULTS: [&str; 2] = ["success", "failed"];
const MODES: [&str; 3] = ["proxy", "serve", ""];

/// An ElastiService was reconciled.
#[derive(Debug)]
pub(super) struct Reconciled<'a> {
    pub(super) service: &'a ElastiService,
    pub(super) failed: bool,
    pub(super) took: Duration,
}

/// The objects of a deleted ElastiService were deleted, or could not be.
#[derive(Debug)]
pub(super) struct Finalized {
    pub(super) failed: bool,
}

/// The status of an ElastiService was written, or could not be.
#[derive(Debug)]
pub(super) struct StatusWritten<'a> {
    pub(super) service: &'a ElastiService,
    pub(super) mode: Option<Mode>,
    pub(super) failed: bool,
}

/// A watch of a kind was started.
#[derive(Debug)]
pub(super) struct WatchStarted<'a>(pub(super) &'a str);

/// An ElastiService was deleted.
#[derive(Debug)]
pub(super) struct ServiceDeleted<'a>(pub(super) &'a Key);

/// The meter, and the modes of all `services`.
pub(super) fn meter(context: &Context, services: Cache<ElastiService>) -> Meter<Metrics> {
    let telemetry = context.watches.process().telemetry();
    let metrics = telemetry.compatible(|registry| {
        registry.register_collector(Box::new(ModeCollector(services)));
        Metrics::register(registry)
    });
    telemetry.meter(|_| metrics)
}

impl Metrics {
    fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            reconciles: Family::new_with_constructor(durations),
            handled: Family::default(),
            finalizers: Family::default(),
            updates: Family::default(),
            watches: Family::default(),
            begun: Family::default(),
            handled_labels: Mutex::default(),
        };
        metrics.register_services(registry);
        metrics.register_watches(registry);
        metrics
    }

    fn register_services(&self, registry: &mut Registry) {
        registry.register(
            "elasti_operator_reconcile",
            "Seconds that a reconcile of an ElastiService took",
            self.reconciles.clone(),
        );
        registry.register(
            "elasti_operator_CRD_finalizer_counter",
            "ElastiServices whose finalizer was removed",
            self.finalizers.clone(),
        );
        registry.register(
            "elasti_operator_CRD_update_counter",
            "Status writes",
            self.updates.clone(),
        );
    }

    fn register_watches(&self, registry: &mut Registry) {
        registry.register(
            "elasti_operator_informer_handler_counter",
            "Reconciles of an ElastiService, by its target",
            self.handled.clone(),
        );
        registry.register(
            "elasti_operator_informer_count",
            "Watches, by kind",
            self.watches.clone(),
        );
        registry.register(
            "elasti_operator_informer_counter",
            "Watches that were started",
            self.begun.clone(),
        );
    }

    fn handled(&self, service: &ElastiService, error: &'static str) {
        let key = Key::of(service);
        let handled = HandlerLabels {
            crd_name: key.to_string(),
            key: informer_key(service),
            error,
        };
        let mut all = self.handled_labels.lock();
        let labels = all.entry(key).or_default();
        // The service may have another target by now.
        labels.retain(|before| {
            let same = before.key == handled.key;
            if !same {
                self.handled.remove(before);
            }
            same
        });
        if !labels.contains(&handled) {
            labels.push(handled.clone());
        }
        self.handled.get_or_create(&handled).inc();
    }

    fn remove(&self, key: &Key) {
        let crd_name = key.to_string();
        for error in RESULTS {
            let crd_name = || crd_name.clone();
            self.reconciles.remove(&ReconcileLabels {
                crd_name: crd_name(),
                error,
            });
            for mode in MODES {
                self.updates.remove(&StatusLabels {
                    crd_name: crd_name(),
                    mode,
                    error,
                });
            }
        }
        for handled in self.handled_labels.lock().remove(key).into_iter().flatten() {
            self.handled.remove(&handled);
        }
    }
}

/// The buckets of KubeElasti.
fn durations() -> Histogram {
    Histogram::new([0.1, 0.5, 1.0, 2.0, 5.0, 10.0])
}

fn result(failed: bool) -> &'static str {
    let [success, failure] = RESULTS;
    if failed { failure } else { success }
}

/// The key of the informer that KubeElasti would have for it.
fn informer_key(service: &ElastiService) -> String {
    let (name, namespace) = (service.name_any(), service.namespace().unwrap_or_default());
    let target = &service.spec.scale_target_ref;
    let kind = target.kind.to_lowercase();
    let plural = if kind.ends_with('s') { "" } else { "s" };
    format!("{name}/{namespace}/{kind}{plural}/{}", target.name).to_lowercase()
}

impl TelemetryEvent<Metrics> for Reconciled<'_> {
    /// The controller logs it already.
    fn log(&self) {}

    fn count(&self, metrics: &Metrics) {
        let error = result(self.failed);
        let labels = ReconcileLabels {
            crd_name: Key::of(self.service).to_string(),
            error,
        };
        let seconds = self.took.as_secs_f64();
        metrics.reconciles.get_or_create(&labels).observe(seconds);
        metrics.handled(self.service, error);
    }
}

impl TelemetryEvent<Metrics> for Finalized {
    fn log(&self) {}

    /// Without a name: a deleted object would be shown for ever.
    fn count(&self, metrics: &Metrics) {
        let labels = ReconcileLabels {
            crd_name: String::new(),
            error: result(self.failed),
        };
        metrics.finalizers.get_or_create(&labels).inc();
    }
}

impl TelemetryEvent<Metrics> for StatusWritten<'_> {
    fn log(&self) {}

    fn count(&self, metrics: &Metrics) {
        let [proxy, serve, none] = MODES;
        let update = StatusLabels {
            crd_name: Key::of(self.service).to_string(),
            mode: match self.mode {
                Some(Mode::Proxy) => proxy,
                Some(Mode::Serve) => serve,
                None => none,
            },
            error: result(self.failed),
        };
        metrics.updates.get_or_create(&update).inc();
    }
}

impl TelemetryEvent<Metrics> for WatchStarted<'_> {
    fn log(&self) {}

    fn count(&self, metrics: &Metrics) {
        let name = || self.0.to_owned();
        let watch = WatchLabels {
            informer_name: name(),
        };
        metrics.watches.get_or_create(&watch).inc();
        let begun = WatchStartLabels {
            crd_name: name(),
            action: "add",
            error: result(false),
        };
        metrics.begun.get_or_create(&begun).inc();
    }
}

impl TelemetryEvent<Metrics> for ServiceDeleted<'_> {
    fn log(&self) {}

    fn count(&self, metrics: &Metrics) {
        metrics.remove(self.0);
    }
}

/// Whether each service is in proxy mode. Collected on each scrape, so deleted objects are not shown.
#[derive(Debug)]
struct ModeCollector(Cache<ElastiService>);

impl Collector for ModeCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (name, help) = (
            "elasti_operator_mode",
            "Whether resolvers are in the path of an ElastiService",
        );
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for service in self.0.list("") {
            let mode = service.status.as_ref().and_then(|status| status.mode);
            let labels = [("crd_name", Key::of(&*service).to_string())];
            let proxy = ConstGauge::new(i64::from(mode == Some(Mode::Proxy)));
            proxy.encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
