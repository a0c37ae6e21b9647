//! When registries that failed are asked again, for passes that go over many images: pure.

use std::{collections::BTreeMap, time::Duration};

use neap_kit::clock::Uptime;

/// Registries that are remembered. Streams name them, so they must not fill the memory.
const MAX_REGISTRIES: usize = 1000;

/// The registries that failed, until they work again.
#[derive(Debug, Clone)]
pub struct RegistryBackoff {
    first: Duration,
    max: Duration,
    failing: BTreeMap<String, FailingRegistry>,
}

#[derive(Debug, Clone, Copy)]
struct FailingRegistry {
    failures: u32,
    not_before: Uptime,
}

impl RegistryBackoff {
    /// Waits `first` after a failure, and twice as long after each further one, up to `max`.
    pub fn new(first: Duration, max: Duration) -> Self {
        Self {
            first,
            max,
            failing: BTreeMap::new(),
        }
    }

    /// The time until the registry may be asked; zero if it may be asked now.
    pub fn wait(&self, host: &str, now: Uptime) -> Duration {
        let failing = self.failing.get(host);
        failing.map_or(Duration::ZERO, |it| it.not_before.saturating_sub(now))
    }

    /// Whether it failed when it was asked last.
    pub fn is_failing(&self, host: &str) -> bool {
        self.failing.contains_key(host)
    }

    /// Notes that it failed, and for how long it wants to be left alone.
    pub fn failed(&mut self, host: &str, retry_after: Option<Duration>, now: Uptime) {
        let failures = self.failing.get(host).map_or(0, |it| it.failures);
        let delay = doubled(self.first, failures).min(self.max);
        let delay = delay.max(retry_after.unwrap_or_default().min(self.max));
        self.put(host, failures.saturating_add(1), now.saturating_add(delay));
    }

    /// Notes that it failed before, and may be asked.
    pub fn suspect(&mut self, host: &str, now: Uptime) {
        self.put(host, 1, now);
    }

    /// Notes that it works; true if it did not before.
    pub fn succeeded(&mut self, host: &str) -> bool {
        self.failing.remove(host).is_some()
    }

    fn put(&mut self, host: &str, failures: u32, not_before: Uptime) {
        if self.failing.len() >= MAX_REGISTRIES && !self.failing.contains_key(host) {
            let next = self.failing.iter().min_by_key(|(_, it)| it.not_before);
            if let Some(next) = next.map(|(host, _)| host.clone()) {
                self.failing.remove(&next);
            }
        }
        let state = FailingRegistry {
            failures,
            not_before,
        };
        self.failing.insert(host.to_owned(), state);
    }
}

/// A delay after this number of doublings.
pub fn doubled(first: Duration, doublings: u32) -> Duration {
    first.saturating_mul(1 << doublings.min(20))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    #[test]
    fn a_registry_waits_longer_after_each_failure_and_as_long_as_it_wants() {
        let mut backoff = RegistryBackoff::new(MINUTE, MINUTE * 10);
        let mut waits = Vec::new();
        for _ in 0..6 {
            backoff.failed("r", None, MINUTE);
            waits.push(backoff.wait("r", MINUTE).as_secs() / 60);
        }
        assert_eq!(waits, [1, 2, 4, 8, 10, 10]);
        assert_eq!(backoff.wait("r", MINUTE * 9), MINUTE * 2);
        assert_eq!(backoff.wait("other", MINUTE), Duration::ZERO);
        assert!(backoff.succeeded("r") && !backoff.succeeded("r"));
        backoff.failed("r", Some(MINUTE * 3), MINUTE);
        assert_eq!(backoff.wait("r", MINUTE), MINUTE * 3);
        backoff.failed("r", Some(MINUTE * 999), MINUTE);
        assert_eq!(backoff.wait("r", MINUTE), MINUTE * 10);
        assert!(backoff.is_failing("r") && !backoff.is_failing("other"));
    }

    #[test]
    fn the_number_of_registries_is_bounded() {
        let mut backoff = RegistryBackoff::new(MINUTE, MINUTE);
        for number in 0..2 * MAX_REGISTRIES {
            backoff.failed(&number.to_string(), None, MINUTE * number as u32);
        }
        assert_eq!(backoff.failing.len(), MAX_REGISTRIES);
        assert!(backoff.is_failing("1999") && !backoff.is_failing("0"));
    }
}
