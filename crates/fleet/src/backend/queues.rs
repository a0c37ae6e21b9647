//! How much work waits, as a metric.

use neap_kit::{
    telemetry::{Meter, Telemetry, TelemetryEvent},
    why::chain,
};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge},
};

use super::Backend;
use crate::documents::{CLUSTERS, QUEUE, SUBSCRIPTIONS};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QueueLabels {
    collection: &'static str,
}

/// The metrics of queues.
#[derive(Debug, Default)]
pub(super) struct QueueMetrics {
    lengths: Family<QueueLabels, Gauge>,
}

struct QueueMeasured {
    collection: &'static str,
    length: i64,
}

impl TelemetryEvent<QueueMetrics> for QueueMeasured {
    fn log(&self) {
        let (collection, length) = (self.collection, self.length);
        tracing::debug!(collection, length, "documents wait for work");
    }

    fn count(&self, metrics: &QueueMetrics) {
        let labels = QueueLabels {
            collection: self.collection,
        };
        metrics.lengths.get_or_create(&labels).set(self.length);
    }
}

/// The meter of queues.
pub(super) fn meter(telemetry: &Telemetry) -> Meter<QueueMetrics> {
    telemetry.meter(|registry| {
        let metrics = QueueMetrics::default();
        registry.register(
            "fleet_queue_length",
            "Documents that wait for work or are worked on",
            metrics.lengths.clone(),
        );
        metrics
    })
}

impl Backend {
    /// Measures the queues. All backends of a region measure the same.
    pub(super) async fn measure_queues(&self, meter: &Meter<QueueMetrics>) {
        for collection in [CLUSTERS, SUBSCRIPTIONS] {
            match self.store().queue_length(collection, QUEUE).await {
                Ok(length) => meter.emit(&QueueMeasured { collection, length }),
                Err(error) => {
                    let why = chain(&error);
                    tracing::warn!(why, collection, "the queue was not measured");
                }
            }
        }
    }
}
