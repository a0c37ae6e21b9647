//! What to say of a volume, and what becomes of it when its claim is gone. Pure.

use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::ResourceExt;

use super::{
    BOUND_BY_CONTROLLER,
    decide::is_made_here,
    fit::{phase, uid},
};

/// The next thing to do with a volume.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Fate {
    /// All is as it should be, or somebody else's turn.
    Stays,
    /// Say this of it.
    Report(Box<PersistentVolume>),
    /// Nobody has it after all: let it be had by others.
    Free(Box<PersistentVolume>),
    /// Remove it, and the folder if there is one.
    Remove(Option<PathBuf>),
}

/// What to do with `volume`, whose claim is `claim` as far as there is one of that name.
pub(super) fn fate(
    volume: &PersistentVolume,
    claim: Option<&PersistentVolumeClaim>,
    folder: &Path,
) -> Fate {
    let spec = volume.spec.clone().unwrap_or_default();
    let Some(uid) = spec.claim_ref.as_ref().and_then(uid) else {
        return say(volume, "Available", None);
    };
    let Some(claim) = claim.filter(|claim| claim.metadata.uid.as_deref() == Some(uid)) else {
        return left(volume, folder);
    };
    let named = claim
        .spec
        .as_ref()
        .and_then(|spec| spec.volume_name.as_deref());
    match named.filter(|name| !name.is_empty()) {
        // The claim is about to be bound to it.
        None => Fate::Stays,
        Some(name) if name == volume.name_any() => say(volume, "Bound", None),
        Some(_) => spurned(volume, folder),
    }
}

/// Its claim took another.
fn spurned(volume: &PersistentVolume, folder: &Path) -> Fate {
    if is_made_here(volume) {
        return Fate::Remove(own_folder(volume, folder));
    }
    let mut volume = volume.clone();
    let by_controller = volume
        .annotations_mut()
        .remove(BOUND_BY_CONTROLLER)
        .is_some();
    if let Some(spec) = &mut volume.spec {
        if by_controller {
            spec.claim_ref = None;
        } else if let Some(kept) = &mut spec.claim_ref {
            (kept.uid, kept.resource_version) = (None, None);
        }
    }
    Fate::Free(Box::new(volume))
}

/// Its claim is gone.
fn left(volume: &PersistentVolume, folder: &Path) -> Fate {
    if !matches!(phase(volume), "Released" | "Failed") {
        return say(volume, "Released", None);
    }
    let spec = volume.spec.as_ref();
    let policy = spec.and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref());
    if policy != Some("Delete") {
        return say(volume, "Released", None);
    }
    if let Some(folder) = own_folder(volume, folder) {
        return Fate::Remove(Some(folder));
    }
    let words = "this volume was not made here, so its data is not removed: delete the PersistentVolume by hand";
    say(volume, "Failed", Some(words))
}

/// The folder that was made for a volume, and nothing else whatever its spec says.
fn own_folder(volume: &PersistentVolume, folder: &Path) -> Option<PathBuf> {
    let own = folder.join(volume.name_any());
    let path = volume.spec.as_ref()?.host_path.as_ref()?.path.as_str();
    (is_made_here(volume) && Path::new(path) == own).then_some(own)
}

fn say(volume: &PersistentVolume, phase: &str, message: Option<&str>) -> Fate {
    let mut said = volume.clone();
    let status = said.status.get_or_insert_default();
    status.phase = Some(phase.to_owned());
    status.message = message.map(str::to_owned);
    if said.status == volume.status {
        return Fate::Stays;
    }
    Fate::Report(Box::new(said))
}
