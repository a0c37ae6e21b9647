//! The signals that mean "stop": Ctrl-C, SIGTERM, and the terminal going away.

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::{Exit, Failure};

/// Signals that come within this time are the same one.
const ECHO: Duration = Duration::from_millis(300);

/// Listens from the moment it is made, so no signal is lost before somebody waits for it.
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
                .remedy("look at the limit on open files: ulimit -n")
            })
        };
        Ok(Self {
            interrupt: on(SignalKind::interrupt())?,
            terminate: on(SignalKind::terminate())?,
            hangup: on(SignalKind::hangup())?,
        })
    }

    /// Resolves at the next signal after the one that was just heard. `timeout` and terminals send
    /// one to the process and another to its group, in the same moment: that is one wish.
    pub(crate) async fn again(&mut self) {
        let echoes = async {
            loop {
                self.next().await;
            }
        };
        let _: Result<(), _> = tokio::time::timeout(ECHO, echoes).await;
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
