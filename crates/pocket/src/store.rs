//! The revisioned store: every object of every resource, and the recent history of their changes.
//!
//! One counter numbers all writes. A write is *sequenced* when it has its revision and *committed*
//! when it can no longer be lost; only committed writes are read, listed or watched, so no client
//! acts on a change that a power cut could take back. In memory a write is committed when it is
//! sequenced. With a data folder, everything that was sequenced meanwhile is made durable with one
//! sync, then committed in order: by a thread of its own under concurrent writes, by the requesting
//! task itself when it writes alone.
//!
//! Watchers own no queue: each keeps a position in the shared history and is woken when there is
//! more. The history is bounded in bytes and in time, so a watcher that never reads costs nothing
//! and gets an error that its position expired.
//!
//! This module does not depend on kinds: a resource is a name, an object is JSON with a revision.

mod durable;
mod history;
pub mod journal;
mod object;
mod state;
mod view;
mod watch;

#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc, time::Duration};

use jiff::Timestamp;
use parking_lot::{Condvar, Mutex, RwLock};
use serde_json::Value;
use tokio::sync::{oneshot, watch as wake};

pub use history::{Change, Event};
pub use object::{Metadata, Object, Owner, encode};
pub use state::{Head, KeyRange, Page};
pub use view::{Access, Flow, HookFuture, Hooks, View};
pub use watch::Cursor;

use state::State;

/// See [`Store::follow`].
pub type Follower = Box<dyn Fn(Change, &Object) + Send + Sync>;
/// Why writes are refused after an orderly shutdown.
pub(crate) const STOPPING: &str = "the server is stopping";

/// How much history is kept.
#[derive(Debug, Clone, Copy)]
pub struct Retention {
    /// Bytes of events, objects included, at most.
    pub bytes: usize,
    /// Age of events, at most.
    pub age: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            bytes: 32 << 20,
            age: Duration::from_mins(5),
        }
    }
}

/// Bytes of an encoded object, at most. One object must fit the journal and every response and
/// watch event that shows it.
pub const MAX_OBJECT_BYTES: usize = 3 << 20;

/// What a write expects to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// No object under this name.
    Absent,
    /// The object at this revision.
    Revision(u64),
}

/// A change to one object; the store adds the revision.
#[derive(Debug, Clone, Copy)]
pub enum Put<'a> {
    /// Store this state.
    Object(&'a Value),
    /// Remove the object; this is the last state that watchers are shown.
    Gone(&'a Value),
}

/// Why the store refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The object is not what the write expected: a concurrent write was first.
    #[error("the object is not at the expected revision")]
    Conflict,
    /// The revision is older than the history.
    #[error("revision {asked} is older than the history, which begins at {oldest}")]
    Compacted {
        /// The requested revision.
        asked: u64,
        /// The oldest revision that can be read.
        oldest: u64,
    },
    /// The revision is newer than the newest one.
    #[error("revision {asked} is in the future; the newest is {newest}")]
    Future {
        /// The requested revision.
        asked: u64,
        /// The newest revision.
        newest: u64,
    },
    /// The object is too large.
    #[error(
        "the object takes {bytes} bytes as it is stored, more than the {limit} that are allowed"
    )]
    TooLarge {
        /// Its encoded bytes.
        bytes: usize,
        /// The allowed bytes.
        limit: usize,
    },
    /// The data folder can no longer be written.
    #[error("writes are refused: {0}")]
    Broken(Arc<str>),
}

/// A cheap handle on one store.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    state: RwLock<State>,
    /// Sequenced writes on their way to disk; unused in memory.
    queue: Mutex<durable::WriteQueue>,
    queued: Condvar,
    /// Held by the task or thread that commits; `None` in memory and after the end.
    writer: Mutex<Option<durable::JournalWriter>>,
    durable: bool,
    /// The newest committed revision.
    committed: wake::Sender<u64>,
    retention: Retention,
}

/// Watchers that a write yields to after it woke them, at most; more would keep it waiting.
const MAX_YIELDED_WATCHERS: usize = 4;

impl Store {
    /// An empty store in memory whose first write gets the revision after `revision`.
    pub fn in_memory(revision: u64, retention: Retention) -> Self {
        Self::with(State::new(revision), retention, false)
    }

    fn with(state: State, retention: Retention, durable: bool) -> Self {
        let committed = wake::Sender::new(state.committed);
        Self {
            shared: Arc::new(Shared {
                state: RwLock::new(state),
                queue: Mutex::default(),
                queued: Condvar::new(),
                writer: Mutex::default(),
                durable,
                committed,
                retention,
            }),
        }
    }

    /// The newest committed revision.
    pub fn revision(&self) -> u64 {
        self.shared.state.read().committed
    }

    /// The oldest revision that can still be read.
    pub fn oldest(&self) -> u64 {
        self.shared.state.read().compacted
    }

    /// Makes one change if the object is as expected, and returns once it is committed.
    ///
    /// `now` is stored with the event so that history can expire by age.
    pub async fn write(
        &self,
        resource: &str,
        path: &str,
        expect: Expect,
        put: Put<'_>,
        now: Timestamp,
    ) -> Result<Arc<Object>, Error> {
        let (object, wait) = self.sequence(resource, path, expect, put, now)?;
        if let Some(wait) = wait {
            if (1..=MAX_YIELDED_WATCHERS).contains(&self.shared.commit_here()) {
                // They were woken on this thread, and are usually served before the writer gets its
                // response.
                tokio::task::yield_now().await;
            }
            wait.await
                .unwrap_or_else(|_| Err(Error::Broken("the writer stopped".into())))?;
        }
        Ok(object)
    }

    fn sequence(
        &self,
        resource: &str,
        path: &str,
        expect: Expect,
        put: Put<'_>,
        now: Timestamp,
    ) -> Result<(Arc<Object>, Option<Waiter>), Error> {
        let mut state = self.shared.state.write();
        if let Some(cause) = &state.broken {
            return Err(Error::Broken(cause.clone()));
        }
        let event = state.sequence(resource, path, expect, put, now)?;
        let object = event.object.clone();
        if self.shared.durable {
            state.hold(&event);
            let wait = self.shared.enqueue(event);
            drop(state);
            return Ok((object, Some(wait)));
        }
        let wake = state.commit(event, self.shared.retention);
        self.shared.committed.send_replace(state.committed);
        drop(state);
        wake.wake();
        Ok((object, None))
    }

    /// The newest state of an object, committed or not, for a write that builds on it. A response
    /// based on it must wait for [`Self::settled`] first.
    pub fn head(&self, resource: &str, path: &str) -> Option<Head> {
        self.shared.state.read().head(resource, path)
    }

    /// The newest assigned revision, committed or not.
    pub fn sequenced(&self) -> u64 {
        self.shared.state.read().sequenced
    }

    /// Returns once everything up to `revision` is committed.
    pub async fn settled(&self, revision: u64) -> Result<(), Error> {
        self.reached(|| self.revision() >= revision).await
    }

    /// Returns once a commit, or another event that wakes readers, has made `is_there` true.
    ///
    /// The state is checked between wake-ups, never inside of one: a writer holds the state's lock
    /// while it wakes readers, so a reader that held the wake-up and requested the state would
    /// deadlock.
    pub(crate) async fn reached(&self, is_there: impl Fn() -> bool) -> Result<(), Error> {
        let mut committed = self.shared.committed.subscribe();
        loop {
            committed.borrow_and_update();
            if is_there() {
                return Ok(());
            }
            if let Some(cause) = self.broken() {
                return Err(Error::Broken(cause));
            }
            // The sender lives as long as the store.
            let _ = committed.changed().await;
        }
    }

    /// Why writes are refused, if they are.
    pub(crate) fn broken(&self) -> Option<Arc<str>> {
        self.shared.state.read().broken.clone()
    }

    /// Calls `follower` with every object of a resource as if it were added now, and then with each
    /// change as it is committed: before any client can read or watch it, and even if the request
    /// was cancelled.
    ///
    /// Called with the state locked, so a follower must not use the store, nor wait for a lock that
    /// is held while using it.
    pub fn follow(&self, resource: &str, follower: Follower) {
        self.shared.state.write().follow(resource, follower);
    }

    /// Drops history older than the retention allows; called periodically so that an idle store
    /// drops it too.
    pub fn expire(&self, now: Timestamp) {
        let age = self.shared.retention.age;
        self.shared.state.write().expire(now, age);
    }

    /// Drops all history before `revision`, for tests of slow watchers.
    pub fn compact(&self, revision: u64) {
        self.shared.state.write().compact(revision);
    }

    /// Notifies of the newest committed revision.
    pub fn committed(&self) -> wake::Receiver<u64> {
        self.shared.committed.subscribe()
    }

    /// Whether writes are refused.
    pub fn is_broken(&self) -> bool {
        self.broken().is_some()
    }

    /// Changes of all resources after `revision`, at most `most`.
    pub fn changes_after(&self, revision: u64, most: usize) -> Result<Vec<Arc<Event>>, Error> {
        let state = self.shared.state.read();
        if revision < state.compacted {
            return Err(Error::Compacted {
                asked: revision,
                oldest: state.compacted,
            });
        }
        Ok(state.changes_after(revision, most))
    }

    /// All committed objects at one revision: resource, path, object.
    pub fn everything(&self) -> (u64, Vec<LocatedObject>) {
        let state = self.shared.state.read();
        (state.committed, state.live())
    }

    /// The committed objects of a resource, in one namespace if it is not empty.
    pub fn objects(&self, resource: &str, namespace: &str) -> Vec<(Arc<str>, Arc<Object>)> {
        let state = self.shared.state.read();
        let range = KeyRange::of(namespace);
        state.page(resource, &range, state.committed).objects
    }

    /// The newest states of a resource's objects, committed or not, in key order and in one
    /// namespace if it is not empty. As with [`Self::head`], responses based on them must wait.
    pub fn heads(&self, resource: &str, namespace: &str) -> Vec<Arc<Object>> {
        self.shared.state.read().heads(resource, namespace)
    }

    /// The objects of a resource whose newest state is sequenced and not yet committed.
    pub fn pending(&self, resource: &str) -> Vec<Arc<Object>> {
        self.shared.state.read().pending(resource)
    }

    pub fn count(&self, resource: &str) -> usize {
        self.shared.state.read().count(resource)
    }

    /// The whole retained history in order.
    pub fn export_history(&self) -> Vec<Arc<Event>> {
        self.shared.state.read().history().cloned().collect()
    }

    /// A store in memory with the same objects, history and revision, independent from here on.
    #[must_use]
    pub fn fork(&self) -> Self {
        let state = self.shared.state.read().fork();
        Self::with(state, self.shared.retention, false)
    }
}

/// An object with its resource and path.
pub type LocatedObject = (Arc<str>, Arc<str>, Arc<Object>);

type Waiter = oneshot::Receiver<Result<(), Error>>;

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("revision", &self.revision())
            .field("durable", &self.shared.durable)
            .finish_non_exhaustive()
    }
}
