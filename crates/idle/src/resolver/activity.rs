//! Who was asked for lately, for services whose clients are counted here.

use std::{collections::BTreeMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use neap_kit::{clock::Clock, key::Key};
use parking_lot::Mutex;

use crate::api::{Breakdown, wire::Cold};

/// Those who are served within this time waited for the same wake.
const TOGETHER: SignedDuration = SignedDuration::from_mins(1);

/// What every service was asked. Cheap to copy.
#[derive(Debug, Clone)]
pub struct Activity {
    clock: Clock,
    services: Arc<Mutex<BTreeMap<Key, Asked>>>,
}

/// What a service was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// When it was last asked something, or now if something is still under way.
    pub last: Timestamp,
    /// So many requests or connections since this resolver began.
    pub requests: u64,
    /// So many of them are under way.
    pub open: usize,
    /// The last that had to wait; of some at the same time, the one that waited longest.
    pub cold: Option<Cold>,
}

/// A request or connection that is under way; dropping it ends it.
#[derive(Debug)]
pub struct Open {
    activity: Activity,
    service: Key,
}

impl Activity {
    /// Nobody asked for anything yet.
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            services: Arc::default(),
        }
    }

    /// Somebody asks for a service.
    pub fn begin(&self, service: &Key) -> Open {
        let last = self.clock.now();
        let mut services = self.services.lock();
        let asked = services.entry(service.clone()).or_insert(Asked {
            last,
            requests: 0,
            open: 0,
            cold: None,
        });
        asked.last = last;
        asked.requests += 1;
        asked.open += 1;
        Open {
            activity: self.clone(),
            service: service.clone(),
        }
    }

    /// Somebody was served who had to wait.
    pub fn served_cold(&self, service: &Key, breakdown: Breakdown) {
        let served = self.clock.now();
        let mut services = self.services.lock();
        let Some(asked) = services.get_mut(service) else {
            return;
        };
        let longer = |other: &Cold| {
            let together = served.duration_since(other.served) < TOGETHER;
            together && other.breakdown.total() > breakdown.total()
        };
        if !asked.cold.as_ref().is_some_and(longer) {
            asked.cold = Some(Cold { served, breakdown });
        }
    }

    /// What every service was asked, as it is now.
    pub fn all(&self) -> BTreeMap<Key, Asked> {
        let now = self.clock.now();
        let services = self.services.lock().clone();
        let seen = services.into_iter().map(|(service, mut asked)| {
            if asked.open > 0 {
                asked.last = now;
            }
            (service, asked)
        });
        seen.collect()
    }

    /// Forgets services that are no longer known and of which nothing is under way.
    pub fn retain(&self, known: impl Fn(&Key) -> bool) {
        let mut services = self.services.lock();
        services.retain(|service, asked| asked.open > 0 || known(service));
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let last = self.activity.clock.now();
        let mut services = self.activity.services.lock();
        if let Some(asked) = services.get_mut(&self.service) {
            asked.open = asked.open.saturating_sub(1);
            asked.last = last;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_under_way_is_asked_for_all_the_time() {
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        let activity = Activity::new(clock);
        let service = Key::new("shop", "cart");
        let open = activity.begin(&service);
        clock.sleep(Duration::from_mins(2)).await;
        let asked = activity.all()[&service];
        assert_eq!(asked.last.to_string(), "2026-01-01T00:02:00Z");
        assert_eq!((asked.requests, asked.open), (1, 1));
        let slow = Breakdown {
            ready: 900,
            ..Breakdown::default()
        };
        activity.served_cold(&service, slow);
        activity.served_cold(&service, Breakdown::default());
        let cold = |activity: &Activity| activity.all()[&service].cold.unwrap().breakdown;
        assert_eq!(cold(&activity), slow, "who waited longest");
        drop(open);
        clock.sleep(Duration::from_mins(2)).await;
        let asked = activity.all()[&service];
        assert_eq!(asked.last.to_string(), "2026-01-01T00:02:00Z");
        activity.served_cold(&service, Breakdown::default());
        assert_eq!(cold(&activity), Breakdown::default(), "another wake");
        activity.retain(|_| false);
        assert!(activity.all().is_empty());
    }
}
