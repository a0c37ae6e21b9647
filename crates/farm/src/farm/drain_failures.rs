//! Drains that a scheduler did not take. They are repeated with each poll, and not logged each time.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

/// After this time the same failure is logged again.
const LOG_INTERVAL: SignedDuration = SignedDuration::from_mins(10);

/// The failures that were logged, by the address of their scheduler.
#[derive(Debug, Default)]
pub(in crate::farm) struct DrainFailures(Mutex<BTreeMap<String, (String, Timestamp)>>);

impl DrainFailures {
    /// Whether a failure is logged: the first one, one with another cause, and one that lasts.
    pub(in crate::farm) fn is_news(&self, scheduler: &str, cause: &str, now: Timestamp) -> bool {
        let mut logged = self.0.lock();
        logged.retain(|_, (_, at)| now.duration_since(*at) < LOG_INTERVAL);
        let is_known = logged
            .get(scheduler)
            .is_some_and(|(known, _)| known == cause);
        if !is_known {
            logged.insert(scheduler.to_owned(), (cause.to_owned(), now));
        }
        !is_known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_that_lasts_is_logged_now_and_then() {
        let failures = DrainFailures::default();
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let logged = |seconds: i64, scheduler: &str, cause: &str| {
            let now = start + SignedDuration::from_secs(seconds);
            failures.is_news(scheduler, cause, now)
        };
        assert!(logged(0, "a", "refused"));
        let repeated = (1..599).filter(|second| logged(*second, "a", "refused"));
        assert_eq!(repeated.count(), 0);
        assert!(logged(1, "b", "refused"), "another scheduler");
        assert!(logged(2, "a", "no answer"), "another cause");
        assert!(!logged(3, "a", "no answer"));
        assert!(logged(602, "a", "no answer"), "it lasts");
    }
}
