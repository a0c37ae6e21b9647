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

/// A duration as kubectl prints ages: to the second while it is short, as `45s`, `3m12s`, `2h5m` or `3d`.
pub fn short_duration(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    let with = |whole: String, rest: i64, unit: char| match rest {
        0 => whole,
        rest => format!("{whole}{rest}{unit}"),
    };
    match seconds {
        ..120 => format!("{seconds}s"),
        120..600 => with(format!("{minutes}m"), seconds % 60, 's'),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => with(format!("{hours}h"), minutes % 60, 'm'),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => with(format!("{days}d"), hours % 24, 'h'),
        _ => format!("{days}d"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_durations_are_to_the_second_and_long_ones_are_not() {
        for (seconds, expected) in [
            (-1, "0s"),
            (119, "119s"),
            (192, "3m12s"),
            (240, "4m"),
            (3_599, "59m"),
            (10_800, "3h"),
            (11_100, "3h5m"),
            (90_000, "25h"),
            (180_000, "2d2h"),
            (864_000, "10d"),
        ] {
            assert_eq!(short_duration(seconds), expected, "{seconds}");
        }
    }

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
