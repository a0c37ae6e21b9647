//! How registries are doing: a budget of requests per hour, and a delay after failures. Pure but for the
//! lock; shared by all imports of a process.

use std::{collections::BTreeMap, time::Duration};

use neap_kit::clock::Uptime;
use parking_lot::Mutex;

/// The first delay after a failure.
const FIRST_DELAY: Duration = Duration::from_secs(10);
/// The longest delay after failures, and the longest that a registry may ask for.
const MAX_DELAY: Duration = Duration::from_mins(15);
const HOUR: Duration = Duration::from_hours(1);
/// Registries that are remembered; what is older is forgotten first.
const MAX_REGISTRIES: usize = 1000;

/// Budgets and delays by registry.
#[derive(Debug)]
pub struct Registries {
    per_hour: u32,
    by_host: Mutex<BTreeMap<String, Registry>>,
}

#[derive(Debug, Clone, Copy)]
struct Registry {
    /// Requests that may be sent now; grows with time up to the burst.
    tokens: f64,
    filled_at: Uptime,
    failures: u32,
    /// When the last of these failures was noted.
    failed_at: Option<Uptime>,
    not_before: Uptime,
}

/// What may be asked of a registry now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// Imports that may be begun.
    pub imports: u32,
    /// The time after which there may be more, if there are none.
    pub wait: Duration,
}

/// The requests for which an import needs room: for the registry's challenge, for a token, for the tag, for the
/// manifest, and for the image of a list. What it did not use is given back; what it used in addition, as for a token
/// that ended, is missing for the next.
pub const REQUESTS_PER_IMPORT: u32 = 5;

impl Registries {
    /// Registries of which each is asked at most this many times per hour.
    pub fn new(per_hour: u32) -> Self {
        Self {
            per_hour: per_hour.max(REQUESTS_PER_IMPORT),
            by_host: Mutex::default(),
        }
    }

    /// A tenth of the budget may be used at once.
    fn burst(&self) -> f64 {
        f64::from((self.per_hour / 10).max(REQUESTS_PER_IMPORT))
    }

    fn rate(&self) -> f64 {
        f64::from(self.per_hour) / HOUR.as_secs_f64()
    }

    /// What may be asked of a registry now.
    pub fn allowance(&self, host: &str, now: Uptime) -> Allowance {
        let mut by_host = self.by_host.lock();
        let registry = self.entry(&mut by_host, host, now);
        if now < registry.not_before {
            return Allowance {
                imports: 0,
                wait: registry.not_before.saturating_sub(now),
            };
        }
        let whole = f64::from(REQUESTS_PER_IMPORT);
        // After a failure, one import finds out whether the registry works again.
        let possible = (registry.tokens / whole) as u32;
        let imports = if registry.failures > 0 {
            possible.min(1)
        } else {
            possible
        };
        let missing = (whole - registry.tokens).max(0.0);
        let wait = Duration::from_secs_f64(missing / self.rate());
        Allowance { imports, wait }
    }

    /// Takes the requests of `imports` that are begun.
    pub fn begin(&self, host: &str, imports: u32, now: Uptime) {
        let mut by_host = self.by_host.lock();
        let registry = self.entry(&mut by_host, host, now);
        registry.tokens -= f64::from(imports * REQUESTS_PER_IMPORT);
    }

    /// Takes the requests that an import sent, in place of those for which it had room.
    pub fn end(&self, host: &str, sent: u32, now: Uptime) {
        let burst = self.burst();
        let mut by_host = self.by_host.lock();
        let registry = self.entry(&mut by_host, host, now);
        let unused = f64::from(REQUESTS_PER_IMPORT) - f64::from(sent);
        registry.tokens = (registry.tokens + unused).min(burst);
    }

    /// Notes that the registry works.
    pub fn succeeded(&self, host: &str, now: Uptime) {
        let mut by_host = self.by_host.lock();
        self.entry(&mut by_host, host, now).failures = 0;
    }

    /// The time for which the registry is left alone after a failure.
    pub fn wait(&self, host: &str, now: Uptime) -> Duration {
        let by_host = self.by_host.lock();
        let registry = by_host.get(host);
        registry.map_or(Duration::ZERO, |it| it.not_before.saturating_sub(now))
    }

    /// Notes that a request that began then has failed, and returns how long the registry is left alone. An outage
    /// counts once: requests that had begun before a failure was noted fail for the same reason, and do not make
    /// the delay longer. A registry that asks for a longer one gets it.
    pub fn failed(
        &self,
        host: &str,
        retry_after: Option<Duration>,
        began: Uptime,
        now: Uptime,
    ) -> Duration {
        let mut by_host = self.by_host.lock();
        let registry = self.entry(&mut by_host, host, now);
        let mut delay = retry_after.unwrap_or_default();
        if registry.failed_at.is_none_or(|failed| began > failed) {
            delay = delay.max(FIRST_DELAY.saturating_mul(1 << registry.failures.min(10)));
            registry.failures = registry.failures.saturating_add(1);
            registry.failed_at = Some(now);
        }
        registry.not_before = registry.not_before.max(now + delay.min(MAX_DELAY));
        registry.not_before.saturating_sub(now)
    }

    fn entry<'a>(
        &self,
        by_host: &'a mut BTreeMap<String, Registry>,
        host: &str,
        now: Uptime,
    ) -> &'a mut Registry {
        if by_host.len() >= MAX_REGISTRIES && !by_host.contains_key(host) {
            let oldest = by_host
                .iter()
                .min_by_key(|(_, registry)| registry.filled_at);
            if let Some(oldest) = oldest.map(|(host, _)| host.clone()) {
                by_host.remove(&oldest);
            }
        }
        let (burst, rate) = (self.burst(), self.rate());
        let registry = by_host.entry(host.to_owned()).or_insert(Registry {
            tokens: burst,
            filled_at: now,
            failures: 0,
            failed_at: None,
            not_before: now,
        });
        let passed = now.saturating_sub(registry.filled_at);
        registry.tokens = (registry.tokens + passed.as_secs_f64() * rate).min(burst);
        registry.filled_at = now;
        registry
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_registry_that_fails_is_left_alone_longer_each_time() {
        let registries = Registries::new(3600);
        let first = registries.failed("r", None, SECOND, SECOND);
        assert_eq!(first, FIRST_DELAY);
        assert_eq!(
            registries.allowance("r", SECOND),
            Allowance {
                imports: 0,
                wait: FIRST_DELAY
            }
        );
        assert!(registries.allowance("other", SECOND).imports > 10);
        let now = SECOND + FIRST_DELAY;
        assert_eq!(registries.allowance("r", now).imports, 1, "one finds out");
        assert_eq!(registries.failed("r", None, now, now), FIRST_DELAY * 2);
        let asked = registries.failed("r", Some(SECOND * 300), now, now);
        assert_eq!(asked, SECOND * 300);
        let asked = registries.failed("r", Some(HOUR * 9), now, now);
        assert_eq!(asked, MAX_DELAY);
        registries.succeeded("r", now + MAX_DELAY);
        assert!(registries.allowance("r", now + MAX_DELAY).imports > 1);
    }

    #[test]
    fn an_outage_counts_once_however_many_imports_run() {
        let registries = Registries::new(3600);
        let ends = (2..10).map(|second| SECOND * second);
        for now in ends {
            registries.failed("r", None, SECOND, now);
        }
        let now = SECOND * 2 + FIRST_DELAY;
        assert_eq!(registries.wait("r", now), Duration::ZERO);
        assert_eq!(
            registries.failed("r", None, now, now + SECOND),
            FIRST_DELAY * 2,
            "the import that found out"
        );
    }

    #[test]
    fn what_an_import_sends_without_room_is_missing_for_the_next() {
        let registries = Registries::new(60);
        let at_once = registries.allowance("r", SECOND).imports;
        assert_eq!(at_once, 1, "a tenth of the budget is room for one");
        registries.begin("r", 1, SECOND);
        registries.end("r", 2, SECOND);
        let wait = registries.allowance("r", SECOND).wait;
        assert_eq!(
            wait,
            SECOND * 60,
            "four requests are left, and five are needed"
        );
        let now = SECOND + wait;
        registries.begin("r", 1, now);
        registries.end("r", 12, now);
        let left = registries.allowance("r", now);
        assert_eq!((left.imports, left.wait), (0, SECOND * 60 * 12));
    }

    proptest! {
        #[test]
        fn requests_per_hour_are_bounded(
            per_hour in 3_u32..5000,
            steps in prop::collection::vec((0_u64..60, 0_u32..9), 1..400),
        ) {
            let registries = Registries::new(per_hour);
            let (mut now, mut sent) = (Duration::ZERO, Vec::new());
            for (step, requests) in steps {
                now += Duration::from_secs(step);
                // Of those that may begin, one does, and sends as many requests as it likes.
                if registries.allowance("r", now).imports > 0 {
                    registries.begin("r", 1, now);
                    registries.end("r", requests, now);
                    sent.push((now, requests));
                }
            }
            for (start, _) in &sent {
                let within = sent.iter().filter(|(at, _)| at >= start && *at < *start + HOUR);
                let requests: u32 = within.map(|(_, requests)| requests).sum();
                // The budget, what had been saved up before, and what the last import sent without room.
                let per_hour = f64::from(per_hour.max(REQUESTS_PER_IMPORT));
                let bound = per_hour + registries.burst() + 8.0;
                prop_assert!(f64::from(requests) <= bound, "{requests} > {bound}");
            }
        }
    }
}
