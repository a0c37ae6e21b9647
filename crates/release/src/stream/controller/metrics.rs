//! How old the newest accepted release of each stream is.

use std::fmt;

use jiff::Timestamp;
use neap_kit::{clock::Clock, context::Context, watch::Cache};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, gauge::ConstGauge},
    registry::Unit,
};

use crate::{
    api::annotations,
    image_stream::api::ImageStream,
    stream::{StreamState, facts::annotation},
};

/// Registers the metric. It is collected on each scrape, so that a stream that is gone is not counted.
pub(super) fn register(context: &Context, streams: &Cache<ImageStream>) {
    let staleness = Staleness {
        streams: streams.clone(),
        clock: context.clock,
    };
    let telemetry = context.watches.process().telemetry();
    telemetry.meter(|registry| registry.register_collector(Box::new(staleness)));
}

#[derive(Debug)]
struct Staleness {
    streams: Cache<ImageStream>,
    clock: Clock,
}

impl Collector for Staleness {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let help = "Time since the newest accepted release was cut, or since the stream was made";
        let name = "release_stream_staleness";
        let unit = Unit::Seconds;
        let mut metric = encoder.encode_descriptor(name, help, Some(&unit), MetricType::Gauge)?;
        let now = self.clock.now();
        for source in self.streams.list("") {
            let Some((stream, seconds)) = staleness(&source, now) else {
                continue;
            };
            let namespace = source.metadata.namespace.as_deref().unwrap_or_default();
            let labels = [("namespace", namespace), ("stream", &stream)];
            ConstGauge::new(seconds).encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

/// The name of the stream of a source and its staleness in seconds; none if it has no state, or is over.
fn staleness(source: &ImageStream, now: Timestamp) -> Option<(String, i64)> {
    let state = annotation(source, annotations::STREAM_STATE)?;
    let state: StreamState = serde_json::from_str(state).ok()?;
    if state.stream.is_empty() || state.reason == "EndOfLife" {
        return None;
    }
    let made = source.metadata.creation_timestamp.as_ref().map(|it| it.0);
    let since = state.newest_accepted_at.or(made)?;
    let seconds = now.duration_since(since).as_secs().max(0);
    Some((state.stream, seconds))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn source(state: &serde_json::Value) -> ImageStream {
        serde_json::from_value(json!({
            "metadata": {
                "name": "s", "namespace": "ocp", "creationTimestamp": "2026-01-02T00:00:00Z",
                "annotations": {annotations::STREAM_STATE: state.to_string()},
            },
            "spec": {},
        }))
        .unwrap()
    }

    #[test]
    fn a_stream_is_as_stale_as_its_newest_accepted_release() {
        let now = "2026-01-02T01:00:00Z".parse().unwrap();
        let state = |more: &serde_json::Value| {
            let mut state = json!({"stream": "n", "reason": "UpToDate", "message": ""});
            state
                .as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            staleness(&source(&state), now)
        };
        let accepted = json!({"newestAcceptedAt": "2026-01-02T00:59:00Z"});
        assert_eq!(state(&accepted), Some(("n".to_owned(), 60)));
        assert_eq!(state(&json!({})), Some(("n".to_owned(), 3600)));
        assert_eq!(state(&json!({"reason": "EndOfLife"})), None);
        let ahead = json!({"newestAcceptedAt": "2026-01-02T02:00:00Z"});
        assert_eq!(
            state(&ahead),
            Some(("n".to_owned(), 0)),
            "a clock that jumped back"
        );
    }
}
