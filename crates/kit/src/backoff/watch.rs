//! The delay before a failed watch is reopened.

use std::time::Duration;

use kube::runtime::{utils::Backoff, watcher::DefaultBackoff};

use crate::planted;

/// The delay before a failed watch is reopened: as in `client-go`, but at most
/// [`MAX_WATCH_BACKOFF`]. A cache that stays stale for a minute because the server was away for some
/// seconds does more harm than a request every few seconds.
#[derive(Default)]
pub(crate) struct WatchBackoff(DefaultBackoff);

const MAX_WATCH_BACKOFF: Duration = Duration::from_secs(5);

impl Iterator for WatchBackoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        planted!(WatchGivenUp => return Some(Duration::from_hours(1)));
        planted!(WatchAtOnce => return Some(Duration::ZERO));
        self.0.next().map(|wait| wait.min(MAX_WATCH_BACKOFF))
    }
}

impl Backoff for WatchBackoff {
    fn reset(&mut self) {
        self.0.reset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_failed_watch_is_reopened_within_seconds_after_any_number_of_failures() {
        let delays: Vec<_> = WatchBackoff::default().take(20).collect();
        assert_eq!(delays.len(), 20, "it never gives up");
        assert!(delays[0] < Duration::from_secs(2), "{delays:?}");
        assert!(
            delays.iter().all(|delay| *delay <= MAX_WATCH_BACKOFF),
            "{delays:?}"
        );
        assert_eq!(delays[19], MAX_WATCH_BACKOFF, "{delays:?}");
    }
}
