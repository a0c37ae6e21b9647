//! How long something takes.

use std::time::{Duration, Instant};

/// Runs from the moment it is made.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts it.
    #[expect(
        clippy::disallowed_methods,
        reason = "measures from outside; no product code sees it"
    )]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The time since it was started.
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}
