//! Binds every PersistentVolumeClaim to a volume, or reports why there is none.
//!
//! A claim gets the smallest matching volume that a user has created. If there is none, and the
//! claim's class names our provisioner, the controller creates a volume that is a folder of this
//! machine. The node creates the folder itself when the volume is first mounted.
//!
//! The class `standard` is created if there is no class at all. It binds immediately: there is only
//! one node, so waiting for a pod would add no information, and a claim is known to be good before
//! anything uses it. The controller honours `WaitForFirstConsumer` of a user's class.
//!
//! Invariants:
//! - a volume is written first, its claim afterwards: the volume references its claim, so a
//!   controller that was stopped in between continues with the same volume;
//! - data is removed only if the API server itself has reported that the claim is gone, and only in
//!   the folder that was created for it. A volume with the policy `Retain` is never touched.

mod controller;
mod decide;
mod matching;
mod reclaim;
mod storage_class;
#[cfg(test)]
mod tests;
mod volume_controller;

use k8s_openapi::api::core::v1::PersistentVolume;
use neap_kit::key::Key;

pub use self::{controller::component, volume_controller::volume_component};

/// The name of this provisioner.
const PROVISIONER: &str = "neaptide.dev/folder";
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// The annotation of a binding that this controller chose, and not a user.
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// The event source of both controllers, as in Kubernetes.
const CONTROLLER_NAME: &str = "persistentvolume-controller";

/// The claim that a volume references.
fn claim_key(volume: &PersistentVolume) -> Option<Key> {
    let claim = volume.spec.as_ref()?.claim_ref.as_ref()?;
    Some(Key::new(
        claim.namespace.as_deref()?,
        claim.name.as_deref()?,
    ))
}
