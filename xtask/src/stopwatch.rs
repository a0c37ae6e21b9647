//! How long something takes.

use std::{
    fmt,
    time::{Duration, Instant},
};

/// Runs from the moment it is made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(
        clippy::disallowed_methods,
        reason = "measures this tool's own work; no product code sees it"
    )]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

impl fmt::Display for Stopwatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let elapsed = self.elapsed();
        if elapsed < Duration::from_secs(1) {
            f.pad(&format!("{} ms", elapsed.as_millis()))
        } else {
            f.pad(&format!("{:.1} s", elapsed.as_secs_f64()))
        }
    }
}
