//! A watched kind, as its readers hold it.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use futures::future::join_all;
use kube::{Resource, runtime::watcher::Event};
use parking_lot::{Mutex, MutexGuard, RwLock};
use tokio::sync::watch;

use super::{Change, Unreadable, contents::Contents, lenient::Lenient};
use crate::{
    clock::Clock,
    echo::Stand,
    key::Key,
    why::{Code, Coded},
};

/// The objects of a kind and scope. Cheap to copy; every copy shows the same.
pub struct Cache<K> {
    shared: Arc<Shared<K>>,
    /// What it is put together from, by namespace; nothing if it is of one watch.
    parts: Arc<BTreeMap<String, Self>>,
}

type Follower<K> = Box<dyn Fn(&Change<K>) + Send + Sync>;

pub(super) struct Shared<K> {
    contents: RwLock<Contents<K>>,
    /// Held while followers are told, so that one who joins misses nothing and hears nothing twice.
    followers: Mutex<Vec<Follower<K>>>,
    /// Counts what was taken in.
    taken: watch::Sender<u64>,
    clock: Clock,
}

/// What was written has not come back in time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the watch has not shown version {version} within {waited:?}")]
pub struct Late {
    /// The version that was waited for.
    pub version: String,
    /// For how long.
    pub waited: Duration,
}

impl<K> Clone for Cache<K> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
            parts: self.parts.clone(),
        }
    }
}

impl<K: Resource + Send + Sync + 'static> Cache<K> {
    pub(super) fn new(clock: Clock) -> Self {
        Self::of(clock, BTreeMap::new())
    }

    /// Shows what all `parts` show.
    pub(super) fn together(clock: Clock, parts: BTreeMap<String, Self>) -> Self {
        let whole = Self::of(clock, parts);
        for part in whole.parts.values() {
            whole.show(part);
        }
        whole
    }

    fn of(clock: Clock, parts: BTreeMap<String, Self>) -> Self {
        Self {
            parts: Arc::new(parts),
            shared: Arc::new(Shared {
                contents: RwLock::default(),
                followers: Mutex::default(),
                taken: watch::Sender::new(0),
                clock,
            }),
        }
    }

    /// Shows from now on what `part` shows, besides what it shows already.
    fn show(&self, part: &Self) {
        let whole = self.shared.clone();
        part.follow(move |change| {
            let followers = whole.followers.lock();
            whole.contents.write().copy(change);
            followers.iter().for_each(|follower| follower(change));
            drop(followers);
            whole.taken.send_modify(|taken| *taken += 1);
        });
    }

    /// All parts have shown everything that there was.
    pub(super) fn complete(&self) {
        self.shared.contents.write().complete();
        self.shared.taken.send_modify(|taken| *taken += 1);
    }

    /// The object, if it is there.
    pub fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.shared.contents.read().get(key)
    }

    /// All objects in order; those of one namespace if it is not empty.
    pub fn list(&self, namespace: &str) -> Vec<Arc<K>> {
        self.shared.contents.read().within(namespace)
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.shared.contents.read().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Objects that cannot be decoded, and why.
    pub fn unreadable(&self) -> BTreeMap<Key, Unreadable> {
        self.shared.contents.read().unreadable().clone()
    }

    /// Tells `follower` of everything that is there and then of every change, in order. It is
    /// called on the watch's own task, so it must be quick: put a key into a queue.
    pub fn follow(&self, follower: impl Fn(&Change<K>) + Send + Sync + 'static) {
        self.told(&follower).push(Box::new(follower));
    }

    /// The same for what others look things up in: it is told before them, whoever came first.
    /// Somebody who was told of a change may act on it at once, on another thread.
    pub(super) fn follow_before_others(
        &self,
        follower: impl Fn(&Change<K>) + Send + Sync + 'static,
    ) {
        self.told(&follower).insert(0, Box::new(follower));
    }

    /// The followers, who hear nothing while one who joins is told of everything that is there.
    fn told(&self, follower: &impl Fn(&Change<K>)) -> MutexGuard<'_, Vec<Follower<K>>> {
        let followers = self.shared.followers.lock();
        let present = self.shared.contents.read().within("");
        for object in present {
            follower(&Change::Added(object));
        }
        followers
    }

    /// Resolves once everything that was there when the watch began is known.
    pub async fn synced(&self) {
        self.until(Contents::is_synced).await;
    }

    /// Whether [`Self::synced`] has resolved.
    pub fn is_synced(&self) -> bool {
        self.shared.contents.read().is_synced()
    }

    /// Resolves once what was `written` is known here, so that a decision made afterwards does not
    /// overlook one's own work. To be asked after the write.
    pub async fn shows_written(
        &self,
        written: &impl Resource,
        limit: Duration,
    ) -> Result<(), Late> {
        let written = written.meta();
        let namespace = written.namespace.as_deref().unwrap_or_default();
        let version = written.resource_version.as_deref().unwrap_or_default();
        let part = self.parts.get(namespace).unwrap_or(self);
        part.shows(version, limit).await?;
        // It may know and still be telling.
        drop(part.shared.followers.lock());
        Ok(())
    }

    /// The same by the version that was written. Of a cache that is put together every part must
    /// have come so far, since a version does not say which of them will show it.
    pub async fn shows(&self, version: &str, limit: Duration) -> Result<(), Late> {
        let Ok(number) = version.parse() else {
            // Nobody can say what comes after a version that is no number.
            return Ok(());
        };
        let parts = self.parts.values();
        let watched: Vec<_> = if self.parts.is_empty() {
            vec![self]
        } else {
            parts.collect()
        };
        let seen = join_all(watched.into_iter().map(|one| one.reaches(number)));
        let seen = self.shared.clock.within(limit, seen).await.map(drop);
        seen.ok_or_else(|| Late {
            version: version.to_owned(),
            waited: limit,
        })
    }

    async fn reaches(&self, version: u64) {
        let listings = self.shared.contents.read().listings();
        self.until(|contents| contents.has_reached(version, listings))
            .await;
    }

    pub(super) fn stand(&self) -> Stand {
        self.shared.contents.read().stand()
    }

    /// Resolves once something was taken in after this was called.
    pub(super) fn moved(&self) -> impl Future<Output = ()> + Send + use<K> {
        let mut taken = self.shared.taken.subscribe();
        async move {
            let _ = taken.changed().await;
        }
    }

    async fn until(&self, condition: impl Fn(&Contents<K>) -> bool) {
        let mut taken = self.shared.taken.subscribe();
        while !condition(&self.shared.contents.read()) {
            if taken.changed().await.is_err() {
                return;
            }
        }
    }
}

impl<K: Resource + Clone + Send + Sync + 'static> Cache<K> {
    /// Takes in what the watch tells.
    pub(super) fn take(&self, event: Event<Lenient<K>>) {
        let followers = self.shared.followers.lock();
        let changes = self.shared.contents.write().take(event);
        for change in &changes {
            followers.iter().for_each(|follower| follower(change));
        }
        drop(followers);
        self.shared.taken.send_modify(|taken| *taken += 1);
    }
}

impl<K> fmt::Debug for Cache<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache")
            .field("objects", &self.shared.contents.read().len())
            .finish_non_exhaustive()
    }
}

impl Coded for Late {
    fn code(&self) -> Code {
        Code("NT-KIT-015")
    }
}
