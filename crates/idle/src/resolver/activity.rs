//! Tracks when each service was last requested, for services whose activity the resolvers count.

use std::{collections::BTreeMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use neap_kit::{clock::Clock, key::Key};
use parking_lot::Mutex;

use crate::api::{Breakdown, wire::ColdStart};

/// Held requests that are answered within this time waited for the same wake.
const SAME_WAKE_WINDOW: SignedDuration = SignedDuration::from_mins(1);

/// The requests of every service. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ActivityTracker {
    clock: Clock,
    services: Arc<Mutex<BTreeMap<Key, ServiceRequests>>>,
}

/// The requests of one service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceRequests {
    /// When the last request or connection began or ended; now while one is open.
    pub last: Timestamp,
    /// Requests and connections since this resolver started.
    pub requests: u64,
    /// Those that are open.
    pub open: usize,
    /// The last one that was held; of several for the same wake, the one that waited longest.
    pub cold: Option<ColdStart>,
}

/// Counts a request or connection as open until dropped.
#[derive(Debug)]
pub struct OpenRequest {
    activity: ActivityTracker,
    service: Key,
}

impl ActivityTracker {
    /// No requests.
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            services: Arc::default(),
        }
    }

    /// Records a request or connection for a service.
    pub fn start_request(&self, service: &Key) -> OpenRequest {
        let last = self.clock.now();
        let mut services = self.services.lock();
        let record = services.entry(service.clone()).or_insert(ServiceRequests {
            last,
            requests: 0,
            open: 0,
            cold: None,
        });
        record.last = last;
        record.requests += 1;
        record.open += 1;
        OpenRequest {
            activity: self.clone(),
            service: service.clone(),
        }
    }

    /// Records that a held request was answered.
    pub fn record_cold_start(&self, service: &Key, breakdown: Breakdown) {
        let served = self.clock.now();
        let mut services = self.services.lock();
        let Some(record) = services.get_mut(service) else {
            return;
        };
        let longer = |other: &ColdStart| {
            let together = served.duration_since(other.served) < SAME_WAKE_WINDOW;
            together && other.breakdown.total() > breakdown.total()
        };
        if !record.cold.as_ref().is_some_and(longer) {
            record.cold = Some(ColdStart { served, breakdown });
        }
    }

    /// The requests of every service as of now.
    pub fn all(&self) -> BTreeMap<Key, ServiceRequests> {
        let now = self.clock.now();
        let services = self.services.lock().clone();
        let seen = services.into_iter().map(|(service, mut record)| {
            if record.open > 0 {
                record.last = now;
            }
            (service, record)
        });
        seen.collect()
    }

    /// Drops services that are no longer `known` and have nothing open.
    pub fn retain(&self, known: impl Fn(&Key) -> bool) {
        let mut services = self.services.lock();
        services.retain(|service, record| record.open > 0 || known(service));
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let last = self.activity.clock.now();
        let mut services = self.activity.services.lock();
        if let Some(record) = services.get_mut(&self.service) {
            record.open = record.open.saturating_sub(1);
            record.last = last;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_open_request_counts_as_activity_until_it_ends() {
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        let activity = ActivityTracker::new(clock);
        let service = Key::new("shop", "cart");
        let open = activity.start_request(&service);
        clock.sleep(Duration::from_mins(2)).await;
        let record = activity.all()[&service];
        assert_eq!(record.last.to_string(), "2026-01-01T00:02:00Z");
        assert_eq!((record.requests, record.open), (1, 1));
        let slow = Breakdown {
            ready: 900,
            ..Breakdown::default()
        };
        activity.record_cold_start(&service, slow);
        activity.record_cold_start(&service, Breakdown::default());
        let cold = |activity: &ActivityTracker| activity.all()[&service].cold.unwrap().breakdown;
        assert_eq!(cold(&activity), slow, "the longest of one wake counts");
        drop(open);
        clock.sleep(Duration::from_mins(2)).await;
        let record = activity.all()[&service];
        assert_eq!(record.last.to_string(), "2026-01-01T00:02:00Z");
        activity.record_cold_start(&service, Breakdown::default());
        assert_eq!(cold(&activity), Breakdown::default(), "another wake");
        activity.retain(|_| false);
        assert!(activity.all().is_empty());
    }
}
