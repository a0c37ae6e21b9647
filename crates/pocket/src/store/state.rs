//! The state behind the lock: committed objects, pending writes and recent history.

mod bucket;
mod past;

use std::{collections::VecDeque, sync::Arc, time::Duration};

use jiff::Timestamp;
use tokio::sync::watch as wake;

use super::{
    Change, Error, Event, Expect, Follower, LocatedObject, Object, Put, Retention, encode,
};

pub(super) use past::Batch;
pub use past::{KeyRange, Page};

use bucket::{Bucket, Buckets};
use past::{prefix, scan};

/// The content of the store.
#[derive(Default)]
pub(crate) struct State {
    /// The newest sequenced revision.
    pub(super) sequenced: u64,
    /// The newest committed revision.
    pub(super) committed: u64,
    /// Changes up to here are dropped; states from here on can be read.
    pub(super) compacted: u64,
    /// Changes before this revision were never known here.
    born: u64,
    buckets: Buckets,
    /// All retained events in order; each is also in its bucket's log.
    log: VecDeque<Arc<Event>>,
    weight: usize,
    /// Why writes are refused.
    pub(super) broken: Option<Arc<str>>,
}

/// The newest state of an object, for a write to build on.
#[derive(Debug, Clone)]
pub struct Head {
    /// The object, absent if the newest change removes it.
    pub object: Option<Arc<Object>>,
    /// The revision that must be committed before a client may see this state.
    pub revision: u64,
}

/// The watchers of a resource, to be woken for a change.
#[must_use]
pub(super) struct WatcherWake(wake::Sender<u64>, u64);

impl WatcherWake {
    /// Must be called without the state's lock: the woken watchers take it first.
    pub(super) fn wake(self) {
        self.0.send_replace(self.1);
    }

    pub(super) fn watchers(&self) -> usize {
        self.0.receiver_count()
    }

    /// Whether both wake the same watchers.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.0.same_channel(&other.0)
    }
}

impl State {
    pub(super) fn new(revision: u64) -> Self {
        Self {
            sequenced: revision,
            committed: revision,
            compacted: revision,
            born: revision,
            ..Self::default()
        }
    }

    /// A state restored from disk; the changes after `known` will be added.
    pub(super) fn restore(
        revision: u64,
        known: u64,
        objects: impl Iterator<Item = (Arc<str>, Arc<str>, Object)>,
    ) -> Self {
        let mut state = Self::new(revision);
        state.compacted = known;
        state.born = known;
        for (resource, path, object) in objects {
            state
                .bucket(&resource)
                .objects
                .insert(path, Arc::new(object));
        }
        state
    }

    fn bucket(&mut self, resource: &str) -> &mut Bucket {
        self.buckets.of(resource, self.committed, self.born)
    }

    /// Checks the expectation, assigns the revision and builds the event.
    pub(super) fn sequence(
        &mut self,
        resource: &str,
        path: &str,
        expect: Expect,
        put: Put<'_>,
        at: Timestamp,
    ) -> Result<Arc<Event>, Error> {
        let previous = self.head(resource, path).and_then(|head| head.object);
        let found = previous.as_ref().map(|object| object.revision());
        let expected = match expect {
            Expect::Absent => None,
            Expect::Revision(revision) => Some(revision),
        };
        if found != expected {
            return Err(Error::Conflict);
        }
        let (change, value) = match put {
            Put::Object(value) if previous.is_none() => (Change::Added, value),
            Put::Object(value) => (Change::Modified, value),
            Put::Gone(value) => (Change::Deleted, value),
        };
        let revision = self.sequenced + 1;
        let object = Object::new(revision, encode(value, revision));
        if change != Change::Deleted {
            object.check_size()?;
        }
        self.sequenced = revision;
        let (resource, path) = self.names(resource, path);
        Ok(Arc::new(Event {
            change,
            resource,
            path,
            object: Arc::new(object),
            previous,
            at,
        }))
    }

    /// The shared copies of both names, so that events do not each hold their own.
    fn names(&mut self, resource: &str, path: &str) -> (Arc<str>, Arc<str>) {
        let bucket = self.bucket(resource);
        let shared = bucket.objects.get_key_value(path);
        let path = shared.map_or_else(|| path.into(), |(path, _)| path.clone());
        (bucket.name.clone(), path)
    }

    /// Records a sequenced change as pending, so that the next write builds on it.
    pub(super) fn hold(&mut self, event: &Arc<Event>) {
        let bucket = self.bucket(&event.resource);
        bucket.pending.insert(event.path.clone(), event.clone());
    }

    /// Makes a sequenced change visible and calls the followers of the resource. Its watchers must
    /// be woken once the state can be read.
    pub(super) fn commit(&mut self, event: Arc<Event>, retention: Retention) -> WatcherWake {
        let revision = event.revision();
        self.committed = revision;
        self.weight += event.weight();
        self.log.push_back(event.clone());
        let bucket = self.bucket(&event.resource);
        match event.present() {
            Some(object) => bucket.objects.insert(event.path.clone(), object.clone()),
            None => bucket.objects.remove(&event.path),
        };
        if bucket
            .pending
            .get(&event.path)
            .is_some_and(|newest| newest.revision() == revision)
        {
            bucket.pending.remove(&event.path);
        }
        for follower in &bucket.followers {
            follower(event.change, &event.object);
        }
        bucket.log.push_back(event);
        let wake = WatcherWake(bucket.wake.clone(), revision);
        while self.weight > retention.bytes && self.log.len() > 1 {
            self.forget_oldest();
        }
        wake
    }

    /// Calls `follower` with the present objects, and with every change from now on.
    pub(super) fn follow(&mut self, resource: &str, follower: Follower) {
        let bucket = self.bucket(resource);
        for object in bucket.objects.values() {
            follower(Change::Added, object);
        }
        bucket.followers.push(follower);
    }

    /// Adds a change that was committed before the state was restored.
    pub(super) fn remember(&mut self, event: Arc<Event>) {
        self.weight += event.weight();
        self.log.push_back(event.clone());
        let bucket = self.bucket(&event.resource);
        bucket.log.push_back(event);
    }

    /// Drops everything that was sequenced but will never commit.
    pub(super) fn abandon(&mut self, cause: &str) {
        self.broken = Some(cause.into());
        for bucket in self.buckets.iter_mut() {
            bucket.pending.clear();
        }
    }

    pub(super) fn expire(&mut self, now: Timestamp, age: Duration) {
        let Ok(limit) = now.checked_sub(age) else {
            return;
        };
        while self.log.front().is_some_and(|event| event.at < limit) {
            self.forget_oldest();
        }
    }

    pub(super) fn compact(&mut self, revision: u64) {
        while self.log.front().is_some_and(|e| e.revision() <= revision) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let Some(event) = self.log.pop_front() else {
            return;
        };
        self.weight = self.weight.saturating_sub(event.weight());
        self.compacted = event.revision();
        if let Some(bucket) = self.buckets.get_mut(&event.resource) {
            bucket.log.pop_front();
            bucket.forgotten = event.revision();
        }
    }

    /// The revision from which on every change of a resource is known.
    pub(super) fn known_from(&self, resource: &str) -> u64 {
        self.buckets
            .get(resource)
            .map_or(self.born, |bucket| bucket.forgotten)
    }

    /// Wakes every watcher.
    pub(super) fn wake_all(&self) {
        for bucket in self.buckets.iter() {
            bucket.wake.send_modify(|_| {});
        }
    }

    pub(super) fn head(&self, resource: &str, path: &str) -> Option<Head> {
        let bucket = self.buckets.get(resource)?;
        if let Some(event) = bucket.pending.get(path) {
            return Some(Head {
                object: event.present().cloned(),
                revision: event.revision(),
            });
        }
        let object = bucket.objects.get(path)?;
        Some(Head {
            revision: object.revision(),
            object: Some(object.clone()),
        })
    }

    pub(super) fn heads(&self, resource: &str, namespace: &str) -> Vec<Arc<Object>> {
        let Some(bucket) = self.buckets.get(resource) else {
            return Vec::new();
        };
        let range = KeyRange::of(namespace);
        let committed =
            scan(&bucket.objects, &range).filter(|(path, _)| !bucket.pending.contains_key(*path));
        let prefix = prefix(&range);
        let pending = bucket.pending.iter();
        let pending = pending
            .filter(|(path, _)| path.starts_with(&prefix))
            .filter_map(|(path, event)| Some((path, event.present()?)));
        let mut heads: Vec<_> = committed.chain(pending).collect();
        // Costs next to nothing when nothing is pending.
        heads.sort_by_key(|(path, _)| *path);
        heads
            .into_iter()
            .map(|(_, object)| object.clone())
            .collect()
    }

    pub(super) fn pending(&self, resource: &str) -> Vec<Arc<Object>> {
        let bucket = self.buckets.get(resource).into_iter();
        bucket
            .flat_map(|bucket| bucket.pending.values())
            .filter_map(|event| event.present().cloned())
            .collect()
    }

    pub(super) fn subscribe(&mut self, resource: &str) -> wake::Receiver<u64> {
        self.bucket(resource).wake.subscribe()
    }

    pub(super) fn history(&self) -> impl Iterator<Item = &Arc<Event>> {
        self.log.iter()
    }

    /// All committed objects, for a snapshot on disk.
    pub(super) fn live(&self) -> Vec<LocatedObject> {
        let buckets = self.buckets.iter();
        buckets
            .flat_map(|bucket| {
                let objects = bucket.objects.iter();
                objects.map(|(path, object)| (bucket.name.clone(), path.clone(), object.clone()))
            })
            .collect()
    }

    pub(super) fn count(&self, resource: &str) -> usize {
        self.buckets
            .get(resource)
            .map_or(0, |bucket| bucket.objects.len())
    }

    pub(super) fn fork(&self) -> Self {
        Self {
            sequenced: self.committed,
            committed: self.committed,
            compacted: self.compacted,
            born: self.born,
            buckets: self.buckets.fork(self.committed),
            log: self.log.clone(),
            weight: self.weight,
            broken: None,
        }
    }
}
