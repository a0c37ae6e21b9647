//! Real time, for budgets.

use std::time::{Duration, Instant};

/// Runs from when it was started.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// From now on.
    #[expect(clippy::disallowed_methods, reason = "a budget is one of real time")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// So long it has run.
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}
