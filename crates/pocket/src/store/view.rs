//! A reader's view of the store: current, or a few events late; with hooks around each access.
//!
//! A stale cache, a lagging replica and a lost event are the faults that controllers meet. A view
//! simulates them without the server above it knowing.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use jiff::Timestamp;

use super::{Cursor, Error, Event, Expect, KeyRange, Object, Page, Put, Store, state::State};
use crate::status::ApiError;

/// The object or collection that is accessed.
#[derive(Debug, Clone, Copy)]
pub struct Access<'a> {
    /// The resource, such as `apps/deployments`.
    pub resource: &'a str,
    /// `namespace/name` or `name`; empty for a list or watch.
    pub path: &'a str,
}

/// What happens to an event that is about to be delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Deliver it.
    Deliver,
    /// Drop it.
    Skip,
    /// End the watch before it.
    Cut,
}

/// The result of a hook.
pub type HookFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Called around each read, write and event. A hook may wait, and may refuse; a refusal after a
/// write hides a write that happened, as a lost response does.
pub trait Hooks: Send + Sync + 'static {
    /// Before an object or a list is read.
    fn before_read<'a>(&'a self, _access: Access<'a>) -> HookFuture<'a, Result<(), ApiError>> {
        Box::pin(async { Ok(()) })
    }

    /// After it was read at `revision`.
    fn after_read<'a>(
        &'a self,
        _access: Access<'a>,
        _revision: u64,
    ) -> HookFuture<'a, Result<(), ApiError>> {
        Box::pin(async { Ok(()) })
    }

    /// Before a write is sequenced.
    fn before_write<'a>(&'a self, _access: Access<'a>) -> HookFuture<'a, Result<(), ApiError>> {
        Box::pin(async { Ok(()) })
    }

    /// After it was committed at `revision`.
    fn after_write<'a>(
        &'a self,
        _access: Access<'a>,
        _revision: u64,
    ) -> HookFuture<'a, Result<(), ApiError>> {
        Box::pin(async { Ok(()) })
    }

    /// Before an event is delivered to a watcher.
    fn before_event<'a>(&'a self, _event: &'a Event) -> HookFuture<'a, Flow> {
        Box::pin(async { Flow::Deliver })
    }

    /// After an event was delivered to a watcher.
    fn after_event(&self, _event: &Event) {}
}

/// The store as one reader sees it.
#[derive(Clone)]
pub struct View {
    store: Store,
    lag: Arc<AtomicUsize>,
    hooks: Option<Arc<dyn Hooks>>,
}

impl View {
    /// A view without lag.
    pub fn of(store: Store) -> Self {
        Self {
            store,
            lag: Arc::default(),
            hooks: None,
        }
    }

    /// A view of the same store with its own lag and hooks.
    #[must_use]
    pub fn another(&self, hooks: Option<Arc<dyn Hooks>>) -> Self {
        Self {
            store: self.store.clone(),
            lag: Arc::default(),
            hooks,
        }
    }

    /// From now on reads and watches are this many events late. Writes are not.
    pub fn set_lag(&self, events: usize) {
        self.lag.store(events, Ordering::Relaxed);
        // Waiting watchers must check again: there may be more to see now.
        self.store.shared.state.read().wake_all();
        self.store.shared.committed.send_modify(|_| {});
    }

    pub(super) fn lags(&self) -> bool {
        self.lag.load(Ordering::Relaxed) > 0
    }

    /// Returns once this view shows the changes up to `revision`.
    pub async fn shows(&self, revision: u64) -> Result<(), Error> {
        self.store.reached(|| self.revision() >= revision).await
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    pub fn hooks(&self) -> Option<&Arc<dyn Hooks>> {
        self.hooks.as_ref()
    }

    /// The newest revision that this view shows.
    pub fn revision(&self) -> u64 {
        self.revision_in(&self.store.shared.state.read())
    }

    pub(super) fn revision_in(&self, state: &State) -> u64 {
        match self.lag.load(Ordering::Relaxed) {
            0 => state.committed,
            events => state.lagging(events),
        }
    }

    /// One object, as this view sees it.
    pub async fn get(&self, resource: &str, path: &str) -> Result<Option<Arc<Object>>, ApiError> {
        let access = Access { resource, path };
        if let Some(hooks) = &self.hooks {
            hooks.before_read(access).await?;
        }
        let (object, revision) = {
            let state = self.store.shared.state.read();
            let revision = self.revision_in(&state);
            (state.get(resource, path, revision), revision)
        };
        if let Some(hooks) = &self.hooks {
            hooks.after_read(access, revision).await?;
        }
        Ok(object)
    }

    /// A range of objects: at exactly `revision`, or as this view sees it now.
    pub async fn page(
        &self,
        resource: &str,
        range: KeyRange<'_>,
        revision: Option<u64>,
    ) -> Result<Result<Page, Error>, ApiError> {
        let access = Access { resource, path: "" };
        if let Some(hooks) = &self.hooks {
            hooks.before_read(access).await?;
        }
        let page = self.page_now(resource, &range, revision);
        if let (Some(hooks), Ok(page)) = (&self.hooks, &page) {
            hooks.after_read(access, page.revision).await?;
        }
        Ok(page)
    }

    fn page_now(
        &self,
        resource: &str,
        range: &KeyRange<'_>,
        revision: Option<u64>,
    ) -> Result<Page, Error> {
        let state = self.store.shared.state.read();
        let revision = revision.unwrap_or_else(|| self.revision_in(&state));
        state.check(revision)?;
        Ok(state.page(resource, range, revision))
    }

    /// The changes of a resource after `revision`.
    pub fn watch(&self, resource: &str, revision: u64) -> Cursor {
        Cursor::new(self.clone(), resource, revision)
    }

    /// See [`Store::write`].
    pub async fn write(
        &self,
        resource: &str,
        path: &str,
        expect: Expect,
        put: Put<'_>,
        now: Timestamp,
    ) -> Result<Result<Arc<Object>, Error>, ApiError> {
        let access = Access { resource, path };
        if let Some(hooks) = &self.hooks {
            hooks.before_write(access).await?;
        }
        let written = self.store.write(resource, path, expect, put, now).await;
        if let (Some(hooks), Ok(object)) = (&self.hooks, &written) {
            hooks.after_write(access, object.revision()).await?;
        }
        Ok(written)
    }
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View")
            .field("store", &self.store)
            .field("lag", &self.lag)
            .field("hooked", &self.hooks.is_some())
            .finish()
    }
}
