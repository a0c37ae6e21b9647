//! A watcher's position in the history of one resource.

use std::sync::Arc;

use tokio::sync::watch as wake;

use super::{Error, Event, View, state::Batch};

/// Events that a watcher reads at a time, so that one that is far behind does not hold the lock, or
/// much memory, while it catches up.
const BATCH: Batch = Batch {
    events: 256,
    bytes: 1 << 20,
};

/// A watcher's position: everything up to [`Cursor::revision`] was read.
#[derive(Debug)]
pub struct Cursor {
    view: View,
    resource: Arc<str>,
    revision: u64,
    wake: wake::Receiver<u64>,
    /// Commits of all resources.
    committed: wake::Receiver<u64>,
}

impl Cursor {
    pub(super) fn new(view: View, resource: &str, revision: u64) -> Self {
        let wake = view.store().shared.state.write().subscribe(resource);
        Self {
            committed: view.store().committed(),
            view,
            resource: resource.into(),
            revision,
            wake,
        }
    }

    /// Everything of this resource up to here was read.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Reads the available events, without waiting. An empty batch means that there are no more
    /// now.
    pub fn take(&mut self) -> Result<Vec<Arc<Event>>, Error> {
        // Marked as seen before reading, so that a change in between wakes the next wait.
        self.wake.borrow_and_update();
        self.committed.borrow_and_update();
        let state = self.view.store().shared.state.read();
        let until = self.view.revision_in(&state);
        let oldest = state.known_from(&self.resource);
        if self.revision < oldest {
            return Err(Error::Compacted {
                asked: self.revision,
                oldest,
            });
        }
        let (events, more) = state.events(&self.resource, self.revision, until, BATCH);
        drop(state);
        // If none was left behind, all up to `until` were read, and the position advances even when
        // other resources made the revisions.
        self.revision = match events.last() {
            Some(last) if more => last.revision(),
            _ => self.revision.max(until),
        };
        #[cfg(feature = "seeded")]
        let events = lossy(events);
        Ok(events)
    }

    /// Resolves when there may be more than at the last [`Self::take`].
    pub async fn changed(&mut self) {
        // The senders live as long as the store, which the view keeps alive.
        if !self.view.lags() {
            let _ = self.wake.changed().await;
            return;
        }
        // The position of a lagging view moves with every commit, whatever its resource.
        tokio::select! {
            biased;
            _ = self.wake.changed() => {}
            _ = self.committed.changed() => {}
        }
    }
}

/// The deliberate mistake: loses a change when several come at once.
#[cfg(feature = "seeded")]
fn lossy(mut events: Vec<Arc<Event>>) -> Vec<Arc<Event>> {
    if crate::seeded::is_planted() && events.len() > 1 {
        events.pop();
    }
    events
}
