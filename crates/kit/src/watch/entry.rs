//! Objects that are found by their own names: nobody keeps a second copy of those.

use std::{borrow::Borrow, cmp::Ordering, collections::BTreeSet, sync::Arc};

use kube::{Resource, api::ObjectMeta};

use crate::key::Key;

/// What has a namespace, or an empty one, and a name.
pub(super) trait Named {
    fn place(&self) -> (&str, &str);
}

impl Named for Key {
    fn place(&self) -> (&str, &str) {
        (self.namespace(), self.name())
    }
}

impl Named for ObjectMeta {
    fn place(&self) -> (&str, &str) {
        let namespace = self.namespace.as_deref().unwrap_or_default();
        (namespace, self.name.as_deref().unwrap_or_default())
    }
}

impl PartialEq for dyn Named + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}

impl Eq for dyn Named + '_ {}

impl PartialOrd for dyn Named + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for dyn Named + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place().cmp(&other.place())
    }
}

/// An object in the place that its name gives it.
#[derive(Debug)]
pub(super) struct Entry<K>(pub(super) Arc<K>);

impl<K: Resource> Named for Entry<K> {
    fn place(&self) -> (&str, &str) {
        self.0.meta().place()
    }
}

impl<'a, K: Resource + 'a> Borrow<dyn Named + 'a> for Entry<K> {
    fn borrow(&self) -> &(dyn Named + 'a) {
        self
    }
}

impl<K: Resource> PartialEq for Entry<K> {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}

impl<K: Resource> Eq for Entry<K> {}

impl<K: Resource> PartialOrd for Entry<K> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K: Resource> Ord for Entry<K> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place().cmp(&other.place())
    }
}

/// Objects in the order of their names, those of one namespace together.
#[derive(Debug)]
pub(super) struct Entries<K>(BTreeSet<Entry<K>>);

impl<K> Default for Entries<K> {
    fn default() -> Self {
        Self(BTreeSet::new())
    }
}

impl<K> Entries<K> {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<K>> {
        self.0.iter().map(|entry| &entry.0)
    }
}

impl<K: Resource> Entries<K> {
    pub(super) fn get<'a>(&'a self, name: &(dyn Named + 'a)) -> Option<&'a Arc<K>> {
        self.0.get(name).map(|entry| &entry.0)
    }

    /// Puts `object` in the place of its namesake.
    pub(super) fn put(&mut self, object: Arc<K>) {
        self.0.replace(Entry(object));
    }

    pub(super) fn remove<'a>(&mut self, name: &(dyn Named + 'a)) -> Option<Arc<K>>
    where
        K: 'a,
    {
        self.0.take(name).map(|entry| entry.0)
    }

    /// Those that are in a namespace.
    pub(super) fn within<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a Arc<K>> {
        let first = Key::new(namespace, "");
        let from = self.0.range::<dyn Named + '_, _>((
            std::ops::Bound::Included(&first as &dyn Named),
            std::ops::Bound::Unbounded,
        ));
        from.take_while(move |entry| entry.place().0 == namespace)
            .map(|entry| &entry.0)
    }
}
