//! What to do next for a claim. Pure.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use k8s_openapi::{
    api::{
        core::v1::{
            HostPathVolumeSource, ObjectReference, PersistentVolume, PersistentVolumeClaim,
            PersistentVolumeClaimStatus, PersistentVolumeSpec,
        },
        storage::v1::StorageClass,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{Resource, ResourceExt};
use neap_kit::event::Note;

use super::{
    BIND_COMPLETED, BOUND_BY_CONTROLLER, PROVISIONED_BY, PROVISIONER,
    class::{default_of, waits},
    fit::{Held, choose, held, lack, request, size},
};

/// What is known of a claim.
pub(super) struct Facts<'a> {
    pub(super) claim: &'a PersistentVolumeClaim,
    pub(super) volumes: &'a [Arc<PersistentVolume>],
    pub(super) classes: &'a [Arc<StorageClass>],
    /// A pod wants it.
    pub(super) is_used: bool,
    /// Where folders are made.
    pub(super) folder: &'a Path,
}

/// The next thing to do; what follows is decided when it is done.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// All is as it should be.
    Nothing,
    /// Nothing can be done now, for this reason.
    Wait(Note),
    /// Make this volume.
    Make(Box<PersistentVolume>),
    /// Change a volume.
    Change(Box<PersistentVolume>),
    /// Change the claim.
    Write(Box<PersistentVolumeClaim>),
    /// Say this of the claim.
    Report(Box<PersistentVolumeClaim>),
}

/// What to do next.
pub(super) fn decide(facts: &Facts<'_>) -> Step {
    let claim = facts.claim;
    if claim.metadata.deletion_timestamp.is_some() {
        return Step::Nothing;
    }
    let spec = claim.spec.clone().unwrap_or_default();
    if let Some(name) = spec.volume_name.filter(|name| !name.is_empty()) {
        let mut all = facts.volumes.iter();
        let named = all.find(|volume| volume.name_any() == name);
        return named.map_or_else(|| missing(claim, &name), |volume| join(claim, volume));
    }
    let mut all = facts.volumes.iter();
    if let Some(begun) = all.find(|volume| held(volume, claim) == Held::Ours) {
        return finish(claim, begun);
    }
    let class = spec.storage_class_name.as_deref();
    let class = facts
        .classes
        .iter()
        .find(|found| Some(&*found.name_any()) == class);
    if class.is_some_and(|class| waits(class)) && !facts.is_used {
        let message = "the claim is bound when a pod uses it, as its class wants";
        return Step::Wait(Note::normal("WaitForFirstConsumer", message));
    }
    if let Some(volume) = choose(claim, facts.volumes) {
        return take(claim, volume);
    }
    match (spec.storage_class_name.as_deref(), class) {
        (None, _) => classify(facts),
        (Some(""), _) => {
            none_fits("and a claim with the empty class is given none that is made for it")
        }
        (Some(name), None) => {
            let message = format!("there is no StorageClass \"{name}\"");
            Step::Wait(Note::warning("ProvisioningFailed", message))
        }
        (Some(_), Some(class)) => provision(facts, class),
    }
}

fn none_fits(why: &str) -> Step {
    let message = format!("no PersistentVolume fits this claim, {why}");
    Step::Wait(Note::normal("FailedBinding", message))
}

/// The volume that a claim names is not there.
fn missing(claim: &PersistentVolumeClaim, name: &str) -> Step {
    if !is_complete(claim) {
        let message = format!("there is no PersistentVolume \"{name}\", which this claim names");
        return Step::Wait(Note::warning("FailedBinding", message));
    }
    lost(
        claim,
        format!("PersistentVolume \"{name}\" is gone, and with it the data of this claim"),
    )
}

fn lost(claim: &PersistentVolumeClaim, message: String) -> Step {
    let mut claim = claim.clone();
    let status = claim.status.get_or_insert_default();
    if status.phase.as_deref() == Some("Lost") {
        return Step::Wait(Note::warning("ClaimLost", message));
    }
    status.phase = Some("Lost".to_owned());
    (status.access_modes, status.capacity) = (None, None);
    Step::Report(Box::new(claim))
}

fn is_complete(claim: &PersistentVolumeClaim) -> bool {
    claim.annotations().contains_key(BIND_COMPLETED)
}

/// Binds a claim to the volume that it names.
fn join(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> Step {
    match held(volume, claim) {
        Held::Ours => finish(claim, volume),
        Held::Other => {
            let name = volume.name_any();
            let message = format!("PersistentVolume \"{name}\" belongs to another claim");
            if is_complete(claim) {
                return lost(claim, message);
            }
            Step::Wait(Note::warning("FailedBinding", message))
        }
        Held::Free | Held::Kept => match lack(volume, claim) {
            Some(why) => {
                let message = format!("PersistentVolume \"{}\": {why}", volume.name_any());
                Step::Wait(Note::warning("VolumeMismatch", message))
            }
            None => take(claim, volume),
        },
    }
}

/// Writes into a volume whose it is.
fn take(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> Step {
    let mut volume = volume.clone();
    if held(&volume, claim) == Held::Free {
        volume
            .annotations_mut()
            .insert(BOUND_BY_CONTROLLER.to_owned(), "yes".to_owned());
    }
    volume.spec.get_or_insert_default().claim_ref = Some(reference(claim));
    Step::Change(Box::new(volume))
}

fn reference(claim: &PersistentVolumeClaim) -> ObjectReference {
    let mut reference = claim.object_ref(&());
    reference
        .resource_version
        .clone_from(&claim.metadata.resource_version);
    reference
}

/// A claim that names no class gets the default one, also if that came later.
fn classify(facts: &Facts<'_>) -> Step {
    let Some(class) = default_of(facts.classes) else {
        return none_fits("and there is no default StorageClass by which one could be made");
    };
    let mut claim = facts.claim.clone();
    claim.spec.get_or_insert_default().storage_class_name = Some(class.name_any());
    Step::Write(Box::new(claim))
}

fn provision(facts: &Facts<'_>, class: &StorageClass) -> Step {
    let (claim, name) = (facts.claim, class.name_any());
    let spec = claim.spec.clone().unwrap_or_default();
    match class.provisioner.as_str() {
        PROVISIONER => {}
        "kubernetes.io/no-provisioner" => {
            return none_fits(&format!("and StorageClass \"{name}\" makes none"));
        }
        other => {
            let message = format!(
                "waiting for \"{other}\" of StorageClass \"{name}\" to make a volume, which nothing here does, or for somebody to make one by hand"
            );
            return Step::Wait(Note::normal("ExternalProvisioning", message));
        }
    }
    let impossible = if spec.volume_mode.as_deref() == Some("Block") {
        Some("a folder cannot be a block device: volumeMode must be Filesystem")
    } else if spec.selector.is_some() {
        Some(
            "no PersistentVolume fits the claim's selector, and none can be made for it: volumes that are made have no labels",
        )
    } else if spec.data_source.is_some() || spec.data_source_ref.is_some() {
        Some("a folder is made empty: dataSource is not supported")
    } else {
        None
    };
    match impossible {
        Some(message) => Step::Wait(Note::warning("ProvisioningFailed", message)),
        None => Step::Make(Box::new(volume(claim, class, facts.folder))),
    }
}

/// A folder for a claim.
fn volume(claim: &PersistentVolumeClaim, class: &StorageClass, folder: &Path) -> PersistentVolume {
    let name = format!("pvc-{}", claim.uid().unwrap_or_default());
    let spec = claim.spec.clone().unwrap_or_default();
    let requests = spec.resources.and_then(|all| all.requests);
    let storage = requests.and_then(|mut requests| requests.remove("storage"));
    let path = folder.join(&name).display().to_string();
    PersistentVolume {
        metadata: ObjectMeta {
            name: Some(name),
            annotations: Some([(PROVISIONED_BY.to_owned(), PROVISIONER.to_owned())].into()),
            ..ObjectMeta::default()
        },
        spec: Some(PersistentVolumeSpec {
            access_modes: spec.access_modes,
            capacity: storage.map(|storage| [("storage".to_owned(), storage)].into()),
            claim_ref: Some(reference(claim)),
            host_path: Some(HostPathVolumeSource {
                path,
                type_: Some("DirectoryOrCreate".to_owned()),
            }),
            mount_options: class.mount_options.clone(),
            persistent_volume_reclaim_policy: class.reclaim_policy.clone(),
            storage_class_name: Some(class.name_any()),
            volume_mode: spec.volume_mode,
            ..PersistentVolumeSpec::default()
        }),
        status: None,
    }
}

/// A volume is the claim's: what is left is to say so, and to let it grow.
fn finish(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> Step {
    let is_made = is_made_here(volume);
    let asked = claim.spec.as_ref().map_or(0, request);
    if is_made && asked > size(volume) {
        return Step::Change(Box::new(grown(claim, volume)));
    }
    let mut bound = claim.clone();
    let spec = bound.spec.get_or_insert_default();
    let chosen = spec.volume_name.as_deref().unwrap_or_default().is_empty();
    spec.volume_name.clone_from(&volume.metadata.name);
    let notes = bound.annotations_mut();
    let mut say = |key: &str, value: &str| drop(notes.insert(key.to_owned(), value.to_owned()));
    say(BIND_COMPLETED, "yes");
    if chosen {
        say(BOUND_BY_CONTROLLER, "yes");
    }
    if is_made {
        say("volume.beta.kubernetes.io/storage-provisioner", PROVISIONER);
        say("volume.kubernetes.io/storage-provisioner", PROVISIONER);
    }
    if bound != *claim {
        return Step::Write(Box::new(bound));
    }
    let has = volume.spec.clone().unwrap_or_default();
    let status = PersistentVolumeClaimStatus {
        phase: Some("Bound".to_owned()),
        access_modes: has.access_modes,
        capacity: has.capacity,
        ..claim.status.clone().unwrap_or_default()
    };
    if claim.status.as_ref() == Some(&status) {
        return Step::Nothing;
    }
    bound.status = Some(status);
    Step::Report(Box::new(bound))
}

fn grown(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> PersistentVolume {
    let spec = claim.spec.clone().unwrap_or_default();
    let requests = spec.resources.and_then(|all| all.requests);
    let mut volume = volume.clone();
    let capacity: &mut BTreeMap<_, _> = volume
        .spec
        .get_or_insert_default()
        .capacity
        .get_or_insert_default();
    capacity.extend(requests.and_then(|mut all| all.remove_entry("storage")));
    volume
}

/// Whether this controller made the volume.
pub(super) fn is_made_here(volume: &PersistentVolume) -> bool {
    let by = volume.annotations().get(PROVISIONED_BY);
    by.map(String::as_str) == Some(PROVISIONER)
}
