//! Timelines in the status of Operation objects.

use std::collections::HashMap;

use kube::{Api, ResourceExt};
use parking_lot::Mutex;

use super::{
    Journal, JournalError, Operation, StoredTimeline, Timeline, TimelineVersion, status_mapping,
};
use crate::{
    apply::{Error, Writer},
    clock::Clock,
    key::Key,
};

/// A journal in the API: users can read the timelines, and the next leader continues with them. The
/// id of an operation is its namespace and name, as in `shop/roll-out`.
#[derive(Debug)]
pub struct OperationObjects {
    writer: Writer,
    clock: Clock,
    /// Operations as they were last read or written, so that a write needs no read.
    cached: Mutex<HashMap<String, Operation>>,
}

impl OperationObjects {
    /// A journal that writes with `writer`.
    pub fn new(writer: Writer, clock: Clock) -> Self {
        Self {
            writer,
            clock,
            cached: Mutex::default(),
        }
    }

    /// Creates `operation`, unless one of that name exists. Returns its id.
    pub async fn add(&self, operation: &Operation) -> Result<String, Error> {
        self.writer.create(operation).await?;
        Ok(Key::of(operation).to_string())
    }

    async fn read(&self, id: &str) -> Result<Operation, JournalError> {
        let (namespace, name) = id.split_once('/').ok_or(JournalError::Missing)?;
        let api: Api<Operation> = Api::namespaced(self.writer.client().clone(), namespace);
        match api.get_opt(name).await {
            Ok(Some(operation)) => Ok(operation),
            Ok(None) => Err(JournalError::Missing),
            Err(error) => Err(JournalError::Unreachable(error.into())),
        }
    }

    /// The operation in the version that was read.
    async fn in_version(
        &self,
        id: &str,
        seen: &TimelineVersion,
    ) -> Result<Operation, JournalError> {
        let cached = self.cached.lock().get(id).cloned();
        let operation = match cached {
            Some(cached) if version(&cached) == *seen => cached,
            _ => self.read(id).await?,
        };
        if version(&operation) == *seen {
            Ok(operation)
        } else {
            Err(JournalError::Conflict)
        }
    }

    fn cache(&self, id: &str, operation: Operation, finished: bool) {
        let mut cached = self.cached.lock();
        if finished {
            cached.remove(id);
        } else {
            cached.insert(id.to_owned(), operation);
        }
    }
}

impl Journal for OperationObjects {
    async fn load(&self, id: &str) -> Result<StoredTimeline, JournalError> {
        let operation = self.read(id).await?;
        let stored = StoredTimeline {
            timeline: status_mapping::timeline(&operation),
            version: version(&operation),
            identity: operation.uid().unwrap_or_default(),
        };
        self.cache(id, operation, stored.timeline.is_finished());
        Ok(stored)
    }

    async fn save(
        &self,
        id: &str,
        timeline: &Timeline,
        seen: &TimelineVersion,
    ) -> Result<TimelineVersion, JournalError> {
        let mut operation = self.in_version(id, seen).await?;
        let status = status_mapping::status(&operation, timeline, self.clock.now());
        operation.status = Some(status);
        match self.writer.replace_status(&operation).await {
            Ok(written) => {
                let version = version(&written);
                self.cache(id, written, timeline.is_finished());
                Ok(version)
            }
            Err(Error::Conflict(_)) => Err(JournalError::Conflict),
            Err(error) => Err(JournalError::Unreachable(error.into())),
        }
    }
}

fn version(operation: &Operation) -> TimelineVersion {
    TimelineVersion(operation.resource_version().unwrap_or_default())
}
