//! A tracing subscriber that scans every log line and span of a run for canaries.

use std::{
    fmt::{self, Write},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    level_filters::LevelFilter,
    span::{Attributes, Id, Record},
};

use super::shows;

/// Leaks recorded per run; more would repeat them.
const MAX_LEAKS: usize = 5;

tokio::task_local! {
    /// Set while a user's request is in progress: the user's client may log what it sent.
    static USER: ();
}

/// Runs `request` as a user. The API server may repeat a refused request to its sender, so it may
/// appear in the log of the user's own client, and nowhere else.
pub(crate) fn as_user<F: Future>(request: F) -> impl Future<Output = F::Output> {
    USER.scope((), request)
}

fn is_a_users(metadata: &Metadata<'_>) -> bool {
    metadata.target().starts_with("kube_client") && USER.try_with(|()| ()).is_ok()
}

/// Scans everything logged on this thread. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct LogScanner {
    leaks: Arc<Mutex<Vec<String>>>,
    spans: Arc<AtomicU64>,
}

impl LogScanner {
    /// The log lines that contained a canary.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.leaks.lock())
    }

    fn scan(&self, metadata: &Metadata<'_>, fields: impl FnOnce(&mut FieldText)) {
        if is_a_users(metadata) {
            return;
        }
        let mut text = FieldText(String::new());
        fields(&mut text);
        if shows(&text.0) {
            let mut leaks = self.leaks.lock();
            if leaks.len() < MAX_LEAKS {
                let (level, target) = (metadata.level(), metadata.target());
                leaks.push(format!("{level} {target}:{}", text.0));
            }
        }
    }
}

/// The fields of a log line as text.
struct FieldText(String);

impl Visit for FieldText {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string does not fail.
        let _ = write!(self.0, " {field}={value:?}");
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let _ = write!(self.0, " {field}={value}");
    }
}

impl Subscriber for LogScanner {
    /// Every level is scanned, whatever level a user would configure.
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::TRACE)
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.scan(span.metadata(), |text| span.record(text));
        Id::from_u64(1 + self.spans.fetch_add(1, Ordering::Relaxed))
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        let mut text = FieldText(String::new());
        values.record(&mut text);
        if shows(&text.0) {
            self.leaks.lock().push(format!("a span:{}", text.0));
        }
    }

    fn event(&self, event: &Event<'_>) {
        self.scan(event.metadata(), |text| event.record(text));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
