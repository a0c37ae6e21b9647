//! Where resolvers were reached already, on the way to a proof that needs more.
//!
//! Beside a hundred pods hardly any connection leads to a resolver, so no single attempt finds one
//! from everywhere and at every port. That one was reached stays true while nobody else answers for
//! the Service, so the next attempt goes on from there. What pods take is never carried on: that is
//! known by denial alone.

use std::{collections::HashMap, net::IpAddr, time::Duration};

use neap_kit::clock::Uptime;
use parking_lot::Mutex;

use super::judge::Seen;
use crate::service::prove::{Question, Search};

/// As long as a proof holds.
const LASTS: Duration = Duration::from_mins(2);

/// From a resolver to a port of a Service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Path {
    /// The resolver that connects.
    pub(super) from: IpAddr,
    /// Where it connects to.
    pub(super) to: (IpAddr, u16),
    /// Where a resolver would take it.
    pub(super) resolver_port: u16,
}

/// Where resolvers were reached, for each Service by its addresses.
#[derive(Debug, Default)]
pub(super) struct Reached(Mutex<HashMap<Vec<IpAddr>, Paths>>);

#[derive(Debug)]
struct Paths {
    /// What is known for one question says nothing about another.
    question: Question,
    seen: HashMap<Path, (Uptime, Seen)>,
}

impl Reached {
    /// What was seen there when a resolver was reached, if one was lately.
    pub(super) fn at(&self, search: &Search, path: &Path, now: Uptime) -> Option<Seen> {
        let all = self.0.lock();
        let paths = all.get(&search.addresses)?;
        let (since, seen) = paths.seen.get(path)?;
        let holds = paths.question == search.question && is_fresh(*since, now);
        holds.then(|| seen.clone())
    }

    /// A resolver was reached there.
    pub(super) fn note(&self, search: &Search, path: Path, seen: Seen, now: Uptime) {
        let mut all = self.0.lock();
        // Nobody says that a Service is gone.
        all.retain(|_, paths| paths.seen.values().any(|(since, _)| is_fresh(*since, now)));
        let new = || Paths {
            question: search.question.clone(),
            seen: HashMap::new(),
        };
        let paths = all.entry(search.addresses.clone()).or_insert_with(new);
        if paths.question != search.question {
            *paths = new();
        }
        paths.seen.insert(path, (now, seen));
    }

    /// It is proved, so whoever asks again wants to know how it is by then.
    pub(super) fn forget(&self, search: &Search) {
        self.0.lock().remove(&search.addresses);
    }
}

fn is_fresh(since: Uptime, now: Uptime) -> bool {
    now.saturating_sub(since) < LASTS
}
