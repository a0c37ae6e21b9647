//! The state behind the lock: what is there now, what is on its way, and what happened lately.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    ops::Bound,
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use tokio::sync::watch as wake;

use super::{Change, Error, Event, Expect, Follower, Object, Placed, Put, Retention, encode};

type Objects = BTreeMap<Arc<str>, Arc<Object>>;

/// Everything the store knows.
#[derive(Default)]
pub(crate) struct State {
    /// The newest sequenced revision.
    pub(super) sequenced: u64,
    /// The newest committed revision.
    pub(super) committed: u64,
    /// Changes up to here are forgotten; states from here on can be read.
    pub(super) compacted: u64,
    /// What happened before this revision was never known here.
    born: u64,
    buckets: HashMap<Arc<str>, Bucket>,
    /// All kept events in order; each is also in its bucket's log.
    log: VecDeque<Arc<Event>>,
    weight: usize,
    /// Why nothing more can be written.
    pub(super) broken: Option<Arc<str>>,
}

/// One resource.
struct Bucket {
    objects: Objects,
    /// The newest sequenced but uncommitted change of an object.
    pending: HashMap<Arc<str>, Arc<Event>>,
    log: VecDeque<Arc<Event>>,
    /// The newest change of this resource that is no longer in the log.
    forgotten: u64,
    wake: wake::Sender<u64>,
    /// Told of each commit before anybody can see it.
    followers: Vec<Follower>,
}

/// The newest state of an object, for a write to build on.
#[derive(Debug, Clone)]
pub struct Head {
    /// The object, absent if the newest change removes it.
    pub object: Option<Arc<Object>>,
    /// The revision that must be committed before anyone is told of this state.
    pub revision: u64,
}

/// A part of a resource in key order.
#[derive(Debug, Clone, Default)]
pub struct Range<'a> {
    /// Only this namespace, if not empty.
    pub namespace: &'a str,
    /// Only keys after this one.
    pub after: Option<&'a str>,
}

/// Objects read at one revision, in key order.
#[derive(Debug)]
pub struct Page {
    /// The revision at which all of them were read.
    pub revision: u64,
    /// Keys and objects.
    pub objects: Vec<(Arc<str>, Arc<Object>)>,
}

impl Bucket {
    fn new(revision: u64, forgotten: u64) -> Self {
        Self {
            objects: Objects::new(),
            pending: HashMap::new(),
            log: VecDeque::new(),
            forgotten,
            wake: wake::Sender::new(revision),
            followers: Vec::new(),
        }
    }

    /// What must be undone to see the bucket as it was at `revision`.
    fn undo(&self, revision: u64) -> HashMap<&str, Option<&Arc<Object>>> {
        let newer = self
            .log
            .iter()
            .rev()
            .take_while(|e| e.revision() > revision);
        newer.map(|e| (&*e.path, e.previous.as_ref())).collect()
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

    /// A state restored from disk, of which the changes after `known` will be remembered.
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
        // Looked up twice so that the common case allocates no key.
        if !self.buckets.contains_key(resource) {
            let bucket = Bucket::new(self.committed, self.born);
            self.buckets.insert(resource.into(), bucket);
        }
        let born = self.born;
        self.buckets
            .entry(resource.into())
            .or_insert_with(|| Bucket::new(born, born))
    }

    /// Checks the expectation, gives the write its revision and builds its event.
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
        self.bucket(resource);
        match self.buckets.get_key_value(resource) {
            Some((name, bucket)) => {
                let shared = bucket
                    .objects
                    .get_key_value(path)
                    .map(|(key, _)| key.clone());
                (name.clone(), shared.unwrap_or_else(|| path.into()))
            }
            None => (resource.into(), path.into()),
        }
    }

    /// Marks a sequenced change as on its way, so that the next write builds on it.
    pub(super) fn hold(&mut self, event: &Arc<Event>) {
        let bucket = self.bucket(&event.resource);
        bucket.pending.insert(event.path.clone(), event.clone());
    }

    /// Makes a sequenced change visible, tells the followers of the resource and wakes those who
    /// watch it.
    pub(super) fn commit(&mut self, event: Arc<Event>, retention: Retention) {
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
        bucket.wake.send_replace(revision);
        while self.weight > retention.bytes && self.log.len() > 1 {
            self.forget_oldest();
        }
    }

    /// Shows `follower` what is there, and every change from now on.
    pub(super) fn follow(&mut self, resource: &str, follower: Follower) {
        let bucket = self.bucket(resource);
        for object in bucket.objects.values() {
            follower(Change::Added, object);
        }
        bucket.followers.push(follower);
    }

    /// Takes in a change that was committed before the state was restored.
    pub(super) fn remember(&mut self, event: Arc<Event>) {
        self.weight += event.weight();
        self.log.push_back(event.clone());
        let bucket = self.bucket(&event.resource);
        bucket.log.push_back(event);
    }

    /// Drops everything that was sequenced but will never commit.
    pub(super) fn abandon(&mut self, cause: &str) {
        self.broken = Some(cause.into());
        for bucket in self.buckets.values_mut() {
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

    /// Makes every watcher look again.
    pub(super) fn wake_all(&self) {
        for bucket in self.buckets.values() {
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
        let range = Range {
            namespace,
            after: None,
        };
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

    /// Whether the state at `revision` can be read.
    pub(super) fn check(&self, revision: u64) -> Result<(), Error> {
        if revision > self.committed {
            return Err(Error::Future {
                asked: revision,
                newest: self.committed,
            });
        }
        if revision < self.compacted {
            return Err(Error::Compacted {
                asked: revision,
                oldest: self.compacted,
            });
        }
        Ok(())
    }

    /// One object as it was at `revision`, which must have been checked.
    pub(super) fn get(&self, resource: &str, path: &str, revision: u64) -> Option<Arc<Object>> {
        let bucket = self.buckets.get(resource)?;
        let newer = bucket
            .log
            .iter()
            .rev()
            .take_while(|e| e.revision() > revision);
        match newer.filter(|e| *e.path == *path).last() {
            Some(event) => event.previous.clone(),
            None => bucket.objects.get(path).cloned(),
        }
    }

    /// The objects of a range as they were at `revision`, which must have been checked.
    pub(super) fn page(&self, resource: &str, range: &Range<'_>, revision: u64) -> Page {
        let mut objects = Vec::new();
        if let Some(bucket) = self.buckets.get(resource) {
            let undo = bucket.undo(revision);
            if undo.is_empty() {
                objects.extend(scan(&bucket.objects, range).map(|(k, o)| (k.clone(), o.clone())));
            } else {
                objects = undone(bucket, range, &undo);
            }
        }
        Page { revision, objects }
    }

    /// Events of a resource after `after` and up to `until`, at most `most`.
    pub(super) fn events(
        &self,
        resource: &str,
        after: u64,
        until: u64,
        most: usize,
    ) -> Vec<Arc<Event>> {
        let Some(bucket) = self.buckets.get(resource) else {
            return Vec::new();
        };
        let start = bucket.log.partition_point(|e| e.revision() <= after);
        let rest = bucket.log.range(start..);
        rest.take_while(|e| e.revision() <= until)
            .take(most)
            .cloned()
            .collect()
    }

    pub(super) fn subscribe(&mut self, resource: &str) -> wake::Receiver<u64> {
        self.bucket(resource).wake.subscribe()
    }

    pub(super) fn history(&self) -> impl Iterator<Item = &Arc<Event>> {
        self.log.iter()
    }

    /// The revision `events` changes before the newest.
    pub(super) fn lagging(&self, events: usize) -> u64 {
        let Some(newest) = self.log.len().checked_sub(events + 1) else {
            return self.compacted;
        };
        self.log
            .get(newest)
            .map_or(self.committed, |e| e.revision())
    }

    /// All committed objects, for a snapshot on disk.
    pub(super) fn live(&self) -> Vec<Placed> {
        let buckets = self.buckets.iter();
        buckets
            .flat_map(|(name, bucket)| {
                let objects = bucket.objects.iter();
                objects.map(|(path, object)| (name.clone(), path.clone(), object.clone()))
            })
            .collect()
    }

    pub(super) fn count(&self, resource: &str) -> usize {
        self.buckets
            .get(resource)
            .map_or(0, |bucket| bucket.objects.len())
    }

    pub(super) fn changes_after(&self, revision: u64, most: usize) -> Vec<Arc<Event>> {
        let start = self
            .log
            .partition_point(|event| event.revision() <= revision);
        self.log.range(start..).take(most).cloned().collect()
    }

    pub(super) fn fork(&self) -> Self {
        let buckets = self.buckets.iter().map(|(name, bucket)| {
            let copy = Bucket {
                objects: bucket.objects.clone(),
                log: bucket.log.clone(),
                ..Bucket::new(self.committed, bucket.forgotten)
            };
            (name.clone(), copy)
        });
        Self {
            sequenced: self.committed,
            committed: self.committed,
            compacted: self.compacted,
            born: self.born,
            buckets: buckets.collect(),
            log: self.log.clone(),
            weight: self.weight,
            broken: None,
        }
    }
}

/// The part of `objects` in `range`.
fn scan<'a>(
    objects: &'a Objects,
    range: &Range<'_>,
) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<Object>)> + use<'a> {
    let prefix = prefix(range);
    let start: Bound<Arc<str>> = match range.after {
        Some(after) if after >= prefix.as_str() => Bound::Excluded(after.into()),
        _ => Bound::Included(prefix.as_str().into()),
    };
    objects
        .range((start, Bound::Unbounded))
        .take_while(move |(key, _)| key.starts_with(prefix.as_str()))
}

fn prefix(range: &Range<'_>) -> String {
    match range.namespace {
        "" => String::new(),
        namespace => format!("{namespace}/"),
    }
}

/// The slow path of a page: the past is today's objects with the changes since undone.
fn undone(
    bucket: &Bucket,
    range: &Range<'_>,
    undo: &HashMap<&str, Option<&Arc<Object>>>,
) -> Vec<(Arc<str>, Arc<Object>)> {
    let prefix = prefix(range);
    let inside =
        |key: &str| key.starts_with(&prefix) && range.after.is_none_or(|after| key > after);
    let mut objects: Objects = scan(&bucket.objects, range)
        .filter(|(key, _)| !undo.contains_key(&***key))
        .map(|(key, object)| (key.clone(), object.clone()))
        .collect();
    for (&path, previous) in undo {
        if let Some(object) = previous
            && inside(path)
        {
            objects.insert(path.into(), (*object).clone());
        }
    }
    objects.into_iter().collect()
}
