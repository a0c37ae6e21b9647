//! What there is one of in a process, and everybody who works in it adds to.

use std::{fmt, sync::Arc};

use parking_lot::Mutex;

use crate::controller::QueueState;

type View = Box<dyn Fn() -> QueueState + Send + Sync>;

/// The queues of a process. Cheap to copy.
#[derive(Clone, Default)]
pub struct Process {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    queues: Mutex<Vec<View>>,
}

impl Process {
    /// Adds a queue to what can be seen of the process.
    pub fn show(&self, queue: impl Fn() -> QueueState + Send + Sync + 'static) {
        self.shared.queues.lock().push(Box::new(queue));
    }

    /// Every queue as it is now.
    pub fn queues(&self) -> Vec<QueueState> {
        self.shared
            .queues
            .lock()
            .iter()
            .map(|view| view())
            .collect()
    }

    /// What was counted, for Prometheus.
    pub fn metrics(&self) -> String {
        String::new()
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process")
            .field("queues", &self.shared.queues.lock().len())
            .finish_non_exhaustive()
    }
}
