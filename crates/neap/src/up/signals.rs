//! The signals that stop the process: SIGINT, SIGTERM and SIGHUP.

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::{Exit, Failure};

/// Signals within this time of the first count as duplicates of it.
const DUPLICATE_WINDOW: Duration = Duration::from_millis(300);

/// Receives signals from its creation on, so that none is lost before the first wait.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    pub(crate) fn listen() -> Result<Self, Failure> {
        let on = |kind| {
            signal(kind).map_err(|error| {
                Failure::new(
                    "NT-UP-0009",
                    Exit::Failed,
                    "cannot listen for signals",
                    &error.to_string(),
                )
                .remedy("check the limit on open files: ulimit -n")
            })
        };
        Ok(Self {
            interrupt: on(SignalKind::interrupt())?,
            terminate: on(SignalKind::terminate())?,
            hangup: on(SignalKind::hangup())?,
        })
    }

    /// Resolves at the next signal that is not a duplicate of the one just received. `timeout` and
    /// terminals signal both the process and its process group, which counts once.
    pub(crate) async fn next_distinct(&mut self) {
        let duplicates = async {
            loop {
                self.next().await;
            }
        };
        let _: Result<(), _> = tokio::time::timeout(DUPLICATE_WINDOW, duplicates).await;
        self.next().await;
    }

    /// Resolves at the next signal to stop.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}
