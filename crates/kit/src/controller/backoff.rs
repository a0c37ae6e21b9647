//! The delay before a failed key is retried.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

/// Exponential delays with jitter, so that keys which failed together are not retried together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The delay after the first failure.
    pub first: Duration,
    /// The longest delay.
    pub max: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(50),
            max: Duration::from_mins(5),
        }
    }
}

impl Backoff {
    /// The delay of `key` after this number of consecutive failures. Equal arguments give equal
    /// delays, so that a run can be reproduced.
    pub fn wait(&self, key: &impl Hash, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        let full = self.first.saturating_mul(1 << doublings).min(self.max);
        jitter(full, &(key, failures))
    }
}

/// A duration between three quarters of `full` and `full`, chosen by the hash of `seed`.
pub(super) fn jitter(full: Duration, seed: &impl Hash) -> Duration {
    let mut hasher = DefaultHasher::new();
    seed.hash(&mut hasher);
    let share = (hasher.finish() % 1024) as u32;
    full.saturating_sub(full / 4 * share / 1024)
}
