//! The PersistentVolumeClaims of a pod.

use k8s_openapi::api::core::v1::{Pod, Volume};
use kube::ResourceExt;

/// The name of the claim behind a volume of `pod`, if there is one. An ephemeral claim is named
/// after the pod and the volume.
pub(crate) fn claim_name(pod: &Pod, volume: &Volume) -> Option<String> {
    if let Some(claim) = &volume.persistent_volume_claim {
        return Some(claim.claim_name.clone());
    }
    let ends = volume.ephemeral.is_some();
    ends.then(|| format!("{}-{}", pod.name_any(), volume.name))
}

/// The names of all claims that `pod` mounts.
pub(crate) fn claim_names(pod: &Pod) -> Vec<String> {
    let spec = pod.spec.iter();
    let volumes = spec.flat_map(|spec| spec.volumes.iter().flatten());
    volumes
        .filter_map(|volume| claim_name(pod, volume))
        .collect()
}
