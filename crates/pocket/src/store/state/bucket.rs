//! The state of one resource, and the index of all.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
};

use tokio::sync::watch as wake;

use crate::store::{Event, Follower, Object};

pub(super) type Objects = BTreeMap<Arc<str>, Arc<Object>>;

/// One resource.
pub(super) struct Bucket {
    /// The resource, shared by all its events.
    pub(super) name: Arc<str>,
    pub(super) objects: Objects,
    /// The newest sequenced but uncommitted change of an object.
    pub(super) pending: HashMap<Arc<str>, Arc<Event>>,
    pub(super) log: VecDeque<Arc<Event>>,
    /// The newest change of this resource that was dropped from the log.
    pub(super) forgotten: u64,
    pub(super) wake: wake::Sender<u64>,
    /// Called with each commit before a client can see it.
    pub(super) followers: Vec<Follower>,
}

impl Bucket {
    fn new(name: Arc<str>, revision: u64, forgotten: u64) -> Self {
        Self {
            name,
            objects: Objects::new(),
            pending: HashMap::new(),
            log: VecDeque::new(),
            forgotten,
            wake: wake::Sender::new(revision),
            followers: Vec::new(),
        }
    }
}

/// All resources. A bucket is never removed, so its index stays the same.
#[derive(Default)]
pub(super) struct Buckets {
    indices: HashMap<Arc<str>, usize>,
    all: Vec<Bucket>,
}

impl Buckets {
    pub(super) fn get(&self, resource: &str) -> Option<&Bucket> {
        self.all.get(*self.indices.get(resource)?)
    }

    pub(super) fn get_mut(&mut self, resource: &str) -> Option<&mut Bucket> {
        self.all.get_mut(*self.indices.get(resource)?)
    }

    /// The bucket of a resource. The first call allocates it: a bucket at `revision`, whose changes
    /// up to `forgotten` are unknown.
    pub(super) fn of(&mut self, resource: &str, revision: u64, forgotten: u64) -> &mut Bucket {
        let index = self.indices.get(resource).copied();
        let index =
            index.unwrap_or_else(|| self.add(Bucket::new(resource.into(), revision, forgotten)));
        &mut self.all[index]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Bucket> {
        self.all.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Bucket> {
        self.all.iter_mut()
    }

    /// The same objects and history, with nothing pending and no watchers.
    pub(super) fn fork(&self, revision: u64) -> Self {
        let mut fork = Self::default();
        for bucket in &self.all {
            fork.add(Bucket {
                objects: bucket.objects.clone(),
                log: bucket.log.clone(),
                ..Bucket::new(bucket.name.clone(), revision, bucket.forgotten)
            });
        }
        fork
    }

    fn add(&mut self, bucket: Bucket) -> usize {
        let index = self.all.len();
        self.indices.insert(bucket.name.clone(), index);
        self.all.push(bucket);
        index
    }
}
