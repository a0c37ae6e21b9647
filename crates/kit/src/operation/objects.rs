//! Timelines in the status of Operation objects.

use std::collections::HashMap;

use kube::{Api, ResourceExt};
use parking_lot::Mutex;

use super::{Journal, JournalError, Kept, Operation, Timeline, Version, story};
use crate::{
    apply::{Error, Hand},
    clock::Clock,
    key::Key,
};

/// Keeps timelines in the API: everybody can see them, and whoever leads goes on with them. An
/// operation is named by namespace and name, as in `shop/roll-out`.
#[derive(Debug)]
pub struct Objects {
    hand: Hand,
    clock: Clock,
    /// Operations as they were last read or written, so that a write needs no read.
    known: Mutex<HashMap<String, Operation>>,
}

impl Objects {
    /// Operations that `hand` writes.
    pub fn new(hand: Hand, clock: Clock) -> Self {
        Self {
            hand,
            clock,
            known: Mutex::default(),
        }
    }

    /// Makes `operation`, unless there is one of that name. What it is called in the journal.
    pub async fn add(&self, operation: &Operation) -> Result<String, Error> {
        self.hand.create(operation).await?;
        Ok(Key::of(operation).to_string())
    }

    async fn read(&self, id: &str) -> Result<Operation, JournalError> {
        let (namespace, name) = id.split_once('/').ok_or(JournalError::Missing)?;
        let api: Api<Operation> = Api::namespaced(self.hand.client().clone(), namespace);
        match api.get_opt(name).await {
            Ok(Some(operation)) => Ok(operation),
            Ok(None) => Err(JournalError::Missing),
            Err(error) => Err(JournalError::Unreachable(error.into())),
        }
    }

    /// The operation in the state that was seen.
    async fn seen(&self, id: &str, seen: &Version) -> Result<Operation, JournalError> {
        let known = self.known.lock().get(id).cloned();
        let operation = match known {
            Some(known) if version(&known) == *seen => known,
            _ => self.read(id).await?,
        };
        if version(&operation) == *seen {
            Ok(operation)
        } else {
            Err(JournalError::Conflict)
        }
    }

    fn remember(&self, id: &str, operation: Operation, over: bool) {
        let mut known = self.known.lock();
        if over {
            known.remove(id);
        } else {
            known.insert(id.to_owned(), operation);
        }
    }
}

impl Journal for Objects {
    async fn load(&self, id: &str) -> Result<Kept, JournalError> {
        let operation = self.read(id).await?;
        let kept = Kept {
            timeline: story::timeline(&operation),
            version: version(&operation),
            identity: operation.uid().unwrap_or_default(),
        };
        self.remember(id, operation, kept.timeline.is_over());
        Ok(kept)
    }

    async fn save(
        &self,
        id: &str,
        timeline: &Timeline,
        seen: &Version,
    ) -> Result<Version, JournalError> {
        let mut operation = self.seen(id, seen).await?;
        let status = story::status(&operation, timeline, self.clock.now());
        operation.status = Some(status);
        match self.hand.replace_status(&operation).await {
            Ok(written) => {
                let version = version(&written);
                self.remember(id, written, timeline.is_over());
                Ok(version)
            }
            Err(Error::Replaced(_)) => Err(JournalError::Conflict),
            Err(error) => Err(JournalError::Unreachable(error.into())),
        }
    }
}

fn version(operation: &Operation) -> Version {
    Version(operation.resource_version().unwrap_or_default())
}
