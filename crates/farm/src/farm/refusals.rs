//! Writes that the server has refused for good: they are not repeated with each reconcile, and the status says
//! so. After some time they are tried again, since what refused them may have changed.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

use super::Component;

/// After this time a refused write is tried again.
pub const REFUSAL_RETRY: SignedDuration = SignedDuration::from_mins(5);

/// The refusals of this process, by the uid of their component.
#[derive(Debug, Default)]
pub struct Refusals(Mutex<BTreeMap<String, Refusal>>);

#[derive(Debug)]
struct Refusal {
    generation: Option<i64>,
    at: Timestamp,
    message: String,
}

impl Refusals {
    /// Remembers what the server answered.
    pub fn add(&self, component: &Component, message: String, at: Timestamp) {
        let refusal = Refusal {
            generation: component.metadata.generation,
            at,
            message,
        };
        self.0.lock().insert(component.uid().to_owned(), refusal);
    }

    /// What was refused for these components and counts: nothing of an older version, and nothing that is
    /// tried again by now.
    pub fn of(&self, components: &[Component], now: Timestamp) -> BTreeMap<String, String> {
        let mut refusals = self.0.lock();
        refusals.retain(|_, it| now.duration_since(it.at) < REFUSAL_RETRY);
        let found = components.iter().filter_map(|component| {
            let refusal = refusals.get(component.uid())?;
            let counts = refusal.generation == component.metadata.generation;
            counts.then(|| (component.uid().to_owned(), refusal.message.clone()))
        });
        found.collect()
    }
}

/// Whether the answer would be the same again.
pub fn is_final(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if [400, 403, 413, 422].contains(&status.code))
}
