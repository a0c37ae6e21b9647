//! The objects of a watched kind, for readers and subscribers.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use futures::future::join_all;
use kube::{Resource, runtime::watcher::Event};
use parking_lot::{Mutex, MutexGuard, RwLock};
use tokio::sync::{Notify, watch};

use super::{CachedObject, Change, Trim, UndecodableObject, contents::Contents, decoded::Decoded};
use crate::{
    clock::Clock,
    key::Key,
    own_writes::WatchPosition,
    why::{Code, Coded},
};

/// The objects of a kind and scope. Cheap to clone; all clones share the same objects.
///
/// The watch goes on as long as there is a clone or a subscriber; some time after that it ends, and the
/// objects are dropped.
pub struct Cache<K> {
    shared: Arc<SharedCache<K>>,
    /// The caches that this is a union of, by namespace; empty for a cache with a watch of its own.
    parts: Arc<BTreeMap<String, Self>>,
    /// Held by every clone outside of this module.
    lease: Option<Arc<CacheLease>>,
}

/// Tells the runner of the watches when the last clone of a cache is gone.
#[derive(Debug)]
pub(super) struct CacheLease(pub(super) Arc<Notify>);

impl Drop for CacheLease {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

type Handler<K> = Box<dyn Fn(&Change<K>) + Send + Sync>;

struct Subscriber<K> {
    call: Handler<K>,
    /// Whether the receiver of the calls is still there.
    is_alive: Box<dyn Fn() -> bool + Send + Sync>,
}

impl<K> Subscriber<K> {
    fn call(&self, change: &Change<K>) {
        (self.call)(change);
    }
}

pub(super) struct SharedCache<K> {
    contents: RwLock<Contents<K>>,
    /// Locked while subscribers are notified, so that a new one misses no change and receives none
    /// twice.
    subscribers: Mutex<Vec<Subscriber<K>>>,
    /// The number of updates so far.
    updates: watch::Sender<u64>,
    clock: Clock,
}

/// The watch has not shown a write in time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the watch has not shown version {version} within {waited:?}")]
pub struct WatchTimeout {
    /// The version of the write.
    pub version: String,
    /// How long the caller waited.
    pub waited: Duration,
}

impl<K> Clone for Cache<K> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
            parts: self.parts.clone(),
            lease: self.lease.clone(),
        }
    }
}

impl<K: CachedObject + Send + Sync + 'static> Cache<K> {
    pub(super) fn new(clock: Clock, trim: Option<Trim<K>>) -> Self {
        Self::of(clock, BTreeMap::new(), trim)
    }

    /// The cache as its users have it: while one of them is there, its watch goes on.
    pub(super) fn leased(&self, lease: Arc<CacheLease>) -> Self {
        Self {
            lease: Some(lease),
            ..self.clone()
        }
    }

    /// Whether a subscriber needs the changes. Forgets those that do not.
    pub(super) fn has_subscribers(&self) -> bool {
        let mut subscribers = self.shared.subscribers.lock();
        subscribers.retain(|one| (one.is_alive)());
        !subscribers.is_empty()
    }

    /// The union of all `parts`.
    pub(super) fn union(clock: Clock, parts: BTreeMap<String, Self>) -> Self {
        let whole = Self::of(clock, parts, None);
        for part in whole.parts.values() {
            whole.include(part);
        }
        whole
    }

    fn of(clock: Clock, parts: BTreeMap<String, Self>, trim: Option<Trim<K>>) -> Self {
        Self {
            parts: Arc::new(parts),
            lease: None,
            shared: Arc::new(SharedCache {
                contents: RwLock::new(Contents::trimmed(trim)),
                subscribers: Mutex::default(),
                updates: watch::Sender::new(0),
                clock,
            }),
        }
    }

    /// Adds the objects of `part`, now and whenever they change.
    fn include(&self, part: &Self) {
        let whole = Arc::downgrade(&self.shared);
        let receiver = whole.clone();
        let is_alive = move || receiver.strong_count() > 0;
        part.subscribe_while(is_alive, move |change| {
            let Some(whole) = whole.upgrade() else {
                return;
            };
            let subscribers = whole.subscribers.lock();
            whole.contents.write().apply_change(change);
            subscribers.iter().for_each(|one| one.call(change));
            drop(subscribers);
            whole.updates.send_modify(|count| *count += 1);
        });
    }

    /// Marks this union as synced, after all of its parts have listed.
    pub(super) fn mark_synced(&self) {
        self.shared.contents.write().mark_synced();
        self.shared.updates.send_modify(|count| *count += 1);
    }

    /// The object with this key.
    pub fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.shared.contents.read().get(key)
    }

    /// The objects of a namespace in order, or of all namespaces if it is empty.
    pub fn list(&self, namespace: &str) -> Vec<Arc<K>> {
        self.shared.contents.read().list(namespace)
    }

    /// The number of objects.
    pub fn len(&self) -> usize {
        self.shared.contents.read().len()
    }

    /// Whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The objects that cannot be decoded.
    pub fn undecodable(&self) -> BTreeMap<Key, UndecodableObject> {
        self.shared.contents.read().undecodable().clone()
    }

    /// Calls `subscriber` with every object that is there and then with every change, in order. It
    /// runs on the task of the watch, so it must be quick: enqueue a key.
    pub fn subscribe(&self, subscriber: impl Fn(&Change<K>) + Send + Sync + 'static) {
        self.subscribe_while(|| true, subscriber);
    }

    /// The same as long as `is_alive`: a subscriber whose receiver is gone does not keep the watch open.
    pub fn subscribe_while(
        &self,
        is_alive: impl Fn() -> bool + Send + Sync + 'static,
        subscriber: impl Fn(&Change<K>) + Send + Sync + 'static,
    ) {
        self.replay(&subscriber).push(Subscriber {
            call: Box::new(subscriber),
            is_alive: Box::new(is_alive),
        });
    }

    /// The same, but called before all other subscribers: for indexes, which those read. A
    /// subscriber may act on a change at once, on another thread.
    pub(super) fn subscribe_first(
        &self,
        is_alive: impl Fn() -> bool + Send + Sync + 'static,
        subscriber: impl Fn(&Change<K>) + Send + Sync + 'static,
    ) {
        let mut subscribers = self.replay(&subscriber);
        let first = Subscriber {
            call: Box::new(subscriber) as Box<_>,
            is_alive: Box::new(is_alive),
        };
        subscribers.insert(0, first);
    }

    /// Calls a new subscriber with every object that is there. The returned lock keeps changes from
    /// being delivered until it is added.
    fn replay(&self, subscriber: &impl Fn(&Change<K>)) -> MutexGuard<'_, Vec<Subscriber<K>>> {
        let subscribers = self.shared.subscribers.lock();
        let present = self.shared.contents.read().list("");
        for object in present {
            subscriber(&Change::Added(object));
        }
        subscribers
    }

    /// Resolves once the first listing is complete.
    pub async fn synced(&self) {
        self.wait_until(Contents::is_synced).await;
    }

    /// Whether [`Self::synced`] has resolved.
    pub fn is_synced(&self) -> bool {
        self.shared.contents.read().is_synced()
    }

    /// Resolves once the cache includes the object that was `written`, so that a later decision does
    /// not overlook this write. Call it after the write has returned.
    pub async fn wait_for_write(
        &self,
        written: &impl Resource,
        limit: Duration,
    ) -> Result<(), WatchTimeout> {
        let written = written.meta();
        let namespace = written.namespace.as_deref().unwrap_or_default();
        let version = written.resource_version.as_deref().unwrap_or_default();
        let part = self.parts.get(namespace).unwrap_or(self);
        part.wait_for_version(version, limit).await?;
        // The objects are updated, and subscribers may still be running.
        drop(part.shared.subscribers.lock());
        Ok(())
    }

    /// The same for the version that was written. In a union every part must reach it, since a version
    /// does not name the part that will show it.
    pub async fn wait_for_version(
        &self,
        version: &str,
        limit: Duration,
    ) -> Result<(), WatchTimeout> {
        let Ok(number) = version.parse() else {
            // A version that is not a number has no order, so nothing can be awaited.
            return Ok(());
        };
        let parts = self.parts.values();
        let watched: Vec<_> = if self.parts.is_empty() {
            vec![self]
        } else {
            parts.collect()
        };
        let reached = join_all(watched.into_iter().map(|cache| cache.wait_reached(number)));
        let reached = self.shared.clock.within(limit, reached).await.map(drop);
        reached.ok_or_else(|| WatchTimeout {
            version: version.to_owned(),
            waited: limit,
        })
    }

    async fn wait_reached(&self, version: u64) {
        let listings_begun = self.shared.contents.read().listings_begun();
        self.wait_until(|contents| contents.has_reached(version, listings_begun))
            .await;
    }

    pub(super) fn position(&self) -> WatchPosition {
        self.shared.contents.read().position()
    }

    /// Resolves once the cache was updated after this call.
    pub(super) fn next_change(&self) -> impl Future<Output = ()> + Send + use<K> {
        let mut updates = self.shared.updates.subscribe();
        async move {
            let _ = updates.changed().await;
        }
    }

    async fn wait_until(&self, condition: impl Fn(&Contents<K>) -> bool) {
        let mut updates = self.shared.updates.subscribe();
        while !condition(&self.shared.contents.read()) {
            if updates.changed().await.is_err() {
                return;
            }
        }
    }
}

impl<K: CachedObject + Clone + Send + Sync + 'static> Cache<K> {
    /// Applies an event of the watch and notifies the subscribers.
    pub(super) fn apply_event(&self, event: Event<Decoded<K>>) {
        let subscribers = self.shared.subscribers.lock();
        let changes = self.shared.contents.write().apply_event(event);
        for change in &changes {
            subscribers.iter().for_each(|one| one.call(change));
        }
        drop(subscribers);
        self.shared.updates.send_modify(|count| *count += 1);
    }
}

impl<K> fmt::Debug for Cache<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache")
            .field("objects", &self.shared.contents.read().len())
            .finish_non_exhaustive()
    }
}

impl Coded for WatchTimeout {
    fn code(&self) -> Code {
        Code("NT-KIT-015")
    }
}
