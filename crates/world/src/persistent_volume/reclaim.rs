//! The phase of a volume, and its reclaim when its claim is gone. Pure.

use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::ResourceExt;

use super::{
    BOUND_BY_CONTROLLER,
    decide::is_provisioned_here,
    matching::{phase, uid},
};

/// The next write to a volume.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum VolumeAction {
    /// Nothing is to be done, or the claim controller acts first.
    Nothing,
    /// Update its status.
    UpdateStatus(Box<PersistentVolume>),
    /// Clear its claim reference, so that other claims can use it.
    ClearReference(Box<PersistentVolume>),
    /// Delete it, and the folder if there is one.
    Delete(Option<PathBuf>),
}

/// The action for `volume`; `claim` is the claim of the referenced name, if there is one.
pub(super) fn volume_action(
    volume: &PersistentVolume,
    claim: Option<&PersistentVolumeClaim>,
    folder: &Path,
) -> VolumeAction {
    let spec = volume.spec.clone().unwrap_or_default();
    let Some(uid) = spec.claim_ref.as_ref().and_then(uid) else {
        return set_phase(volume, "Available", None);
    };
    let Some(claim) = claim.filter(|claim| claim.metadata.uid.as_deref() == Some(uid)) else {
        return released(volume, folder);
    };
    let named = claim
        .spec
        .as_ref()
        .and_then(|spec| spec.volume_name.as_deref());
    match named.filter(|name| !name.is_empty()) {
        // The claim is about to be bound to this volume.
        None => VolumeAction::Nothing,
        Some(name) if name == volume.name_any() => set_phase(volume, "Bound", None),
        Some(_) => unused(volume, folder),
    }
}

/// Its claim is bound to another volume.
fn unused(volume: &PersistentVolume, folder: &Path) -> VolumeAction {
    if is_provisioned_here(volume) {
        return VolumeAction::Delete(own_folder(volume, folder));
    }
    let mut volume = volume.clone();
    let by_controller = volume
        .annotations_mut()
        .remove(BOUND_BY_CONTROLLER)
        .is_some();
    if let Some(spec) = &mut volume.spec {
        if by_controller {
            spec.claim_ref = None;
        } else if let Some(reference) = &mut spec.claim_ref {
            (reference.uid, reference.resource_version) = (None, None);
        }
    }
    VolumeAction::ClearReference(Box::new(volume))
}

/// Its claim has been deleted.
fn released(volume: &PersistentVolume, folder: &Path) -> VolumeAction {
    if !matches!(phase(volume), "Released" | "Failed") {
        return set_phase(volume, "Released", None);
    }
    let spec = volume.spec.as_ref();
    let policy = spec.and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref());
    if policy != Some("Delete") {
        return set_phase(volume, "Released", None);
    }
    if let Some(folder) = own_folder(volume, folder) {
        return VolumeAction::Delete(Some(folder));
    }
    let message = "this volume was not provisioned by neap, so its data is not removed: delete the PersistentVolume manually";
    set_phase(volume, "Failed", Some(message))
}

/// The folder that was created for a volume, and no other, whatever its spec says.
fn own_folder(volume: &PersistentVolume, folder: &Path) -> Option<PathBuf> {
    let own = folder.join(volume.name_any());
    let path = volume.spec.as_ref()?.host_path.as_ref()?.path.as_str();
    (is_provisioned_here(volume) && Path::new(path) == own).then_some(own)
}

fn set_phase(volume: &PersistentVolume, phase: &str, message: Option<&str>) -> VolumeAction {
    let mut updated = volume.clone();
    let status = updated.status.get_or_insert_default();
    status.phase = Some(phase.to_owned());
    status.message = message.map(str::to_owned);
    if updated.status == volume.status {
        return VolumeAction::Nothing;
    }
    VolumeAction::UpdateStatus(Box::new(updated))
}
