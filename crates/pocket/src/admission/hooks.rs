//! All webhooks of the stored configurations.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use parking_lot::RwLock;

use super::Webhook;
use crate::store::{Change, Object};

/// When webhooks are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Before validation, one after the other; they may change the object.
    Mutating,
    /// After validation, all at once; they may only refuse.
    Validating,
}

impl Phase {
    /// Both, in order.
    pub const ALL: [Self; 2] = [Self::Mutating, Self::Validating];

    /// The bucket of the configurations in the store.
    pub fn bucket(self) -> &'static str {
        match self {
            Self::Mutating => "admissionregistration.k8s.io/mutatingwebhookconfigurations",
            Self::Validating => "admissionregistration.k8s.io/validatingwebhookconfigurations",
        }
    }
}

/// The webhooks of every configuration.
#[derive(Debug, Default)]
pub struct Webhooks {
    mutating: PhaseWebhooks,
    validating: PhaseWebhooks,
}

/// The webhooks of one phase, in the order in which they are called.
#[derive(Debug, Default)]
struct PhaseWebhooks {
    count: AtomicUsize,
    by_configuration: RwLock<BTreeMap<String, Vec<Arc<Webhook>>>>,
}

impl Webhooks {
    /// Applies a change of a configuration; see [`crate::store::Store::follow`].
    pub fn follow(&self, phase: Phase, change: Change, configuration: &Object) {
        let name = &configuration.metadata().name;
        let mut shelf = self.shelf(phase).by_configuration.write();
        if change == Change::Deleted {
            shelf.remove(name.as_ref());
        } else {
            let value = configuration.value();
            let entries = value["webhooks"].as_array().into_iter().flatten();
            let hooks = entries
                .map(|entry| Arc::new(Webhook::read(entry)))
                .collect();
            shelf.insert(name.to_string(), hooks);
        }
        let count = shelf.values().map(Vec::len).sum();
        self.shelf(phase).count.store(count, Ordering::Release);
    }

    /// The webhooks of a phase, by the name of their configuration and in its order.
    pub fn of(&self, phase: Phase) -> Vec<Arc<Webhook>> {
        let shelf = self.shelf(phase);
        // The usual case by far: no webhook is registered.
        if shelf.count.load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        shelf
            .by_configuration
            .read()
            .values()
            .flatten()
            .cloned()
            .collect()
    }

    /// Whether any webhook is registered for this phase.
    pub fn any(&self, phase: Phase) -> bool {
        self.shelf(phase).count.load(Ordering::Acquire) > 0
    }

    fn shelf(&self, phase: Phase) -> &PhaseWebhooks {
        match phase {
            Phase::Mutating => &self.mutating,
            Phase::Validating => &self.validating,
        }
    }
}
