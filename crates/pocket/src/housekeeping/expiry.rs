//! Objects with a lifetime: gone a while after their last write.

use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    sync::Arc,
};

use jiff::Timestamp;

use super::Place;
use crate::rest::Machine;

/// Writes of resources whose objects expire, oldest first, by resource.
#[derive(Debug, Default)]
pub(super) struct Expiry {
    writes: BTreeMap<Arc<str>, VecDeque<(Timestamp, Place, u64)>>,
}

impl Expiry {
    /// Takes in a write, if its resource has a lifetime.
    pub(super) fn note(&mut self, machine: &Machine, place: &Place, revision: u64, at: Timestamp) {
        if machine.registry.lifetime(&place.0).is_some() {
            let writes = self.writes.entry(place.0.clone()).or_default();
            writes.push_back((at, place.clone(), revision));
        }
    }

    /// The writes that are known, so that looking at everything again prolongs no life.
    pub(super) fn known(&self) -> HashSet<u64> {
        let writes = self.writes.values().flatten();
        writes.map(|(_, _, revision)| *revision).collect()
    }

    /// Writes whose time is over. If the object is still at that revision, it goes.
    pub(super) fn due(&mut self, machine: &Machine, now: Timestamp) -> Vec<(Place, u64)> {
        let mut due = Vec::new();
        for (resource, writes) in &mut self.writes {
            let Some(limit) = machine
                .registry
                .lifetime(resource)
                .and_then(|age| now.checked_sub(age).ok())
            else {
                continue;
            };
            while writes.front().is_some_and(|(at, _, _)| *at <= limit) {
                due.extend(
                    writes
                        .pop_front()
                        .map(|(_, place, revision)| (place, revision)),
                );
            }
        }
        due
    }
}
