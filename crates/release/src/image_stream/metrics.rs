//! How imports end, what they cost registries, and how many tags fail.

use std::fmt;

use neap_kit::{
    context::Context,
    telemetry::{Meter, TelemetryEvent},
    watch::Cache,
};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric},
    metrics::{MetricType, counter::Counter, family::Family, gauge::ConstGauge},
    registry::Registry,
};

use super::{
    api::{ImageStream, NamedTagEventList},
    record::ImportFailure,
};

/// Counts what the controller does.
#[derive(Debug)]
pub(super) struct ImportMeter(Meter<ImportMetrics>);

#[derive(Debug)]
pub(super) struct ImportMetrics {
    imports: Family<ResultLabel, Counter>,
    requests: Counter,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabel {
    result: &'static str,
}

impl ImportMeter {
    pub(super) fn register(context: &Context, streams: Cache<ImageStream>) -> Self {
        let telemetry = context.watches.process().telemetry();
        telemetry.meter(|registry| registry.register_collector(Box::new(Tags { streams })));
        Self(telemetry.meter(ImportMetrics::register))
    }

    pub(super) fn emit(&self, ended: &ImportEnded<'_>) {
        self.0.emit(ended);
    }
}

impl ImportMetrics {
    fn register(registry: &mut Registry) -> Self {
        let imports = Family::<ResultLabel, Counter>::default();
        registry.register(
            "release_image_imports",
            "Imports of image stream tags by result: Imported, or the reason of the failure",
            imports.clone(),
        );
        let requests = Counter::default();
        registry.register(
            "release_image_import_requests",
            "Requests that imports sent to registries and their token services",
            requests.clone(),
        );
        Self { imports, requests }
    }
}

/// An import ended.
#[derive(Debug)]
pub(super) struct ImportEnded<'a> {
    pub(super) tag: &'a str,
    /// The requests that it took.
    pub(super) requests: u32,
    /// Why it failed.
    pub(super) result: Result<(), &'a ImportFailure>,
}

impl TelemetryEvent<ImportMetrics> for ImportEnded<'_> {
    fn log(&self) {
        let (tag, requests) = (self.tag, self.requests);
        match self.result {
            Ok(()) => tracing::debug!(tag, requests, "imported"),
            Err(failure) => {
                tracing::debug!(tag, requests, reason = failure.reason, "not imported");
            }
        }
    }

    fn count(&self, metrics: &ImportMetrics) {
        metrics.requests.inc_by(u64::from(self.requests));
        let result = self.result.map_or_else(|it| it.reason, |()| "Imported");
        metrics.imports.get_or_create(&ResultLabel { result }).inc();
    }
}

/// Collects on each scrape: nothing has to be stored, and tags of deleted streams are not counted.
#[derive(Debug)]
struct Tags {
    streams: Cache<ImageStream>,
}

impl Collector for Tags {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let (mut tags, mut failing) = (0, 0);
        for stream in self.streams.list("") {
            let all = stream.status.iter().flat_map(|status| &status.tags);
            failing += all
                .filter(|tag| NamedTagEventList::import_failed(tag))
                .count();
            tags += stream.spec.tags.len();
        }
        for (name, help, count) in [
            (
                "release_image_stream_tags",
                "Tags of image streams that are watched",
                tags,
            ),
            (
                "release_image_stream_tags_failing",
                "Tags of image streams whose last import failed",
                failing,
            ),
        ] {
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(count as i64).encode(metric)?;
        }
        Ok(())
    }
}
