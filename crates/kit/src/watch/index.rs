//! The objects of a cache by something other than their names.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::Arc,
};

use kube::Resource;
use parking_lot::RwLock;

use super::{Cache, Change};
use crate::key::Key;

/// Finds objects by a property, such as their owner, without looking at all of them. Cheap to
/// copy.
///
/// It hears of each change before those who follow the cache, so they find here what they were told
/// of.
pub struct Index<K> {
    entries: Entries<K>,
}

type Entries<K> = Arc<RwLock<HashMap<String, BTreeMap<Key, Arc<K>>>>>;

impl<K: Resource + Send + Sync + 'static> Index<K> {
    /// The objects of `cache` by every value that `property` has for them.
    pub fn new(
        cache: &Cache<K>,
        property: impl Fn(&K) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        let entries = Entries::default();
        let kept = entries.clone();
        cache.follow_before_others(move |change| {
            let mut entries = kept.write();
            match change {
                Change::Added(_) => {}
                Change::Modified { old, .. } | Change::Deleted(old) => {
                    for value in property(old) {
                        remove(&mut entries, &value, &Key::of(&**old));
                    }
                }
            }
            if let Change::Added(new) | Change::Modified { new, .. } = change {
                for value in property(new) {
                    let found = entries.entry(value).or_default();
                    found.insert(Key::of(&**new), new.clone());
                }
            }
        });
        Self { entries }
    }

    /// The objects that have `value`, by name.
    pub fn get(&self, value: &str) -> Vec<Arc<K>> {
        let entries = self.entries.read();
        let found = entries.get(value).into_iter();
        found.flat_map(BTreeMap::values).cloned().collect()
    }
}

fn remove<K>(entries: &mut HashMap<String, BTreeMap<Key, Arc<K>>>, value: &str, key: &Key) {
    if let Some(found) = entries.get_mut(value) {
        found.remove(key);
        if found.is_empty() {
            entries.remove(value);
        }
    }
}

impl<K> Clone for Index<K> {
    fn clone(&self) -> Self {
        Self {
            entries: self.entries.clone(),
        }
    }
}

impl<K> fmt::Debug for Index<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index")
            .field("values", &self.entries.read().len())
            .finish()
    }
}
