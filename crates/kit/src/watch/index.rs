//! Lookup of cached objects by something other than their names.

use std::{
    collections::{HashMap, hash_map::Entry},
    fmt,
    sync::Arc,
};

use parking_lot::RwLock;

use super::{
    Cache, CachedObject, Change,
    by_name::{NameOf, NamedObjects},
};
use crate::planted;

/// Finds objects by a property, such as their owner, without a scan of all objects. Cheap to clone.
///
/// It receives each change before the other subscribers of the cache, so that they find here the
/// objects of the changes they receive.
pub struct Index<K> {
    values: SharedValues<K>,
}

type SharedValues<K> = Arc<RwLock<Values<K>>>;
type Values<K> = HashMap<Box<str>, IndexedObjects<K>>;

/// The objects that have a value. Mostly there is one, and a tree of one is as large as a tree of ten.
#[derive(Debug)]
enum IndexedObjects<K> {
    One(Arc<K>),
    Many(NamedObjects<K>),
}

impl<K: CachedObject> IndexedObjects<K> {
    fn insert(&mut self, object: Arc<K>) {
        match self {
            Self::One(one) if one.cached_key() == object.cached_key() => *one = object,
            Self::One(one) => {
                let mut all = NamedObjects::default();
                all.insert(one.clone());
                all.insert(object);
                *self = Self::Many(all);
            }
            Self::Many(all) => all.insert(object),
        }
    }

    /// Removes the object of the same name; whether none is left.
    fn remove(&mut self, object: &K) -> bool {
        match self {
            Self::One(one) => one.cached_key() == object.cached_key(),
            Self::Many(all) => {
                all.remove(&NameOf(object));
                all.is_empty()
            }
        }
    }

    fn iter(&self) -> impl Iterator<Item = &Arc<K>> {
        let (one, many) = match self {
            Self::One(one) => (Some(one), None),
            Self::Many(many) => (None, Some(many)),
        };
        one.into_iter()
            .chain(many.into_iter().flat_map(NamedObjects::iter))
    }
}

impl<K: CachedObject + Send + Sync + 'static> Index<K> {
    /// An index of `cache` by every value that `property` returns for an object.
    pub fn new(
        cache: &Cache<K>,
        property: impl Fn(&K) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        let values = SharedValues::default();
        let indexed = Arc::downgrade(&values);
        let reader = indexed.clone();
        let is_alive = move || reader.strong_count() > 0;
        cache.subscribe_first(is_alive, move |change| {
            planted!(IndexKeeps => if let Change::Deleted(_) = change { return });
            let Some(indexed) = indexed.upgrade() else {
                return;
            };
            let mut values = indexed.write();
            match change {
                Change::Added(_) => {}
                Change::Modified { old, .. } | Change::Deleted(old) => {
                    for value in property(old) {
                        remove(&mut values, &value, &**old);
                    }
                }
            }
            if let Change::Added(new) | Change::Modified { new, .. } = change {
                for value in property(new) {
                    let value = value.into_boxed_str();
                    match values.entry(value) {
                        Entry::Occupied(mut found) => found.get_mut().insert(new.clone()),
                        Entry::Vacant(free) => {
                            free.insert(IndexedObjects::One(new.clone()));
                        }
                    }
                }
            }
        });
        Self { values }
    }

    /// The objects that have `value`, ordered by name.
    pub fn get(&self, value: &str) -> Vec<Arc<K>> {
        let values = self.values.read();
        let found = values.get(value).into_iter();
        found.flat_map(IndexedObjects::iter).cloned().collect()
    }
}

fn remove<K: CachedObject>(values: &mut Values<K>, value: &str, object: &K) {
    if values
        .get_mut(value)
        .is_some_and(|found| found.remove(object))
    {
        values.remove(value);
    }
}

impl<K> Clone for Index<K> {
    fn clone(&self) -> Self {
        Self {
            values: self.values.clone(),
        }
    }
}

impl<K> fmt::Debug for Index<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index")
            .field("values", &self.values.read().len())
            .finish()
    }
}
