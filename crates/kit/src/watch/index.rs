//! The objects of a cache by something other than their names.

use std::{
    collections::{HashMap, hash_map::Entry},
    fmt,
    sync::Arc,
};

use kube::Resource;
use parking_lot::RwLock;

use super::{
    Cache, Change,
    entry::{Entries, Named},
};
use crate::planted;

/// Finds objects by a property, such as their owner, without looking at all of them. Cheap to
/// copy.
///
/// It hears of each change before those who follow the cache, so they find here what they were told
/// of.
pub struct Index<K> {
    values: Shared<K>,
}

type Shared<K> = Arc<RwLock<Values<K>>>;
type Values<K> = HashMap<Box<str>, Holders<K>>;

/// Those that have a value. Mostly it is one, and a tree of one is as large as a tree of ten.
#[derive(Debug)]
enum Holders<K> {
    One(Arc<K>),
    Many(Entries<K>),
}

impl<K: Resource> Holders<K> {
    fn put(&mut self, object: Arc<K>) {
        match self {
            Self::One(one) if is(&**one, object.meta()) => *one = object,
            Self::One(one) => {
                let mut all = Entries::default();
                all.put(one.clone());
                all.put(object);
                *self = Self::Many(all);
            }
            Self::Many(all) => all.put(object),
        }
    }

    /// Takes its namesake out, and says whether nobody is left.
    fn remove(&mut self, object: &K) -> bool {
        match self {
            Self::One(one) => is(&**one, object.meta()),
            Self::Many(all) => {
                all.remove(object.meta());
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
            .chain(many.into_iter().flat_map(Entries::iter))
    }
}

fn is<K: Resource>(one: &K, other: &dyn Named) -> bool {
    one.meta().place() == other.place()
}

impl<K: Resource + Send + Sync + 'static> Index<K> {
    /// The objects of `cache` by every value that `property` has for them.
    pub fn new(
        cache: &Cache<K>,
        property: impl Fn(&K) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        let values = Shared::default();
        let kept = values.clone();
        cache.follow_before_others(move |change| {
            planted!(IndexKeeps => if let Change::Deleted(_) = change { return });
            let mut values = kept.write();
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
                        Entry::Occupied(mut found) => found.get_mut().put(new.clone()),
                        Entry::Vacant(free) => {
                            free.insert(Holders::One(new.clone()));
                        }
                    }
                }
            }
        });
        Self { values }
    }

    /// The objects that have `value`, by name.
    pub fn get(&self, value: &str) -> Vec<Arc<K>> {
        let values = self.values.read();
        let found = values.get(value).into_iter();
        found.flat_map(Holders::iter).cloned().collect()
    }
}

fn remove<K: Resource>(values: &mut Values<K>, value: &str, object: &K) {
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
