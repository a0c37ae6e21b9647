//! The objects of a watch, as a value: events in, changes out.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kube::{Resource, runtime::watcher::Event};

use super::{
    entry::{Entries, Named},
    lenient::{Invalid, Lenient},
};
use crate::{echo::Stand, key::Key, planted};

/// What happened to an object.
#[derive(Debug, Clone)]
pub enum Change<K> {
    /// It is there and was not.
    Added(Arc<K>),
    /// It differs from before.
    Modified {
        /// As it was when it was last seen.
        old: Arc<K>,
        /// As it is.
        new: Arc<K>,
    },
    /// It is gone; this is the last that was seen of it.
    Deleted(Arc<K>),
}

impl<K: Resource> Change<K> {
    /// The object, as it is or last was.
    pub fn object(&self) -> &Arc<K> {
        match self {
            Self::Added(object) | Self::Modified { new: object, .. } | Self::Deleted(object) => {
                object
            }
        }
    }

    /// Its key.
    pub fn key(&self) -> Key {
        Key::of(&**self.object())
    }
}

/// An object that is not what its kind should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// The version that could not be decoded.
    pub version: String,
    /// Why.
    pub problem: String,
}

/// All objects that are known.
#[derive(Debug)]
pub(super) struct Contents<K> {
    objects: Entries<K>,
    unreadable: BTreeMap<Key, Unreadable>,
    listing: Option<Listing<K>>,
    /// Listings that were begun, and of them the last that is complete.
    begun: u64,
    complete: Option<u64>,
    /// The newest version of which anything was heard.
    reached: u64,
}

/// What was listed so far.
#[derive(Debug)]
struct Listing<K> {
    objects: Entries<K>,
    unreadable: BTreeSet<Key>,
    /// The newest version in it. It comes by name: what is older may still be to come.
    reached: u64,
}

impl<K> Default for Contents<K> {
    fn default() -> Self {
        Self {
            objects: Entries::default(),
            unreadable: BTreeMap::new(),
            listing: None,
            begun: 0,
            complete: None,
            reached: 0,
        }
    }
}

impl<K: Resource + Clone> Contents<K> {
    /// Takes in what the watch tells, and returns what that changes.
    pub(super) fn take(&mut self, event: Event<Lenient<K>>) -> Vec<Change<K>> {
        match event {
            Event::Init => {
                self.listing = Some(Listing {
                    objects: Entries::default(),
                    unreadable: BTreeSet::new(),
                    reached: 0,
                });
                self.begun += 1;
                Vec::new()
            }
            Event::InitApply(object) | Event::Apply(object) => self.put(object),
            Event::Delete(object) => {
                self.reach(version(&object));
                self.remove(object.meta()).into_iter().collect()
            }
            Event::InitDone => self.end_listing(),
        }
    }

    fn put(&mut self, object: Lenient<K>) -> Vec<Change<K>> {
        let found = version(&object);
        self.reach(found);
        let object = match object.0 {
            Ok(object) => object,
            Err(invalid) => {
                self.report(invalid);
                return Vec::new();
            }
        };
        self.forgive(object.meta());
        let old = self.objects.get(object.meta()).cloned();
        let is_the_same = |old: &Arc<K>| old.meta().uid == object.meta().uid;
        let same = old.as_ref().is_some_and(is_the_same);
        if let Some(old) = old.as_ref().filter(|_| same)
            && version(&**old) >= found
        {
            self.list(old);
            return Vec::new();
        }
        let new = Arc::new(slim(object));
        self.list(&new);
        self.objects.put(new.clone());
        match old {
            None => vec![Change::Added(new)],
            Some(old) if same => vec![Change::Modified { old, new }],
            // Its end was missed.
            Some(old) => vec![Change::Deleted(old), Change::Added(new)],
        }
    }

    /// Notes that a listing has it.
    fn list(&mut self, object: &Arc<K>) {
        planted!(ListCut => if self.listing.as_ref().is_some_and(|it| it.objects.len() > 1) { return });
        if let Some(listing) = &mut self.listing {
            listing.objects.put(object.clone());
        }
    }

    fn report(&mut self, invalid: Invalid) {
        let (namespace, name) = invalid.metadata.place();
        let key = Key::new(namespace, name);
        if let Some(listing) = &mut self.listing {
            listing.unreadable.insert(key.clone());
        }
        let report = Unreadable {
            version: invalid.metadata.resource_version.unwrap_or_default(),
            problem: invalid.problem,
        };
        if self.unreadable.get(&key) != Some(&report) {
            tracing::warn!(object = %key, problem = report.problem, "an object cannot be read and is left out");
            self.unreadable.insert(key, report);
        }
    }

    /// It can be read, or is gone.
    fn forgive(&mut self, name: &dyn Named) {
        if !self.unreadable.is_empty() {
            let (namespace, name) = name.place();
            self.unreadable.remove(&Key::new(namespace, name));
        }
    }

    fn remove(&mut self, name: &dyn Named) -> Option<Change<K>> {
        self.forgive(name);
        self.objects.remove(name).map(Change::Deleted)
    }

    /// What a complete listing does not have is gone, though nobody said so.
    fn end_listing(&mut self) -> Vec<Change<K>> {
        self.complete = Some(self.begun);
        let Some(listing) = self.listing.take() else {
            return Vec::new();
        };
        self.reach(listing.reached);
        self.unreadable
            .retain(|key, _| listing.unreadable.contains(key));
        let known = self.objects.iter();
        let gone: Vec<_> = known
            .filter(|object| listing.objects.get(object.meta()).is_none())
            .map(|object| Key::of(&**object))
            .filter(|key| !listing.unreadable.contains(key))
            .collect();
        planted!(RelistKeeps => return Vec::new());
        let told = gone.iter().filter_map(|key| self.remove(key)).collect();
        planted!(RelistSilent => return Vec::new());
        told
    }

    fn reach(&mut self, version: u64) {
        let reached = match &mut self.listing {
            Some(listing) => &mut listing.reached,
            None => &mut self.reached,
        };
        *reached = version.max(*reached);
    }
}

impl<K: Resource> Contents<K> {
    /// Takes over what another of its kind has taken in. How far that one has come is for it to say:
    /// others may be behind.
    pub(super) fn copy(&mut self, change: &Change<K>) {
        match change {
            Change::Added(new) | Change::Modified { new, .. } => {
                self.objects.put(new.clone());
            }
            Change::Deleted(old) => {
                self.objects.remove(old.meta());
            }
        }
    }

    pub(super) fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.objects.get(key).cloned()
    }

    /// All objects of a namespace in order, or all there are if it is empty.
    pub(super) fn within(&self, namespace: &str) -> Vec<Arc<K>> {
        if namespace.is_empty() {
            self.objects.iter().cloned().collect()
        } else {
            self.objects.within(namespace).cloned().collect()
        }
    }
}

impl<K> Contents<K> {
    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    pub(super) fn unreadable(&self) -> &BTreeMap<Key, Unreadable> {
        &self.unreadable
    }

    pub(super) fn is_synced(&self) -> bool {
        self.complete.is_some()
    }

    /// How many listings were begun so far.
    pub(super) fn listings(&self) -> u64 {
        self.begun
    }

    /// Everything is known that there was.
    pub(super) fn complete(&mut self) {
        self.begun += 1;
        self.complete = Some(self.begun);
    }

    pub(super) fn stand(&self) -> Stand {
        Stand {
            reached: self.reached,
            begun: self.begun,
            complete: self.complete,
        }
    }

    /// Whether what was written as `version`, when so many listings had been begun, is known here
    /// or was overtaken by a listing.
    pub(super) fn has_reached(&self, version: u64, listings: u64) -> bool {
        self.reached >= version || self.complete.is_some_and(|complete| complete > listings)
    }
}

/// Versions are numbers that grow: the API promises it since 1.35, and every server did before.
fn version(object: &impl Resource) -> u64 {
    let version = object.meta().resource_version.as_deref();
    version
        .and_then(|version| version.parse().ok())
        .unwrap_or_default()
}

/// Nobody who decides anything looks at who wrote which field. What is kept is a copy, since lists that
/// were read element by element have room for more than is in them, and copies have not.
fn slim<K: Resource + Clone>(mut object: K) -> K {
    object.meta_mut().managed_fields = None;
    object.clone()
}
