//! The numbers of the operator of KubeElasti 0.1.30, under their names, for dashboards that look at
//! them.
//!
//! Where the original has the text of an error there is one of two words, and what is told of an
//! ElastiService goes with it, so there are only so many of them. What the original calls counters has
//! names that counters cannot have in the format that is spoken here, so they are shown as gauges.

use std::{collections::HashMap, fmt, time::Duration};

use kube::ResourceExt;
use neap_kit::{
    key::Key,
    site::Site,
    telemetry::{Event, Meter},
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

/// What is counted.
#[derive(Debug)]
pub(crate) struct Metrics {
    looks: Family<Look, Histogram, fn() -> Histogram>,
    handled: Family<Handled, Gauge>,
    finalizers: Family<Look, Gauge>,
    updates: Family<Update, Gauge>,
    watches: Family<Watch, Gauge>,
    begun: Family<Begun, Gauge>,
    /// What is shown as handled, to be forgotten with its ElastiService.
    shown: Mutex<HashMap<Key, Vec<Handled>>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Look {
    crd_name: String,
    error: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Handled {
    crd_name: String,
    key: String,
    error: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Update {
    crd_name: String,
    mode: &'static str,
    error: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Watch {
    informer_name: String,
}

/// The original has the key of what is watched where others have the name of an ElastiService.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Begun {
    crd_name: String,
    action: &'static str,
    error: &'static str,
}

const RESULTS: [&str; 2] = ["success", "failed"];
const MODES: [&str; 3] = ["proxy", "serve", ""];

/// An ElastiService was looked at, because something changed that has to do with it.
#[derive(Debug)]
pub(super) struct Looked<'a> {
    pub(super) service: &'a ElastiService,
    pub(super) failed: bool,
    pub(super) took: Duration,
}

/// What was made for an ElastiService was taken away, or could not be.
#[derive(Debug)]
pub(super) struct Finalized {
    pub(super) failed: bool,
}

/// The status of an ElastiService was written, or could not be.
#[derive(Debug)]
pub(super) struct Updated<'a> {
    pub(super) service: &'a ElastiService,
    pub(super) mode: Option<Mode>,
    pub(super) failed: bool,
}

/// Objects of a kind are watched from now on.
#[derive(Debug)]
pub(super) struct Watched<'a>(pub(super) &'a str);

/// An ElastiService is no longer there.
#[derive(Debug)]
pub(super) struct Gone<'a>(pub(super) &'a Key);

/// A meter of what is counted, and the modes of all `services`.
pub(super) fn meter(site: &Site, services: Cache<ElastiService>) -> Meter<Metrics> {
    let telemetry = site.watches.process().telemetry();
    let metrics = telemetry.compatible(|registry| {
        registry.register_collector(Box::new(Modes(services)));
        Metrics::register(registry)
    });
    telemetry.meter(|_| metrics)
}

impl Metrics {
    fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            looks: Family::new_with_constructor(durations),
            handled: Family::default(),
            finalizers: Family::default(),
            updates: Family::default(),
            watches: Family::default(),
            begun: Family::default(),
            shown: Mutex::default(),
        };
        metrics.show_services(registry);
        metrics.show_watches(registry);
        metrics
    }

    fn show_services(&self, registry: &mut Registry) {
        registry.register(
            "elasti_operator_reconcile",
            "Seconds that a look at an ElastiService took",
            self.looks.clone(),
        );
        registry.register(
            "elasti_operator_CRD_finalizer_counter",
            "ElastiServices after which everything was put back",
            self.finalizers.clone(),
        );
        registry.register(
            "elasti_operator_CRD_update_counter",
            "Writes of a status",
            self.updates.clone(),
        );
    }

    fn show_watches(&self, registry: &mut Registry) {
        registry.register(
            "elasti_operator_informer_handler_counter",
            "Looks at an ElastiService, by what it scales",
            self.handled.clone(),
        );
        registry.register(
            "elasti_operator_informer_count",
            "Watches, by the kind that is watched",
            self.watches.clone(),
        );
        registry.register(
            "elasti_operator_informer_counter",
            "Watches that were begun",
            self.begun.clone(),
        );
    }

    fn handled(&self, service: &ElastiService, error: &'static str) {
        let key = Key::of(service);
        let handled = Handled {
            crd_name: key.to_string(),
            key: informer_key(service),
            error,
        };
        let mut shown = self.shown.lock();
        let shown = shown.entry(key).or_default();
        // It may scale something else by now.
        shown.retain(|before| {
            let same = before.key == handled.key;
            if !same {
                self.handled.remove(before);
            }
            same
        });
        if !shown.contains(&handled) {
            shown.push(handled.clone());
        }
        self.handled.get_or_create(&handled).inc();
    }

    fn forget(&self, key: &Key) {
        let crd_name = key.to_string();
        for error in RESULTS {
            let crd_name = || crd_name.clone();
            self.looks.remove(&Look {
                crd_name: crd_name(),
                error,
            });
            for mode in MODES {
                self.updates.remove(&Update {
                    crd_name: crd_name(),
                    mode,
                    error,
                });
            }
        }
        for handled in self.shown.lock().remove(key).into_iter().flatten() {
            self.handled.remove(&handled);
        }
    }
}

/// The bounds of the original.
fn durations() -> Histogram {
    Histogram::new([0.1, 0.5, 1.0, 2.0, 5.0, 10.0])
}

fn result(failed: bool) -> &'static str {
    let [well, badly] = RESULTS;
    if failed { badly } else { well }
}

/// What the original would watch for it.
fn informer_key(service: &ElastiService) -> String {
    let (name, namespace) = (service.name_any(), service.namespace().unwrap_or_default());
    let target = &service.spec.scale_target_ref;
    let kind = target.kind.to_lowercase();
    let plural = if kind.ends_with('s') { "" } else { "s" };
    format!("{name}/{namespace}/{kind}{plural}/{}", target.name).to_lowercase()
}

impl Event<Metrics> for Looked<'_> {
    /// Whoever has it looked at says so already.
    fn log(&self) {}

    fn count(&self, metrics: &Metrics) {
        let error = result(self.failed);
        let look = Look {
            crd_name: Key::of(self.service).to_string(),
            error,
        };
        let seconds = self.took.as_secs_f64();
        metrics.looks.get_or_create(&look).observe(seconds);
        metrics.handled(self.service, error);
    }
}

impl Event<Metrics> for Finalized {
    fn log(&self) {}

    /// Without a name: what is gone would be shown for ever.
    fn count(&self, metrics: &Metrics) {
        let look = Look {
            crd_name: String::new(),
            error: result(self.failed),
        };
        metrics.finalizers.get_or_create(&look).inc();
    }
}

impl Event<Metrics> for Updated<'_> {
    fn log(&self) {}

    fn count(&self, metrics: &Metrics) {
        let [proxy, serve, none] = MODES;
        let update = Update {
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

impl Event<Metrics> for Watched<'_> {
    fn log(&self) {}

    fn count(&self, metrics: &Metrics) {
        let name = || self.0.to_owned();
        let watch = Watch {
            informer_name: name(),
        };
        metrics.watches.get_or_create(&watch).inc();
        let begun = Begun {
            crd_name: name(),
            action: "add",
            error: result(false),
        };
        metrics.begun.get_or_create(&begun).inc();
    }
}

impl Event<Metrics> for Gone<'_> {
    fn log(&self) {}

    fn count(&self, metrics: &Metrics) {
        metrics.forget(self.0);
    }
}

/// Whether resolvers answer for each. Counted when it is asked, so what is gone is not shown.
#[derive(Debug)]
struct Modes(Cache<ElastiService>);

impl Collector for Modes {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (name, help) = (
            "elasti_operator_mode",
            "Whether resolvers answer for an ElastiService",
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
