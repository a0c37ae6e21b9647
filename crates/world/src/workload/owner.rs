//! How an object is marked as somebody's.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Resource;

/// Marks what `owner` controls: it goes when its owner goes, and a foreground deletion of the owner
/// waits for it.
pub(crate) fn owned_by<K: Resource<DynamicType = ()>>(owner: &K) -> Option<OwnerReference> {
    let reference = owner.controller_owner_ref(&())?;
    Some(OwnerReference {
        block_owner_deletion: Some(true),
        ..reference
    })
}
