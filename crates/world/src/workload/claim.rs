//! Whose a pod is.

use k8s_openapi::{
    api::core::v1::Pod,
    apimachinery::pkg::apis::meta::v1::{LabelSelector, OwnerReference},
};
use kube::{
    Resource, ResourceExt,
    core::{Selector, SelectorExt},
};

/// What a controller makes of the pods of its namespace.
#[derive(Debug, Default)]
pub(crate) struct Claims<'a> {
    /// Its own that still fit.
    pub(crate) owned: Vec<&'a Pod>,
    /// Those that are nobody's and fit.
    pub(crate) adopt: Vec<&'a Pod>,
    /// Its own that no longer fit.
    pub(crate) release: Vec<&'a Pod>,
}

/// Sorts `pods` for an owner with this uid and selector. One that is on its way out takes in nobody.
pub(crate) fn claim<'a>(
    pods: &[&'a Pod],
    uid: &str,
    selector: &LabelSelector,
    owner_is_leaving: bool,
) -> Claims<'a> {
    let mut claims = Claims::default();
    let Ok(selector) = Selector::try_from(selector.clone()) else {
        return claims;
    };
    for &pod in pods {
        let fits = selector.matches(pod.labels());
        match owner_of(pod) {
            Some(owner) if owner.uid != uid => {}
            Some(_) if fits => claims.owned.push(pod),
            Some(_) if !owner_is_leaving => claims.release.push(pod),
            None if fits && !owner_is_leaving && pod.metadata.deletion_timestamp.is_none() => {
                claims.adopt.push(pod);
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

/// Followed by a namespace: what is nobody's there.
pub(crate) const ORPHANS: &str = "nobody's in ";

/// The uid of its controller, or where it is nobody's, to find what an owner may claim.
pub(crate) fn owner_or_orphan<K: Resource>(object: &K) -> Vec<String> {
    let namespace = object.meta().namespace.as_deref().unwrap_or_default();
    let owner = owner_of(object).map(|owner| owner.uid.clone());
    vec![owner.unwrap_or_else(|| format!("{ORPHANS}{namespace}"))]
}
