//! Objects with a lifetime: removed some time after their last write.

use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    sync::Arc,
};

use jiff::Timestamp;

use super::ObjectKey;
use crate::rest::Machine;

/// Writes of resources whose objects expire, oldest first, by resource.
#[derive(Debug, Default)]
pub(super) struct Expiry {
    writes: BTreeMap<Arc<str>, VecDeque<(Timestamp, ObjectKey, u64)>>,
}

impl Expiry {
    /// Records a write, if its resource has a lifetime.
    pub(super) fn record(
        &mut self,
        machine: &Machine,
        place: &ObjectKey,
        revision: u64,
        at: Timestamp,
    ) {
        if machine.registry.lifetime(&place.0).is_some() {
            let writes = self.writes.entry(place.0.clone()).or_default();
            writes.push_back((at, place.clone(), revision));
        }
    }

    /// The recorded writes, so that a full survey prolongs no lifetime.
    pub(super) fn known(&self) -> HashSet<u64> {
        let writes = self.writes.values().flatten();
        writes.map(|(_, _, revision)| *revision).collect()
    }

    /// The writes whose lifetime is over. An object that is still at that revision is removed.
    pub(super) fn due(&mut self, machine: &Machine, now: Timestamp) -> Vec<(ObjectKey, u64)> {
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
