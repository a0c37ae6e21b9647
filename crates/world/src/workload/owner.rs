//! The owner reference of controlled objects.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Resource;

/// The reference that makes `owner` the controller of an object: the object is deleted with its
/// owner, and a foreground deletion of the owner waits for it.
pub(crate) fn owned_by<K: Resource<DynamicType = ()>>(owner: &K) -> Option<OwnerReference> {
    let reference = owner.controller_owner_ref(&())?;
    Some(OwnerReference {
        block_owner_deletion: Some(true),
        ..reference
    })
}
