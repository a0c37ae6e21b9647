//! Who has to look when something changes that is or could be his.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::{
    Resource, ResourceExt,
    core::{Selector, SelectorExt},
};
use neap_kit::{
    controller::Trigger,
    key::Key,
    planted,
    watch::{Cache, Change},
};

use super::owner_of;

/// Tells owners of one kind about objects that are theirs, were theirs, or could be.
pub(crate) struct Claiming<K, F> {
    owners: Cache<K>,
    selector: F,
}

impl<K, F> Claiming<K, F>
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

    pub(crate) fn tell<O: Resource>(&self, change: &Change<O>, trigger: &Trigger<Key>) {
        planted!(DeletesUntold => if let Change::Deleted(_) = change { return });
        self.tell_of(&**change.object(), trigger);
        if let Change::Modified { old, new } = change
            && owner_of(&**old) != owner_of(&**new)
        {
            self.tell_of(&**old, trigger);
        }
    }

    fn tell_of<O: Resource>(&self, object: &O, trigger: &Trigger<Key>) {
        let namespace = object.namespace().unwrap_or_default();
        if let Some(owner) = owner_of(object) {
            if owner.kind == K::kind(&()) && owner.api_version == K::api_version(&()) {
                trigger.changed(Key::new(&namespace, &owner.name));
            }
            return;
        }
        // Orphans are rare, so looking at every owner of the namespace is cheap enough.
        for owner in self.owners.list(&namespace) {
            let selector = (self.selector)(&owner).cloned().map(Selector::try_from);
            if selector.is_some_and(|s| s.is_ok_and(|s| s.matches(object.labels()))) {
                trigger.changed(Key::of(&*owner));
            }
        }
    }
}
