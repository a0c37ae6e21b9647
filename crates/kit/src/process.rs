//! What a process has one of: telemetry, observers and the list of its queues.

mod queue;

use std::{fmt, sync::Arc};

use parking_lot::Mutex;

use crate::{
    apply::WriteObserver,
    own_writes::ReconcileObserver,
    telemetry::{ChunkedText, Telemetry},
};

pub use self::queue::{KeyList, QueueState};

type QueueView = Box<dyn Fn() -> QueueState + Send + Sync>;

/// The telemetry, observers and queues of a process. Cheap to clone; clones share them.
#[derive(Clone, Default)]
pub struct Process {
    telemetry: Telemetry,
    write_observer: Option<Arc<dyn WriteObserver>>,
    reconcile_observer: Option<Arc<dyn ReconcileObserver>>,
    queues: Arc<Mutex<Vec<QueueView>>>,
}

impl Process {
    /// The same process, whose writes are reported to `write_observer`.
    pub fn with_write_observer(mut self, write_observer: Arc<dyn WriteObserver>) -> Self {
        self.write_observer = Some(write_observer);
        self
    }

    /// The observer of writes.
    pub fn write_observer(&self) -> Option<&Arc<dyn WriteObserver>> {
        self.write_observer.as_ref()
    }

    /// The same process, whose reconciles are reported to `observer`.
    pub fn with_reconcile_observer(mut self, observer: Arc<dyn ReconcileObserver>) -> Self {
        self.reconcile_observer = Some(observer);
        self
    }

    /// The observer of reconciles.
    pub fn reconcile_observer(&self) -> Option<&Arc<dyn ReconcileObserver>> {
        self.reconcile_observer.as_ref()
    }

    /// The telemetry of all components.
    pub fn telemetry(&self) -> &Telemetry {
        &self.telemetry
    }

    /// Adds a queue to the metrics and to `/debug/state.json`. `view` is called for each snapshot.
    pub fn add_queue(&self, view: impl Fn() -> QueueState + Send + Sync + 'static) {
        self.queues.lock().push(Box::new(view));
    }

    /// A snapshot of every queue.
    pub fn queues(&self) -> Vec<QueueState> {
        let queues = self.queues.lock();
        queues.iter().map(|view| view()).collect()
    }

    /// All metrics, including the lengths of the queues, in the format of Prometheus.
    pub fn metrics(&self) -> String {
        let mut text = String::new();
        self.write_metrics(&mut text);
        text
    }

    /// The same as a response body.
    pub fn chunked_metrics(&self) -> ChunkedText {
        let mut text = ChunkedText::default();
        self.write_metrics(&mut text);
        text
    }

    fn write_metrics(&self, out: &mut impl fmt::Write) {
        for queue in self.queues() {
            let states = [
                ("running", &queue.running),
                ("waiting", &queue.waiting),
                ("failing", &queue.failing),
            ];
            for (state, keys) in states {
                let metrics = self.telemetry.metrics();
                metrics.set_queue_keys(queue.controller, state, keys.count);
            }
        }
        // Neither `String` nor `ChunkedText` returns an error.
        let _ = self.telemetry.write(out);
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process")
            .field("queues", &self.queues.lock().len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_show_the_current_length_of_each_queue() {
        let process = Process::default();
        process.add_queue(|| QueueState {
            controller: "sorter",
            paused: false,
            running: KeyList::default(),
            waiting: KeyList::new(["a", "b"].map(str::to_owned).into_iter()),
            failing: KeyList::default(),
        });
        let waiting = r#"neaptide_queue_keys{controller="sorter",state="waiting"} 2"#;
        let running = r#"neaptide_queue_keys{controller="sorter",state="running"} 0"#;
        let text = process.metrics();
        assert!(text.contains(waiting) && text.contains(running), "{text}");
    }
}
