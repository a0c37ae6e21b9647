//! Whose an object is.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, OwnerReference};
use kube::{
    Resource, ResourceExt,
    core::{Selector, SelectorExt},
};
use neap_kit::watch::{Cache, Index};

/// What an owner makes of the objects of its namespace.
#[derive(Debug)]
pub(crate) struct Claims<'a, K> {
    /// Its own that still fit.
    pub(crate) owned: Vec<&'a K>,
    /// Those that are nobody's and fit.
    pub(crate) adopt: Vec<&'a K>,
    /// Its own that no longer fit.
    pub(crate) release: Vec<&'a K>,
}

/// Sorts `objects` for an owner with this uid and selector. One that is on its way out takes in
/// nobody.
pub(crate) fn claim<'a, K: Resource>(
    objects: &[&'a K],
    uid: &str,
    selector: &LabelSelector,
    owner_is_leaving: bool,
) -> Claims<'a, K> {
    let mut claims = Claims {
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
            Some(_) if !owner_is_leaving => claims.release.push(object),
            None if fits && !owner_is_leaving && object.meta().deletion_timestamp.is_none() => {
                claims.adopt.push(object);
            }
            Some(_) | None => {}
        }
    }
    claims
}

/// The controller of an object.
pub(crate) fn owner_of<K: Resource>(object: &K) -> Option<&OwnerReference> {
    let mut owners = object.meta().owner_references.iter().flatten();
    owners.find(|owner| owner.controller == Some(true))
}

/// Finds what is somebody's, and what he may take in.
#[derive(Debug)]
pub(crate) struct Claimable<K> {
    by_owner: Index<K>,
}

impl<K: Resource + Send + Sync + 'static> Claimable<K> {
    pub(crate) fn new(cache: &Cache<K>) -> Self {
        let by_owner = Index::new(cache, |object: &K| {
            let namespace = object.meta().namespace.as_deref().unwrap_or_default();
            let owner = owner_of(object).map(|owner| owner.uid.clone());
            vec![owner.unwrap_or_else(|| nobody(namespace))]
        });
        Self { by_owner }
    }

    /// What `owner` controls, and what is nobody's in its namespace.
    pub(crate) fn of<O: Resource>(&self, owner: &O) -> Vec<Arc<K>> {
        let mut found = self.owned(owner);
        let namespace = owner.meta().namespace.as_deref().unwrap_or_default();
        found.extend(self.by_owner.get(&nobody(namespace)));
        found
    }

    /// What `owner` controls.
    pub(crate) fn owned<O: Resource>(&self, owner: &O) -> Vec<Arc<K>> {
        let uid = owner.meta().uid.as_deref();
        self.by_owner.get(uid.unwrap_or_default())
    }
}

/// Who owns what is nobody's; no uid is like this.
fn nobody(namespace: &str) -> String {
    format!("nobody in {namespace}")
}
