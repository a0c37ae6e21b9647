//! What there is one of in a process, and everybody who works in it adds to.

mod queue;

use std::{fmt, sync::Arc};

use parking_lot::Mutex;

use crate::{
    apply::Witness,
    echo::Observer,
    telemetry::{Pages, Telemetry},
};

pub use self::queue::{Keys, QueueState};

type View = Box<dyn Fn() -> QueueState + Send + Sync>;

/// The queues and numbers of a process. Cheap to copy.
#[derive(Clone, Default)]
pub struct Process {
    telemetry: Telemetry,
    witness: Option<Arc<dyn Witness>>,
    observer: Option<Arc<dyn Observer>>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    queues: Mutex<Vec<View>>,
}

impl Process {
    /// The same process, of whose writes `witness` is told.
    pub fn witnessed_by(mut self, witness: Arc<dyn Witness>) -> Self {
        self.witness = Some(witness);
        self
    }

    /// Who is told of writes.
    pub fn witness(&self) -> Option<&Arc<dyn Witness>> {
        self.witness.as_ref()
    }

    /// The same process, of whose reconciles `observer` is told.
    pub fn observed_by(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Who is told of reconciles.
    pub fn observer(&self) -> Option<&Arc<dyn Observer>> {
        self.observer.as_ref()
    }

    /// What it counts.
    pub fn telemetry(&self) -> &Telemetry {
        &self.telemetry
    }

    /// Adds a queue to what can be seen of the process.
    pub fn show(&self, queue: impl Fn() -> QueueState + Send + Sync + 'static) {
        self.shared.queues.lock().push(Box::new(queue));
    }

    /// Every queue as it is now.
    pub fn queues(&self) -> Vec<QueueState> {
        let queues = self.shared.queues.lock();
        queues.iter().map(|view| view()).collect()
    }

    /// What was counted, and how full the queues are, as Prometheus reads it.
    pub fn metrics(&self) -> String {
        let mut text = String::new();
        self.count(&mut text);
        text
    }

    /// The same, to be sent.
    pub fn pages(&self) -> Pages {
        let mut pages = Pages::default();
        self.count(&mut pages);
        pages
    }

    fn count(&self, out: &mut impl fmt::Write) {
        for queue in self.queues() {
            let states = [
                ("running", &queue.running),
                ("waiting", &queue.waiting),
                ("failing", &queue.failing),
            ];
            for (state, keys) in states {
                let metrics = self.telemetry.metrics();
                metrics.show_queue(queue.controller, state, keys.count);
            }
        }
        // Neither a string nor pages refuse what is written to them.
        let _ = self.telemetry.write(out);
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process")
            .field("queues", &self.shared.queues.lock().len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_show_how_full_the_queues_are_now() {
        let process = Process::default();
        process.show(|| QueueState {
            controller: "sorter",
            paused: false,
            running: Keys::default(),
            waiting: Keys::of(["a", "b"].map(str::to_owned).into_iter()),
            failing: Keys::default(),
        });
        let waiting = r#"neaptide_queue_keys{controller="sorter",state="waiting"} 2"#;
        let running = r#"neaptide_queue_keys{controller="sorter",state="running"} 0"#;
        let text = process.metrics();
        assert!(text.contains(waiting) && text.contains(running), "{text}");
    }
}
