//! The threads of the process: those that answer, and patient ones that let the others go first.

use std::{io, thread};

use rustix::process::nice;
use tokio::runtime::{Builder, Handle, Runtime};

/// How far patient threads stand back. Among themselves and others like them they still get on.
const BACK: i32 = 10;

/// Both kinds of threads.
pub(super) struct Threads {
    quick: Runtime,
    patient: Runtime,
}

impl Threads {
    pub(super) fn start() -> io::Result<Self> {
        // Half of the machine is left to those who ask for little.
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Ok(Self {
            quick: Builder::new_multi_thread().enable_all().build()?,
            patient: Builder::new_multi_thread()
                .worker_threads((cores / 2).max(1))
                .thread_name("patient")
                .on_thread_start(stand_back)
                .enable_all()
                .build()?,
        })
    }

    /// Runs `task` to its end; it is told where patient tasks go.
    pub(super) fn run<F: Future>(&self, task: impl FnOnce(Handle) -> F) -> F::Output {
        self.quick.block_on(task(self.patient.handle().clone()))
    }

    /// What is still busy is dropped, not waited for.
    pub(super) fn end(self) {
        self.quick.shutdown_background();
        self.patient.shutdown_background();
    }
}

/// On Linux this is about the calling thread; elsewhere it would be about the whole process.
fn stand_back() {
    if cfg!(target_os = "linux")
        && let Err(error) = nice(BACK)
    {
        tracing::debug!(%error, "a patient thread is as quick as the others");
    }
}
