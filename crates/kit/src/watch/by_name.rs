//! A set of objects ordered by their own namespaces and names, which are not stored a second time.

use std::{borrow::Borrow, cmp::Ordering, collections::BTreeSet, sync::Arc};

use kube::api::ObjectMeta;

use super::cached_object::CachedObject;
use crate::key::Key;

/// A namespace, empty for cluster-scoped objects, and a name.
pub(super) trait Named {
    fn namespace_and_name(&self) -> (&str, &str);
}

impl Named for Key {
    fn namespace_and_name(&self) -> (&str, &str) {
        (self.namespace(), self.name())
    }
}

/// The name of an object.
pub(super) struct NameOf<'a, K>(pub(super) &'a K);

impl<K: CachedObject> Named for NameOf<'_, K> {
    fn namespace_and_name(&self) -> (&str, &str) {
        self.0.cached_key()
    }
}

impl Named for ObjectMeta {
    fn namespace_and_name(&self) -> (&str, &str) {
        let namespace = self.namespace.as_deref().unwrap_or_default();
        (namespace, self.name.as_deref().unwrap_or_default())
    }
}

impl PartialEq for dyn Named + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.namespace_and_name() == other.namespace_and_name()
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
        self.namespace_and_name().cmp(&other.namespace_and_name())
    }
}

/// An object that is compared by its namespace and name.
#[derive(Debug)]
pub(super) struct ByName<K>(pub(super) Arc<K>);

impl<K: CachedObject> Named for ByName<K> {
    fn namespace_and_name(&self) -> (&str, &str) {
        self.0.cached_key()
    }
}

impl<'a, K: CachedObject + 'a> Borrow<dyn Named + 'a> for ByName<K> {
    fn borrow(&self) -> &(dyn Named + 'a) {
        self
    }
}

impl<K: CachedObject> PartialEq for ByName<K> {
    fn eq(&self, other: &Self) -> bool {
        self.namespace_and_name() == other.namespace_and_name()
    }
}

impl<K: CachedObject> Eq for ByName<K> {}

impl<K: CachedObject> PartialOrd for ByName<K> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K: CachedObject> Ord for ByName<K> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.namespace_and_name().cmp(&other.namespace_and_name())
    }
}

/// Objects ordered by namespace and name.
#[derive(Debug)]
pub(super) struct NamedObjects<K>(BTreeSet<ByName<K>>);

impl<K> Default for NamedObjects<K> {
    fn default() -> Self {
        Self(BTreeSet::new())
    }
}

impl<K> NamedObjects<K> {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<K>> {
        self.0.iter().map(|object| &object.0)
    }
}

impl<K: CachedObject> NamedObjects<K> {
    pub(super) fn get<'a>(&'a self, name: &(dyn Named + 'a)) -> Option<&'a Arc<K>> {
        self.0.get(name).map(|object| &object.0)
    }

    /// Inserts `object`, replacing an object of the same name.
    pub(super) fn insert(&mut self, object: Arc<K>) {
        self.0.replace(ByName(object));
    }

    pub(super) fn remove<'a>(&mut self, name: &(dyn Named + 'a)) -> Option<Arc<K>>
    where
        K: 'a,
    {
        self.0.take(name).map(|object| object.0)
    }

    /// The objects of a namespace.
    pub(super) fn in_namespace<'a>(
        &'a self,
        namespace: &'a str,
    ) -> impl Iterator<Item = &'a Arc<K>> {
        let first = Key::new(namespace, "");
        let from = self.0.range::<dyn Named + '_, _>((
            std::ops::Bound::Included(&first as &dyn Named),
            std::ops::Bound::Unbounded,
        ));
        from.take_while(move |object| object.namespace_and_name().0 == namespace)
            .map(|object| &object.0)
    }
}
