//! How long a key that failed waits.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

/// Exponential waits, spread so that keys which failed together do not come back together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The wait after the first failure.
    pub first: Duration,
    /// No wait is longer.
    pub most: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(50),
            most: Duration::from_mins(5),
        }
    }
}

impl Backoff {
    /// The wait of `key` after so many failures in a row. The same for the same, so that a run can
    /// be repeated.
    pub fn wait(&self, key: &impl Hash, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        let full = self.first.saturating_mul(1 << doublings).min(self.most);
        spread(full, &(key, failures))
    }
}

/// Between three quarters of `full` and all of it, by what `seed` hashes to.
pub(super) fn spread(full: Duration, seed: &impl Hash) -> Duration {
    let mut hasher = DefaultHasher::new();
    seed.hash(&mut hasher);
    let share = (hasher.finish() % 1024) as u32;
    full.saturating_sub(full / 4 * share / 1024)
}
