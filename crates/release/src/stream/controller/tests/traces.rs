//! The traces of a look: what `OTEL_EXPORTER_OTLP_ENDPOINT` gets.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use tracing::{
    Event as LogEvent, Metadata, Subscriber,
    span::{Attributes, Id, Record},
};

use super::*;

/// Keeps the names of spans.
#[derive(Clone, Default)]
struct SpanNames {
    names: Arc<Mutex<BTreeSet<&'static str>>>,
    next: Arc<AtomicU64>,
}

impl Subscriber for SpanNames {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && metadata.target().starts_with("neap_release")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.names.lock().insert(span.metadata().name());
        Id::from_u64(self.next.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &LogEvent<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[tokio::test(start_paused = true)]
async fn each_look_is_a_span_with_its_parts() {
    let spans = SpanNames::default();
    let _guard = tracing::subscriber::set_default(spans.clone());
    let cluster = TestCluster::open(&periodics(&[])).await;
    cluster.declare(&integration(json!({}))).await;
    cluster.pass(SECOND * 5).await;
    // Other tests, which have no subscriber, may have been the first to come to a span: then it counts as unwanted.
    tracing::callsite::rebuild_interest_cache();
    spans.names.lock().clear();
    cluster.new_image(1).await;
    cluster.end_job(TAG, true).await;
    cluster.pass(SECOND * 5).await;
    let names = spans.names.lock().clone();
    let wanted = [
        "act",
        "decide",
        "facts",
        "release payload",
        "release stream",
    ];
    assert_eq!(names.into_iter().collect::<Vec<_>>(), wanted);
}
