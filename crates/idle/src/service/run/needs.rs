//! What is woken with what, however it was woken.
//!
//! Nobody has to remember to wake them: when somebody last woke is in its status, and whoever is
//! needed by it looks there. So it is done also if whoever woke the first died right after.

use std::collections::{BTreeSet, VecDeque};

use kube::ResourceExt;
use neap_kit::{
    key::Key,
    watch::{Cache, Change, Index},
    wiring::Wiring,
};

use super::beside;
use crate::{api::ElastiService, service::facts::Needed};

/// Knows who needs whom.
#[derive(Debug)]
pub(super) struct Needs {
    all: Cache<ElastiService>,
    by_dependency: Index<ElastiService>,
}

impl Needs {
    /// Those of `all`. When one wakes, those are looked at that it needs; when one comes or goes, those
    /// that need it.
    pub(super) fn new(wiring: &Wiring, all: &Cache<ElastiService>) -> Self {
        let by_dependency = Index::new(all, |service: &ElastiService| {
            let needed = service.spec.dependencies.iter();
            needed
                .map(|name| beside(service, name).to_string())
                .collect()
        });
        let (known, users) = (all.clone(), by_dependency.clone());
        wiring.follow(all, move |change, trigger| match change {
            Change::Modified { old, new } if woken(old) < woken(new) => {
                let of = |name: &str| known.get(&beside(new, name));
                let needed = |name: &str| of(name).map(|it| it.spec.dependencies.clone());
                for name in reached(&new.name_any(), |name| needed(name).unwrap_or_default()) {
                    trigger.changed(beside(new, &name));
                }
            }
            Change::Modified { .. } => {}
            Change::Added(one) | Change::Deleted(one) => {
                for user in users.get(&Key::of(&**one).to_string()) {
                    trigger.changed(Key::of(&*user));
                }
            }
        });
        Self {
            all: all.clone(),
            by_dependency,
        }
    }

    /// Which of those that it needs are not there.
    pub(super) fn absent(&self, service: &ElastiService) -> Vec<String> {
        let needed: BTreeSet<_> = service.spec.dependencies.iter().collect();
        let keys = needed.into_iter().map(|name| beside(service, name));
        let absent = keys.filter(|key| self.all.get(key).is_none());
        // One that cannot be understood is there all the same.
        let absent = absent.filter(|key| !self.all.unreadable().contains_key(key));
        absent.map(|key| key.name().to_owned()).collect()
    }

    /// The last wake of anybody that needs it, or that needs somebody who does.
    pub(super) fn of(&self, service: &ElastiService) -> Option<Needed> {
        let users = |name: &str| {
            let key = beside(service, name).to_string();
            let users = self.by_dependency.get(&key).into_iter();
            users.map(|user| user.name_any()).collect()
        };
        let all = reached(&service.name_any(), users).into_iter();
        let woken = all.filter_map(|by| {
            let user = self.all.get(&beside(service, &by))?;
            let since = woken(&user)?;
            Some(Needed { since, by })
        });
        woken.max_by_key(|needed| needed.since)
    }
}

fn woken(service: &ElastiService) -> Option<jiff::Timestamp> {
    let wake = service.status.as_ref()?.last_wake.as_ref()?;
    Some(wake.time)
}

/// Everybody that is `next` to `first`, and to those and so on, each once.
fn reached(first: &str, next: impl Fn(&str) -> Vec<String>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut waiting = VecDeque::from([first.to_owned()]);
    while let Some(name) = waiting.pop_front() {
        for next in next(&name) {
            if next != first && found.insert(next.clone()) {
                waiting.push_back(next);
            }
        }
    }
    found
}
