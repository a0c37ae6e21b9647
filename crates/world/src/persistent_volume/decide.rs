//! The next step for a claim. Pure.

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
use neap_kit::event::EventDraft;

use super::{
    BIND_COMPLETED, BOUND_BY_CONTROLLER, PROVISIONED_BY, PROVISIONER,
    matching::{VolumeBinding, best_match, binding, mismatch, request, size},
    storage_class::{default_class, waits_for_consumer},
};

pub(super) struct Facts<'a> {
    pub(super) claim: &'a PersistentVolumeClaim,
    pub(super) volumes: &'a [Arc<PersistentVolume>],
    pub(super) classes: &'a [Arc<StorageClass>],
    /// Whether a pod uses the claim.
    pub(super) is_used: bool,
    /// The parent folder of provisioned volumes.
    pub(super) folder: &'a Path,
}

/// The next write; the step after it is decided when it is done.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ClaimStep {
    /// Nothing is to be done.
    Nothing,
    /// Nothing can be done now, for the reason in this Event.
    Wait(EventDraft),
    /// Create this volume.
    CreateVolume(Box<PersistentVolume>),
    /// Update this volume.
    UpdateVolume(Box<PersistentVolume>),
    /// Update the claim.
    UpdateClaim(Box<PersistentVolumeClaim>),
    /// Update the status of the claim.
    UpdateStatus(Box<PersistentVolumeClaim>),
}

pub(super) fn decide(facts: &Facts<'_>) -> ClaimStep {
    let claim = facts.claim;
    if claim.metadata.deletion_timestamp.is_some() {
        return ClaimStep::Nothing;
    }
    let spec = claim.spec.clone().unwrap_or_default();
    if let Some(name) = spec.volume_name.filter(|name| !name.is_empty()) {
        let mut all = facts.volumes.iter();
        let named = all.find(|volume| volume.name_any() == name);
        return named.map_or_else(
            || missing(claim, &name),
            |volume| bind_to_named(claim, volume),
        );
    }
    let mut all = facts.volumes.iter();
    if let Some(begun) = all.find(|volume| binding(volume, claim) == VolumeBinding::Bound) {
        return finish_binding(claim, begun);
    }
    let class = spec.storage_class_name.as_deref();
    let class = facts
        .classes
        .iter()
        .find(|found| Some(&*found.name_any()) == class);
    if class.is_some_and(|class| waits_for_consumer(class)) && !facts.is_used {
        let message = "the claim is bound when a pod uses it, as its StorageClass specifies";
        return ClaimStep::Wait(EventDraft::normal("WaitForFirstConsumer", message));
    }
    if let Some(volume) = best_match(claim, facts.volumes) {
        return set_claim_ref(claim, volume);
    }
    match (spec.storage_class_name.as_deref(), class) {
        (None, _) => set_default_class(facts),
        (Some(""), _) => none_matches("and none is provisioned for a claim with the empty class"),
        (Some(name), None) => {
            let message = format!("there is no StorageClass \"{name}\"");
            ClaimStep::Wait(EventDraft::warning("ProvisioningFailed", message))
        }
        (Some(_), Some(class)) => provision(facts, class),
    }
}

fn none_matches(why: &str) -> ClaimStep {
    let message = format!("no PersistentVolume matches this claim, {why}");
    ClaimStep::Wait(EventDraft::normal("FailedBinding", message))
}

/// The volume that a claim names does not exist.
fn missing(claim: &PersistentVolumeClaim, name: &str) -> ClaimStep {
    if !is_complete(claim) {
        let message = format!("there is no PersistentVolume \"{name}\", which this claim names");
        return ClaimStep::Wait(EventDraft::warning("FailedBinding", message));
    }
    lost(
        claim,
        format!("PersistentVolume \"{name}\" is gone, and with it the data of this claim"),
    )
}

fn lost(claim: &PersistentVolumeClaim, message: String) -> ClaimStep {
    let mut claim = claim.clone();
    let status = claim.status.get_or_insert_default();
    if status.phase.as_deref() == Some("Lost") {
        return ClaimStep::Wait(EventDraft::warning("ClaimLost", message));
    }
    status.phase = Some("Lost".to_owned());
    (status.access_modes, status.capacity) = (None, None);
    ClaimStep::UpdateStatus(Box::new(claim))
}

fn is_complete(claim: &PersistentVolumeClaim) -> bool {
    claim.annotations().contains_key(BIND_COMPLETED)
}

/// Binds a claim to the volume that it names.
fn bind_to_named(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> ClaimStep {
    match binding(volume, claim) {
        VolumeBinding::Bound => finish_binding(claim, volume),
        VolumeBinding::Other => {
            let name = volume.name_any();
            let message = format!("PersistentVolume \"{name}\" belongs to another claim");
            if is_complete(claim) {
                return lost(claim, message);
            }
            ClaimStep::Wait(EventDraft::warning("FailedBinding", message))
        }
        VolumeBinding::Free | VolumeBinding::Reserved => match mismatch(volume, claim) {
            Some(why) => {
                let message = format!("PersistentVolume \"{}\": {why}", volume.name_any());
                ClaimStep::Wait(EventDraft::warning("VolumeMismatch", message))
            }
            None => set_claim_ref(claim, volume),
        },
    }
}

/// Sets the claim reference of a volume.
fn set_claim_ref(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> ClaimStep {
    let mut volume = volume.clone();
    if binding(&volume, claim) == VolumeBinding::Free {
        volume
            .annotations_mut()
            .insert(BOUND_BY_CONTROLLER.to_owned(), "yes".to_owned());
    }
    volume.spec.get_or_insert_default().claim_ref = Some(reference(claim));
    ClaimStep::UpdateVolume(Box::new(volume))
}

fn reference(claim: &PersistentVolumeClaim) -> ObjectReference {
    let mut reference = claim.object_ref(&());
    reference
        .resource_version
        .clone_from(&claim.metadata.resource_version);
    reference
}

/// A claim that names no class gets the default one, even if that was created later.
fn set_default_class(facts: &Facts<'_>) -> ClaimStep {
    let Some(class) = default_class(facts.classes) else {
        return none_matches("and there is no default StorageClass to provision one");
    };
    let mut claim = facts.claim.clone();
    claim.spec.get_or_insert_default().storage_class_name = Some(class.name_any());
    ClaimStep::UpdateClaim(Box::new(claim))
}

fn provision(facts: &Facts<'_>, class: &StorageClass) -> ClaimStep {
    let (claim, name) = (facts.claim, class.name_any());
    let spec = claim.spec.clone().unwrap_or_default();
    match class.provisioner.as_str() {
        PROVISIONER => {}
        "kubernetes.io/no-provisioner" => {
            return none_matches(&format!("and StorageClass \"{name}\" provisions none"));
        }
        other => {
            let message = format!(
                "waiting for \"{other}\" of StorageClass \"{name}\" to provision a volume, which no component of this cluster does, or for a user to create one"
            );
            return ClaimStep::Wait(EventDraft::normal("ExternalProvisioning", message));
        }
    }
    let impossible = if spec.volume_mode.as_deref() == Some("Block") {
        Some("a folder cannot be a block device: volumeMode must be Filesystem")
    } else if spec.selector.is_some() {
        Some(
            "no PersistentVolume matches the claim's selector, and none can be provisioned for it: provisioned volumes have no labels",
        )
    } else if spec.data_source.is_some() || spec.data_source_ref.is_some() {
        Some("a folder is created empty: dataSource is not supported")
    } else {
        None
    };
    match impossible {
        Some(message) => ClaimStep::Wait(EventDraft::warning("ProvisioningFailed", message)),
        None => ClaimStep::CreateVolume(Box::new(volume(claim, class, facts.folder))),
    }
}

/// The volume that is provisioned for a claim.
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

/// The volume references the claim: what is left is to expand the volume, and to update the claim
/// and its status.
fn finish_binding(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> ClaimStep {
    let is_provisioned = is_provisioned_here(volume);
    let requested = claim.spec.as_ref().map_or(0, request);
    if is_provisioned && requested > size(volume) {
        return ClaimStep::UpdateVolume(Box::new(expanded(claim, volume)));
    }
    let mut bound = claim.clone();
    let spec = bound.spec.get_or_insert_default();
    let chosen = spec.volume_name.as_deref().unwrap_or_default().is_empty();
    spec.volume_name.clone_from(&volume.metadata.name);
    let annotations = bound.annotations_mut();
    let mut annotate =
        |key: &str, value: &str| drop(annotations.insert(key.to_owned(), value.to_owned()));
    annotate(BIND_COMPLETED, "yes");
    if chosen {
        annotate(BOUND_BY_CONTROLLER, "yes");
    }
    if is_provisioned {
        annotate("volume.beta.kubernetes.io/storage-provisioner", PROVISIONER);
        annotate("volume.kubernetes.io/storage-provisioner", PROVISIONER);
    }
    if bound != *claim {
        return ClaimStep::UpdateClaim(Box::new(bound));
    }
    let has = volume.spec.clone().unwrap_or_default();
    let status = PersistentVolumeClaimStatus {
        phase: Some("Bound".to_owned()),
        access_modes: has.access_modes,
        capacity: has.capacity,
        ..claim.status.clone().unwrap_or_default()
    };
    if claim.status.as_ref() == Some(&status) {
        return ClaimStep::Nothing;
    }
    bound.status = Some(status);
    ClaimStep::UpdateStatus(Box::new(bound))
}

fn expanded(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> PersistentVolume {
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

/// Whether this controller provisioned the volume.
pub(super) fn is_provisioned_here(volume: &PersistentVolume) -> bool {
    let by = volume.annotations().get(PROVISIONED_BY);
    by.map(String::as_str) == Some(PROVISIONER)
}
