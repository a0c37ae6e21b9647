//! Whether a volume matches a claim. Pure.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    ObjectReference, PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
};
use kube::{
    ResourceExt,
    core::{Selector, SelectorExt},
};

use crate::workload::amount;

/// The claim reference of a volume, relative to one claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VolumeBinding {
    /// The volume references no claim.
    Free,
    /// A user has reserved the volume for the claim by name.
    Reserved,
    /// The volume is bound to the claim.
    Bound,
    /// The volume references another claim.
    Other,
}

pub(super) fn binding(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> VolumeBinding {
    let spec = volume.spec.as_ref();
    let Some(reference) = spec.and_then(|spec| spec.claim_ref.as_ref()) else {
        return VolumeBinding::Free;
    };
    let named =
        reference.name == claim.metadata.name && reference.namespace == claim.metadata.namespace;
    match uid(reference) {
        _ if !named => VolumeBinding::Other,
        None => VolumeBinding::Reserved,
        uid if uid == claim.metadata.uid.as_deref() => VolumeBinding::Bound,
        Some(_) => VolumeBinding::Other,
    }
}

/// The uid of a reference; an empty one counts as none.
pub(super) fn uid(reference: &ObjectReference) -> Option<&str> {
    reference.uid.as_deref().filter(|uid| !uid.is_empty())
}

/// The best volume for `claim`: one that is reserved for it, or else the smallest that matches.
pub(super) fn best_match<'a>(
    claim: &PersistentVolumeClaim,
    volumes: &'a [Arc<PersistentVolume>],
) -> Option<&'a PersistentVolume> {
    let fitting = volumes.iter().filter(|volume| {
        volume.metadata.deletion_timestamp.is_none() && mismatch(volume, claim).is_none()
    });
    let free = fitting.filter(|volume| match binding(volume, claim) {
        VolumeBinding::Free => phase(volume) != "Released" && phase(volume) != "Failed",
        VolumeBinding::Reserved => true,
        VolumeBinding::Bound | VolumeBinding::Other => false,
    });
    let best = free.min_by_key(|volume| {
        let is_kept = binding(volume, claim) == VolumeBinding::Reserved;
        (!is_kept, size(volume), volume.name_any())
    });
    best.map(|volume| &**volume)
}

/// Why `volume` does not match `claim`.
pub(super) fn mismatch(
    volume: &PersistentVolume,
    claim: &PersistentVolumeClaim,
) -> Option<&'static str> {
    let has = volume.spec.clone().unwrap_or_default();
    let wants = claim.spec.clone().unwrap_or_default();
    let class = |name: Option<String>| name.unwrap_or_default();
    let mode = |mode: Option<String>| mode.unwrap_or_else(|| "Filesystem".to_owned());
    if size(volume) < request(&wants) {
        return Some("it is too small");
    }
    if class(has.storage_class_name.clone()) != class(wants.storage_class_name.clone()) {
        return Some("it has another storageClassName");
    }
    if mode(has.volume_mode.clone()) != mode(wants.volume_mode.clone()) {
        return Some("it has another volumeMode");
    }
    if !has_modes(&has, &wants) {
        return Some("it does not have all access modes");
    }
    let selects = wants.selector.is_none_or(|selector| {
        Selector::try_from(selector).is_ok_and(|selector| selector.matches(volume.labels()))
    });
    (!selects).then_some("the claim's selector does not select it")
}

fn has_modes(has: &PersistentVolumeSpec, wants: &PersistentVolumeClaimSpec) -> bool {
    let has = has.access_modes.iter().flatten().collect::<Vec<_>>();
    let mut wanted = wants.access_modes.iter().flatten();
    wanted.all(|mode| has.contains(&mode))
}

pub(super) fn phase(volume: &PersistentVolume) -> &str {
    let status = volume.status.as_ref();
    status
        .and_then(|status| status.phase.as_deref())
        .unwrap_or_default()
}

pub(super) fn size(volume: &PersistentVolume) -> i128 {
    let capacity = volume.spec.as_ref().and_then(|spec| spec.capacity.as_ref());
    let storage = capacity.and_then(|capacity| capacity.get("storage"));
    storage.and_then(amount).unwrap_or(0)
}

/// The requested storage.
pub(super) fn request(spec: &PersistentVolumeClaimSpec) -> i128 {
    let requests = spec
        .resources
        .as_ref()
        .and_then(|all| all.requests.as_ref());
    let storage = requests.and_then(|requests| requests.get("storage"));
    storage.and_then(amount).unwrap_or(0)
}
