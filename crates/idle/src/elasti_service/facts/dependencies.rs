//! Dependencies between services: a service wakes when one that depends on it has woken.
//!
//! The time of the last wake is in the status of a service, and the decisions about its dependencies read
//! it there. So they are woken even if the operator that woke the first one stopped right after.

use std::collections::{BTreeSet, VecDeque};

use kube::ResourceExt;
use neap_kit::{
    builder::ControllerBuilder,
    key::Key,
    watch::{Cache, Change, Index},
};

use super::{DependentWake, gather::key_beside};
use crate::api::ElastiService;

/// The dependencies between all services.
#[derive(Debug)]
pub(super) struct Dependencies {
    all: Cache<ElastiService>,
    by_dependency: Index<ElastiService>,
}

impl Dependencies {
    /// The dependencies between `all`. When a service wakes, its dependencies are enqueued; when one is
    /// created or deleted, the services that depend on it.
    pub(super) fn new(builder: &ControllerBuilder, all: &Cache<ElastiService>) -> Self {
        let by_dependency = Index::new(all, |service: &ElastiService| {
            let needed = service.spec.dependencies.iter();
            needed
                .map(|name| key_beside(service, name).to_string())
                .collect()
        });
        let (services, dependents) = (all.clone(), by_dependency.clone());
        builder.on_change(all, move |change, enqueuer| match change {
            Change::Modified { old, new } if last_wake(old) < last_wake(new) => {
                let of = |name: &str| services.get(&key_beside(new, name));
                let needed = |name: &str| of(name).map(|it| it.spec.dependencies.clone());
                for name in transitive(&new.name_any(), |name| needed(name).unwrap_or_default()) {
                    enqueuer.enqueue(key_beside(new, &name));
                }
            }
            Change::Modified { .. } => {}
            Change::Added(one) | Change::Deleted(one) => {
                for dependent in dependents.get(&Key::of(&**one).to_string()) {
                    enqueuer.enqueue(Key::of(&*dependent));
                }
            }
        });
        Self {
            all: all.clone(),
            by_dependency,
        }
    }

    /// The dependencies that do not exist.
    pub(super) fn missing(&self, service: &ElastiService) -> Vec<String> {
        let needed: BTreeSet<_> = service.spec.dependencies.iter().collect();
        let keys = needed.into_iter().map(|name| key_beside(service, name));
        let missing = keys.filter(|key| self.all.get(key).is_none());
        // An object that cannot be decoded exists all the same.
        let missing = missing.filter(|key| !self.all.undecodable().contains_key(key));
        missing.map(|key| key.name().to_owned()).collect()
    }

    /// The last wake of a service that depends on it, directly or indirectly.
    pub(super) fn last_dependent_wake(&self, service: &ElastiService) -> Option<DependentWake> {
        let dependents = |name: &str| {
            let key = key_beside(service, name).to_string();
            let dependents = self.by_dependency.get(&key).into_iter();
            dependents.map(|one| one.name_any()).collect()
        };
        let all = transitive(&service.name_any(), dependents).into_iter();
        let wakes = all.filter_map(|name| {
            let dependent = self.all.get(&key_beside(service, &name))?;
            let time = last_wake(&dependent)?;
            Some(DependentWake { time, name })
        });
        wakes.max_by_key(|wake| wake.time)
    }
}

fn last_wake(service: &ElastiService) -> Option<jiff::Timestamp> {
    let wake = service.status.as_ref()?.last_wake.as_ref()?;
    Some(wake.time)
}

/// The names that are reachable from `first` over `next`, each once and without `first`.
fn transitive(first: &str, next: impl Fn(&str) -> Vec<String>) -> BTreeSet<String> {
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
