//! The only source of time.
//!
//! Timestamps that people and objects see come from [`Clock::now`]; waiting and measuring go by
//! [`Clock::uptime`], which no correction of the wall clock moves. Under tokio's paused clock both
//! stand still until everybody waits.

use std::{future::Future, time::Duration};

use jiff::{SignedDuration, Timestamp};
use tokio::time::{self, Instant};

/// A clock that was handed to somebody; copies tell the same time.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    origin: Instant,
    wall: Wall,
}

#[derive(Debug, Clone, Copy)]
enum Wall {
    /// As the machine has it.
    System,
    /// From a moment of one's choice, at tokio's pace.
    From(Timestamp),
}

/// A time on one process's own scale: how long after its clock was made. It means nothing to
/// anybody else.
pub type Uptime = Duration;

impl Clock {
    /// The time of the machine.
    pub fn system() -> Self {
        Self::new(Wall::System)
    }

    /// A clock that shows `now` and goes at tokio's pace, which a test may pause.
    pub fn starting_at(now: Timestamp) -> Self {
        Self::new(Wall::From(now))
    }

    fn new(wall: Wall) -> Self {
        Self {
            origin: Instant::now(),
            wall,
        }
    }

    /// The same clock with its hands moved, as on a machine that is not in time.
    pub fn skewed(self, by: SignedDuration) -> Self {
        let shown = self.now();
        Self::starting_at(shown.checked_add(by).unwrap_or(shown))
    }

    /// What the hands show.
    #[expect(clippy::disallowed_methods, reason = "this is where time comes from")]
    pub fn now(&self) -> Timestamp {
        match self.wall {
            Wall::System => Timestamp::now(),
            Wall::From(epoch) => epoch.checked_add(self.uptime()).unwrap_or(Timestamp::MAX),
        }
    }

    /// How long this clock has been going.
    pub fn uptime(&self) -> Uptime {
        self.origin.elapsed()
    }

    /// Resolves once `duration` has passed.
    pub async fn sleep(&self, duration: Duration) {
        time::sleep(duration).await;
    }

    /// Resolves when this clock has been going for `moment`; at once if that is past.
    pub async fn sleep_until(&self, moment: Uptime) {
        match self.origin.checked_add(moment) {
            Some(instant) => time::sleep_until(instant).await,
            None => std::future::pending().await,
        }
    }

    /// What `work` came to, unless it took longer than `limit`.
    pub async fn within<T>(&self, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
        time::timeout(limit, work).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn hands_and_uptime_follow_a_paused_clock() {
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        clock.sleep(Duration::from_hours(3)).await;
        assert_eq!(clock.now().to_string(), "2026-01-01T03:00:00Z");
        assert_eq!(clock.uptime(), Duration::from_hours(3));
        clock.sleep_until(Duration::from_hours(1)).await;
        assert_eq!(clock.uptime(), Duration::from_hours(3));
    }

    #[tokio::test(start_paused = true)]
    async fn skew_moves_the_hands_and_nothing_else() {
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        let late = clock.skewed(SignedDuration::from_secs(-90));
        assert_eq!(late.now().to_string(), "2025-12-31T23:58:30Z");
        clock.sleep(Duration::from_secs(30)).await;
        assert_eq!(late.now().to_string(), "2025-12-31T23:59:00Z");
        assert_eq!(late.uptime(), Duration::from_secs(30));
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_takes_too_long_comes_to_nothing() {
        let clock = Clock::system();
        let limit = Duration::from_secs(5);
        assert_eq!(clock.within(limit, async { 1 }).await, Some(1));
        let forever = std::future::pending::<u8>();
        assert_eq!(clock.within(limit, forever).await, None);
    }
}
