//! An environment for tests: time that follows tokio's clock, randomness from a seed.
//!
//! Under a paused tokio clock hours pass in milliseconds, and two runs with the same seed are the
//! same run.

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{BoxFuture, Clock, Entropy, Environment, Spawn};

/// The start time of every test environment: 2026-01-01T00:00:00Z.
const START_SECOND: i64 = 1_767_225_600;

struct FollowTokio {
    start: Instant,
}

impl Clock for FollowTokio {
    fn now(&self) -> Timestamp {
        let passed = SignedDuration::try_from(self.start.elapsed()).unwrap_or_default();
        let beginning = Timestamp::from_second(START_SECOND).unwrap_or(Timestamp::UNIX_EPOCH);
        beginning.saturating_add(passed).unwrap_or(beginning)
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// A splitmix generator: small, fast, and the same everywhere.
struct Seeded(Mutex<u64>);

impl Entropy for Seeded {
    fn fill(&self, bytes: &mut [u8]) {
        let mut state = self.0.lock();
        for chunk in bytes.chunks_mut(8) {
            *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = *state;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^= mixed >> 31;
            chunk.copy_from_slice(&mixed.to_le_bytes()[..chunk.len()]);
        }
    }
}

struct SpawnOnTokio;

impl Spawn for SpawnOnTokio {
    #[expect(
        clippy::disallowed_methods,
        reason = "a test's runtime is its supervisor: it ends all tasks with the test"
    )]
    fn spawn(&self, _name: &'static str, task: BoxFuture<()>) {
        tokio::spawn(task);
    }
}

impl Environment {
    /// An environment for a test. Must be called inside a tokio runtime.
    pub fn simulated(seed: u64) -> Self {
        Self {
            clock: Arc::new(FollowTokio {
                start: Instant::now(),
            }),
            entropy: Arc::new(Seeded(Mutex::new(seed))),
            spawner: Arc::new(SpawnOnTokio),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn hours_pass_at_once_and_seeds_repeat() {
        let (one, two) = (Environment::simulated(7), Environment::simulated(7));
        assert_eq!(one.uuid(), two.uuid());
        assert_ne!(one.uuid(), Environment::simulated(8).uuid());
        assert_eq!(one.timestamp(), "2026-01-01T00:00:00Z");
        one.clock.sleep(Duration::from_hours(1)).await;
        assert_eq!(one.timestamp(), "2026-01-01T01:00:00Z");
    }
}
