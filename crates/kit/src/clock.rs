//! The only source of time.
//!
//! Timestamps that people and objects see come from [`Clock::now`]; waiting and measuring use
//! [`Clock::uptime`], which no adjustment of the wall clock moves. Under tokio's paused clock both
//! stand still until all tasks wait.

use std::{future::Future, time::Duration};

use jiff::{SignedDuration, Timestamp};
use tokio::time::{self, Instant};

/// A clock. Copies show the same time.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    origin: Instant,
    wall: Wall,
}

#[derive(Debug, Clone, Copy)]
enum Wall {
    /// The wall clock of the machine.
    System,
    /// A chosen start, advanced by tokio's clock.
    StartingAt(Timestamp),
}

/// Time since the clock of this process was created. Not comparable with that of other processes.
pub type Uptime = Duration;

impl Clock {
    /// The wall clock of the machine.
    pub fn system() -> Self {
        Self::new(Wall::System)
    }

    /// A clock that starts at `now` and is advanced by tokio's clock, which a test may pause.
    pub fn starting_at(now: Timestamp) -> Self {
        Self::new(Wall::StartingAt(now))
    }

    fn new(wall: Wall) -> Self {
        Self {
            origin: Instant::now(),
            wall,
        }
    }

    /// The same clock with an offset, as on a machine whose wall clock is wrong.
    pub fn skewed(self, by: SignedDuration) -> Self {
        let shown = self.now();
        Self::starting_at(shown.checked_add(by).unwrap_or(shown))
    }

    /// The wall-clock time.
    #[expect(clippy::disallowed_methods, reason = "this is where time comes from")]
    pub fn now(&self) -> Timestamp {
        match self.wall {
            Wall::System => Timestamp::now(),
            Wall::StartingAt(epoch) => epoch.checked_add(self.uptime()).unwrap_or(Timestamp::MAX),
        }
    }

    /// The time since this clock was created.
    pub fn uptime(&self) -> Uptime {
        self.origin.elapsed()
    }

    /// Resolves once `duration` has passed.
    pub async fn sleep(&self, duration: Duration) {
        time::sleep(duration).await;
    }

    /// Resolves when the uptime reaches `moment`; at once if it has.
    pub async fn sleep_until(&self, moment: Uptime) {
        match self.origin.checked_add(moment) {
            Some(instant) => time::sleep_until(instant).await,
            None => std::future::pending().await,
        }
    }

    /// The output of `work`, or nothing if it takes longer than `limit`.
    pub async fn within<T>(&self, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
        time::timeout(limit, work).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn wall_time_and_uptime_follow_a_paused_clock() {
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        clock.sleep(Duration::from_hours(3)).await;
        assert_eq!(clock.now().to_string(), "2026-01-01T03:00:00Z");
        assert_eq!(clock.uptime(), Duration::from_hours(3));
        clock.sleep_until(Duration::from_hours(1)).await;
        assert_eq!(clock.uptime(), Duration::from_hours(3));
    }

    #[tokio::test(start_paused = true)]
    async fn skew_moves_wall_time_and_not_uptime() {
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        let late = clock.skewed(SignedDuration::from_secs(-90));
        assert_eq!(late.now().to_string(), "2025-12-31T23:58:30Z");
        clock.sleep(Duration::from_secs(30)).await;
        assert_eq!(late.now().to_string(), "2025-12-31T23:59:00Z");
        assert_eq!(late.uptime(), Duration::from_secs(30));
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_exceeds_the_limit_returns_nothing() {
        let clock = Clock::system();
        let limit = Duration::from_secs(5);
        assert_eq!(clock.within(limit, async { 1 }).await, Some(1));
        let forever = std::future::pending::<u8>();
        assert_eq!(clock.within(limit, forever).await, None);
    }
}
