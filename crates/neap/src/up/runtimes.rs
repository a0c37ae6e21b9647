//! The two runtimes of the process: one for requests, and one with low priority for background tasks.

use std::{io, thread};

use rustix::process::nice;
use tokio::runtime::{Builder, Handle, Runtime};

/// Added to the nice value of background threads, so that requests go first.
const NICE_INCREMENT: i32 = 10;

/// The runtimes of `neap up`.
pub(super) struct Runtimes {
    foreground: Runtime,
    background: Runtime,
}

impl Runtimes {
    pub(super) fn start() -> io::Result<Self> {
        // Half of the cores stay free for small requests.
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Ok(Self {
            foreground: Builder::new_multi_thread().enable_all().build()?,
            background: Builder::new_multi_thread()
                .worker_threads((cores / 2).max(1))
                .thread_name("background")
                .on_thread_start(lower_priority)
                .enable_all()
                .build()?,
        })
    }

    /// Runs `task` to completion; it gets the handle of the background runtime.
    pub(super) fn run<F: Future>(&self, task: impl FnOnce(Handle) -> F) -> F::Output {
        self.foreground
            .block_on(task(self.background.handle().clone()))
    }

    /// Shuts down without waiting for tasks that still run.
    pub(super) fn shut_down(self) {
        self.foreground.shutdown_background();
        self.background.shutdown_background();
    }
}

/// On Linux, nice applies to the calling thread; elsewhere it would apply to the whole process.
fn lower_priority() {
    if cfg!(target_os = "linux")
        && let Err(error) = nice(NICE_INCREMENT)
    {
        tracing::debug!(%error, "cannot lower the priority of a background thread");
    }
}
