//! The objects of a watch, as a value: watch events in, changes out.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kube::runtime::watcher::Event;

use super::{
    CachedObject,
    by_name::{NameOf, Named, NamedObjects},
    decoded::{DecodeFailure, Decoded},
};
use crate::{key::Key, own_writes::WatchPosition, planted};

/// A change of an object in a cache.
#[derive(Debug, Clone)]
pub enum Change<K> {
    /// The object is new to the cache.
    Added(Arc<K>),
    /// The object has a new version.
    Modified {
        /// The last version in the cache.
        old: Arc<K>,
        /// The new version.
        new: Arc<K>,
    },
    /// The object is gone; this is its last known version.
    Deleted(Arc<K>),
}

impl<K: CachedObject> Change<K> {
    /// The object in its newest known version.
    pub fn object(&self) -> &Arc<K> {
        match self {
            Self::Added(object) | Self::Modified { new: object, .. } | Self::Deleted(object) => {
                object
            }
        }
    }

    /// The key of the object.
    pub fn key(&self) -> Key {
        key_of(&**self.object())
    }
}

fn key_of(object: &impl CachedObject) -> Key {
    let (namespace, name) = object.cached_key();
    Key::new(namespace, name)
}

/// Why an object could not be decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndecodableObject {
    /// The version that could not be decoded.
    pub version: String,
    /// The error of the decoder.
    pub problem: String,
}

/// All objects that the watch has received.
#[derive(Debug)]
pub(super) struct Contents<K> {
    objects: NamedObjects<K>,
    undecodable: BTreeMap<Key, UndecodableObject>,
    listing: Option<Listing<K>>,
    /// The number of listings that were begun.
    listings_begun: u64,
    /// The number of the last complete listing, counted from 1.
    listing_completed: Option<u64>,
    /// The newest version received.
    reached: u64,
    trim: Option<Trim<K>>,
}

/// What a cache keeps of an object: `keep` removes what no reader of the cache needs, before the object is
/// stored. A trimmed object must never be written back as a whole; an apply or a merge of single fields is
/// safe.
#[derive(Debug)]
pub struct Trim<K> {
    /// Tells two trims of one kind apart: caches are shared by readers with the same trim.
    pub name: &'static str,
    /// Removes what is not kept. Name, namespace, uid and resource version must stay.
    pub keep: fn(&mut K),
}

impl<K> Clone for Trim<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Trim<K> {}

/// A listing in progress.
#[derive(Debug)]
struct Listing<K> {
    objects: NamedObjects<K>,
    undecodable: BTreeSet<Key>,
    /// The newest version in it. Listings are ordered by name, so older versions may still follow.
    reached: u64,
}

impl<K> Default for Contents<K> {
    fn default() -> Self {
        Self {
            objects: NamedObjects::default(),
            undecodable: BTreeMap::new(),
            listing: None,
            listings_begun: 0,
            listing_completed: None,
            reached: 0,
            trim: None,
        }
    }
}

impl<K> Contents<K> {
    /// Contents that keep of each object what `trim` leaves.
    pub(super) fn trimmed(trim: Option<Trim<K>>) -> Self {
        Self {
            trim,
            ..Self::default()
        }
    }
}

impl<K: CachedObject + Clone> Contents<K> {
    /// Applies an event of the watch and returns the changes that it causes.
    pub(super) fn apply_event(&mut self, event: Event<Decoded<K>>) -> Vec<Change<K>> {
        match event {
            Event::Init => {
                self.listing = Some(Listing {
                    objects: NamedObjects::default(),
                    undecodable: BTreeSet::new(),
                    reached: 0,
                });
                self.listings_begun += 1;
                Vec::new()
            }
            Event::InitApply(object) | Event::Apply(object) => self.apply_object(object),
            Event::Delete(object) => {
                self.reach(object.version());
                self.remove(&object).into_iter().collect()
            }
            Event::InitDone => self.end_listing(),
        }
    }

    fn apply_object(&mut self, object: Decoded<K>) -> Vec<Change<K>> {
        let found = object.version();
        self.reach(found);
        let object = match object.0 {
            Ok(object) => object,
            Err(failure) => {
                self.record_undecodable(failure);
                return Vec::new();
            }
        };
        self.clear_undecodable(&NameOf(&object));
        let old = self.objects.get(&NameOf(&object)).cloned();
        let same = old.as_ref().is_some_and(|old| old.has_uid_of(&object));
        if let Some(old) = old.as_ref().filter(|_| same)
            && old.version_number() >= found
        {
            self.add_to_listing(old);
            return Vec::new();
        }
        let new = Arc::new(stripped(object, self.trim));
        self.add_to_listing(&new);
        self.objects.insert(new.clone());
        match old {
            None => vec![Change::Added(new)],
            Some(old) if same => vec![Change::Modified { old, new }],
            // Another uid: the deletion of the old object was missed.
            Some(old) => vec![Change::Deleted(old), Change::Added(new)],
        }
    }

    /// Records that the listing in progress, if any, contains `object`.
    fn add_to_listing(&mut self, object: &Arc<K>) {
        planted!(ListCut => if self.listing.as_ref().is_some_and(|it| it.objects.len() > 1) { return });
        if let Some(listing) = &mut self.listing {
            listing.objects.insert(object.clone());
        }
    }

    fn record_undecodable(&mut self, failure: DecodeFailure) {
        let (namespace, name) = failure.metadata.namespace_and_name();
        let key = Key::new(namespace, name);
        if let Some(listing) = &mut self.listing {
            listing.undecodable.insert(key.clone());
        }
        let undecodable = UndecodableObject {
            version: failure.metadata.resource_version.unwrap_or_default(),
            problem: failure.problem,
        };
        if self.undecodable.get(&key) != Some(&undecodable) {
            tracing::warn!(object = %key, problem = undecodable.problem, "an object cannot be decoded and is skipped");
            self.undecodable.insert(key, undecodable);
        }
    }

    /// Forgets that the object could not be decoded: it can be by now, or is gone.
    fn clear_undecodable(&mut self, name: &dyn Named) {
        if !self.undecodable.is_empty() {
            let (namespace, name) = name.namespace_and_name();
            self.undecodable.remove(&Key::new(namespace, name));
        }
    }

    fn remove(&mut self, name: &dyn Named) -> Option<Change<K>> {
        self.clear_undecodable(name);
        self.objects.remove(name).map(Change::Deleted)
    }

    /// Removes the objects that a complete listing does not contain: their deletions were missed.
    fn end_listing(&mut self) -> Vec<Change<K>> {
        self.listing_completed = Some(self.listings_begun);
        let Some(listing) = self.listing.take() else {
            return Vec::new();
        };
        self.reach(listing.reached);
        self.undecodable
            .retain(|key, _| listing.undecodable.contains(key));
        let known = self.objects.iter();
        let gone: Vec<_> = known
            .filter(|object| listing.objects.get(&NameOf(&***object)).is_none())
            .map(|object| key_of(&**object))
            .filter(|key| !listing.undecodable.contains(key))
            .collect();
        planted!(RelistKeeps => return Vec::new());
        let deleted = gone.iter().filter_map(|key| self.remove(key)).collect();
        planted!(RelistSilent => return Vec::new());
        deleted
    }

    fn reach(&mut self, version: u64) {
        let reached = match &mut self.listing {
            Some(listing) => &mut listing.reached,
            None => &mut self.reached,
        };
        *reached = version.max(*reached);
    }
}

impl<K: CachedObject> Contents<K> {
    /// Applies a change of another cache of the same kind. This does not advance the position of the
    /// union: other parts of it may be behind.
    pub(super) fn apply_change(&mut self, change: &Change<K>) {
        match change {
            Change::Added(new) | Change::Modified { new, .. } => {
                self.objects.insert(new.clone());
            }
            Change::Deleted(old) => {
                self.objects.remove(&NameOf(&**old));
            }
        }
    }

    pub(super) fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.objects.get(key).cloned()
    }

    /// The objects of a namespace in order, or of all namespaces if it is empty.
    pub(super) fn list(&self, namespace: &str) -> Vec<Arc<K>> {
        if namespace.is_empty() {
            self.objects.iter().cloned().collect()
        } else {
            self.objects.in_namespace(namespace).cloned().collect()
        }
    }
}

impl<K> Contents<K> {
    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    pub(super) fn undecodable(&self) -> &BTreeMap<Key, UndecodableObject> {
        &self.undecodable
    }

    pub(super) fn is_synced(&self) -> bool {
        self.listing_completed.is_some()
    }

    /// The number of listings that were begun.
    pub(super) fn listings_begun(&self) -> u64 {
        self.listings_begun
    }

    /// Marks the contents as synced: all parts of the union have listed.
    pub(super) fn mark_synced(&mut self) {
        self.listings_begun += 1;
        self.listing_completed = Some(self.listings_begun);
    }

    pub(super) fn position(&self) -> WatchPosition {
        WatchPosition {
            reached: self.reached,
            listings_begun: self.listings_begun,
            listing_completed: self.listing_completed,
        }
    }

    /// Whether a write of `version` is included: the watch has reached that version, or has completed
    /// a listing that began after the write, when `listings_begun` had been begun.
    pub(super) fn has_reached(&self, version: u64, listings_begun: u64) -> bool {
        let completed = self.listing_completed;
        self.reached >= version || completed.is_some_and(|completed| completed > listings_begun)
    }
}

/// Drops the managed fields and what else no reader needs, and what the trim removes. The result is a clone
/// because vectors that were deserialized element by element have spare capacity, and clones have none.
fn stripped<K: CachedObject + Clone>(mut object: K, trim: Option<Trim<K>>) -> K {
    object.strip();
    if let Some(trim) = trim {
        (trim.keep)(&mut object);
    }
    object.clone()
}
