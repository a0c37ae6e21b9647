//! The claims of a pod.

use k8s_openapi::api::core::v1::{Pod, Volume};
use kube::ResourceExt;

/// The name of the claim that a volume of `pod` is, if it is one. One that ends with its pod is
/// called after both.
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
