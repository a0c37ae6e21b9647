//! The objects of a cache by something other than their names.

use std::{collections::HashMap, fmt, sync::Arc};

use kube::Resource;
use parking_lot::RwLock;

use super::{Cache, Change, entry::Entries};
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
type Values<K> = HashMap<String, Entries<K>>;

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
                    values.entry(value).or_default().put(new.clone());
                }
            }
        });
        Self { values }
    }

    /// The objects that have `value`, by name.
    pub fn get(&self, value: &str) -> Vec<Arc<K>> {
        let values = self.values.read();
        let found = values.get(value).into_iter();
        found.flat_map(Entries::iter).cloned().collect()
    }
}

fn remove<K: Resource>(values: &mut Values<K>, value: &str, object: &K) {
    if let Some(found) = values.get_mut(value) {
        found.remove(object.meta());
        if found.is_empty() {
            values.remove(value);
        }
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
