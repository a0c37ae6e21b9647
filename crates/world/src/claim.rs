//! Gives every PersistentVolumeClaim a volume, or says why there is none.
//!
//! A claim gets the smallest volume that somebody made and that fits. If there is none, and the
//! claim's class is ours, a volume is made that is a folder of this machine. The folder itself is
//! made by the node when it is first mounted, with everything else that a pod finds.
//!
//! The class `standard` is made if there is no class at all. It binds at once: there is one node,
//! so nothing would be known later that is not known now, and a claim is seen to be good before
//! anything uses it. A class of the user's with `WaitForFirstConsumer` is waited for.
//!
//! Invariants:
//! - a volume is written first, its claim afterwards: the volume says whose it is, so a controller
//!   that was stopped in between goes on with the same one;
//! - data is removed only if the server itself has said that the claim is gone, and only in the
//!   folder that was made for it. A volume that is to be retained is never touched.

mod class;
mod decide;
mod fit;
mod keep;
mod reclaim;
mod run;
#[cfg(test)]
mod tests;

use k8s_openapi::api::core::v1::PersistentVolume;
use neap_kit::key::Key;

pub use self::{keep::volumes, run::service};

/// Who makes our volumes.
const PROVISIONER: &str = "neaptide.dev/folder";
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// On what this controller chose, and people did not.
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// What both controllers are called in the API.
const NAME: &str = "persistentvolume-controller";

/// The claim that a volume is for.
fn claim_key(volume: &PersistentVolume) -> Option<Key> {
    let claim = volume.spec.as_ref()?.claim_ref.as_ref()?;
    Some(Key::new(
        claim.namespace.as_deref()?,
        claim.name.as_deref()?,
    ))
}
