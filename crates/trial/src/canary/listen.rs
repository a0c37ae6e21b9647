//! Hears every log line and span of a run, and remembers those that show a canary.

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

/// So many are remembered; more would say the same.
const MOST: usize = 5;

tokio::task_local! {
    /// A user is at work here, whose client may tell it what it sent.
    static USER: ();
}

/// What `asks` comes to. A refusal may repeat what it refuses, to whoever sent it: that is in the log
/// of the user's own client and nowhere else.
pub(crate) fn by_a_user<F: Future>(asks: F) -> impl Future<Output = F::Output> {
    USER.scope((), asks)
}

fn is_a_users(metadata: &Metadata<'_>) -> bool {
    metadata.target().starts_with("kube_client") && USER.try_with(|()| ()).is_ok()
}

/// Whoever speaks on this thread is heard. Cheap to copy.
#[derive(Debug, Clone, Default)]
pub(crate) struct Listener {
    heard: Arc<Mutex<Vec<String>>>,
    spans: Arc<AtomicU64>,
}

impl Listener {
    /// What showed a canary.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.heard.lock())
    }

    fn hear(&self, metadata: &Metadata<'_>, fields: impl FnOnce(&mut Text)) {
        if is_a_users(metadata) {
            return;
        }
        let mut text = Text(String::new());
        fields(&mut text);
        if shows(&text.0) {
            let mut heard = self.heard.lock();
            if heard.len() < MOST {
                let (level, target) = (metadata.level(), metadata.target());
                heard.push(format!("{level} {target}:{}", text.0));
            }
        }
    }
}

/// The fields of a line.
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string does not fail.
        let _ = write!(self.0, " {field}={value:?}");
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let _ = write!(self.0, " {field}={value}");
    }
}

impl Subscriber for Listener {
    /// Everything, whatever a user would choose to see.
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::TRACE)
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.hear(span.metadata(), |text| span.record(text));
        Id::from_u64(1 + self.spans.fetch_add(1, Ordering::Relaxed))
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        let mut text = Text(String::new());
        values.record(&mut text);
        if shows(&text.0) {
            self.heard.lock().push(format!("a span:{}", text.0));
        }
    }

    fn event(&self, event: &Event<'_>) {
        self.hear(event.metadata(), |text| event.record(text));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
