//! Which objects an owner controls, may adopt, and must release.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, OwnerReference};
use kube::{
    Resource, ResourceExt,
    core::{Selector, SelectorExt},
};
use neap_kit::watch::{Cache, Index};

/// The objects of a namespace as one owner sees them.
#[derive(Debug)]
pub(crate) struct ClaimedObjects<'a, K> {
    /// Controlled by the owner and matching its selector.
    pub(crate) owned: Vec<&'a K>,
    /// Orphans that match its selector.
    pub(crate) adopt: Vec<&'a K>,
    /// Controlled by the owner and no longer matching.
    pub(crate) release: Vec<&'a K>,
}

/// Sorts `objects` for an owner with this uid and selector. An owner that is being deleted adopts
/// and releases nothing.
pub(crate) fn claim<'a, K: Resource>(
    objects: &[&'a K],
    uid: &str,
    selector: &LabelSelector,
    owner_is_deleting: bool,
) -> ClaimedObjects<'a, K> {
    let mut claims = ClaimedObjects {
        owned: Vec::new(),
        adopt: Vec::new(),
        release: Vec::new(),
    };
    let Ok(selector) = Selector::try_from(selector.clone()) else {
        return claims;
    };
    for &object in objects {
        let fits = selector.matches(object.labels());
        match owner_of(object) {
            Some(owner) if owner.uid != uid => {}
            Some(_) if fits => claims.owned.push(object),
            Some(_) if !owner_is_deleting => claims.release.push(object),
            None if fits && !owner_is_deleting && object.meta().deletion_timestamp.is_none() => {
                claims.adopt.push(object);
            }
            Some(_) | None => {}
        }
    }
    claims
}

/// The owner reference of an object's controller.
pub(crate) fn owner_of<K: Resource>(object: &K) -> Option<&OwnerReference> {
    let mut owners = object.meta().owner_references.iter().flatten();
    owners.find(|owner| owner.controller == Some(true))
}

/// An index of objects by controller, with the orphans of each namespace.
#[derive(Debug)]
pub(crate) struct OwnerIndex<K> {
    by_owner: Index<K>,
}

impl<K: Resource + Send + Sync + 'static> OwnerIndex<K> {
    pub(crate) fn new(cache: &Cache<K>) -> Self {
        let by_owner = Index::new(cache, |object: &K| {
            let namespace = object.meta().namespace.as_deref().unwrap_or_default();
            let owner = owner_of(object).map(|owner| owner.uid.clone());
            vec![owner.unwrap_or_else(|| orphans_key(namespace))]
        });
        Self { by_owner }
    }

    /// The objects that `owner` controls, and the orphans of its namespace.
    pub(crate) fn of<O: Resource>(&self, owner: &O) -> Vec<Arc<K>> {
        let mut found = self.owned(owner);
        let namespace = owner.meta().namespace.as_deref().unwrap_or_default();
        found.extend(self.by_owner.get(&orphans_key(namespace)));
        found
    }

    /// The objects that `owner` controls.
    pub(crate) fn owned<O: Resource>(&self, owner: &O) -> Vec<Arc<K>> {
        let uid = owner.meta().uid.as_deref();
        self.by_owner.get(uid.unwrap_or_default())
    }
}

/// The index key of a namespace's orphans; no uid looks like this.
fn orphans_key(namespace: &str) -> String {
    format!("orphans in {namespace}")
}
