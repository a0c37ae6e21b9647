//! Enqueues owners when an object changes that is or could be theirs.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::{
    Resource, ResourceExt,
    core::{Selector, SelectorExt},
};
use neap_kit::{
    controller::Enqueuer,
    key::Key,
    planted,
    watch::{Cache, Change},
};

use super::owner_of;

/// Enqueues owners of one kind for objects that they control, controlled, or could adopt.
pub(crate) struct OwnerEnqueuer<K, F> {
    owners: Cache<K>,
    selector: F,
}

impl<K, F> OwnerEnqueuer<K, F>
where
    K: Resource<DynamicType = ()> + Send + Sync + 'static,
    F: Fn(&K) -> Option<&LabelSelector>,
{
    pub(crate) fn new(owners: &Cache<K>, selector: F) -> Self {
        Self {
            owners: owners.clone(),
            selector,
        }
    }

    pub(crate) fn enqueue_for_change<O: Resource>(
        &self,
        change: &Change<O>,
        enqueuer: &Enqueuer<Key>,
    ) {
        planted!(DeletesUntold => if let Change::Deleted(_) = change { return });
        self.enqueue_owners(&**change.object(), enqueuer);
        if let Change::Modified { old, new } = change
            && owner_of(&**old) != owner_of(&**new)
        {
            self.enqueue_owners(&**old, enqueuer);
        }
    }

    fn enqueue_owners<O: Resource>(&self, object: &O, enqueuer: &Enqueuer<Key>) {
        let namespace = object.namespace().unwrap_or_default();
        if let Some(owner) = owner_of(object) {
            if owner.kind == K::kind(&()) && owner.api_version == K::api_version(&()) {
                enqueuer.enqueue(Key::new(&namespace, &owner.name));
            }
            return;
        }
        // Orphans are rare, so matching every owner of the namespace is cheap enough.
        for owner in self.owners.list(&namespace) {
            let selector = (self.selector)(&owner).cloned().map(Selector::try_from);
            if selector.is_some_and(|s| s.is_ok_and(|s| s.matches(object.labels()))) {
                enqueuer.enqueue(Key::of(&*owner));
            }
        }
    }
}
