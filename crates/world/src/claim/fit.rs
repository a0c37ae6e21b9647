//! Whether a volume is what a claim asks for. Pure.

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

/// Whose a volume is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    /// Nobody's.
    Free,
    /// Somebody keeps it for the claim.
    Kept,
    /// The claim's.
    Ours,
    /// Another claim's.
    Other,
}

/// Whose `volume` is, seen from `claim`.
pub(super) fn held(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> Held {
    let spec = volume.spec.as_ref();
    let Some(reference) = spec.and_then(|spec| spec.claim_ref.as_ref()) else {
        return Held::Free;
    };
    let named =
        reference.name == claim.metadata.name && reference.namespace == claim.metadata.namespace;
    match uid(reference) {
        _ if !named => Held::Other,
        None => Held::Kept,
        uid if uid == claim.metadata.uid.as_deref() => Held::Ours,
        Some(_) => Held::Other,
    }
}

/// The uid that a reference has; an empty one is none.
pub(super) fn uid(reference: &ObjectReference) -> Option<&str> {
    reference.uid.as_deref().filter(|uid| !uid.is_empty())
}

/// The volume for `claim`: one that is kept for it, or else the smallest of those that fit.
pub(super) fn choose<'a>(
    claim: &PersistentVolumeClaim,
    volumes: &'a [Arc<PersistentVolume>],
) -> Option<&'a PersistentVolume> {
    let fitting = volumes.iter().filter(|volume| {
        volume.metadata.deletion_timestamp.is_none() && lack(volume, claim).is_none()
    });
    let free = fitting.filter(|volume| match held(volume, claim) {
        Held::Free => phase(volume) != "Released" && phase(volume) != "Failed",
        Held::Kept => true,
        Held::Ours | Held::Other => false,
    });
    let best = free.min_by_key(|volume| {
        let is_kept = held(volume, claim) == Held::Kept;
        (!is_kept, size(volume), volume.name_any())
    });
    best.map(|volume| &**volume)
}

/// What keeps `volume` from being what `claim` asks for.
pub(super) fn lack(
    volume: &PersistentVolume,
    claim: &PersistentVolumeClaim,
) -> Option<&'static str> {
    let has = volume.spec.clone().unwrap_or_default();
    let asks = claim.spec.clone().unwrap_or_default();
    let class = |name: Option<String>| name.unwrap_or_default();
    let mode = |mode: Option<String>| mode.unwrap_or_else(|| "Filesystem".to_owned());
    if size(volume) < request(&asks) {
        return Some("it is too small");
    }
    if class(has.storage_class_name.clone()) != class(asks.storage_class_name.clone()) {
        return Some("it is of another class");
    }
    if mode(has.volume_mode.clone()) != mode(asks.volume_mode.clone()) {
        return Some("its volumeMode is another");
    }
    if !has_modes(&has, &asks) {
        return Some("it does not have all access modes");
    }
    let selects = asks.selector.is_none_or(|selector| {
        Selector::try_from(selector).is_ok_and(|selector| selector.matches(volume.labels()))
    });
    (!selects).then_some("the claim's selector does not select it")
}

fn has_modes(has: &PersistentVolumeSpec, asks: &PersistentVolumeClaimSpec) -> bool {
    let has = has.access_modes.iter().flatten().collect::<Vec<_>>();
    let mut asked = asks.access_modes.iter().flatten();
    asked.all(|mode| has.contains(&mode))
}

pub(super) fn phase(volume: &PersistentVolume) -> &str {
    let status = volume.status.as_ref();
    status
        .and_then(|status| status.phase.as_deref())
        .unwrap_or_default()
}

/// How large a volume is.
pub(super) fn size(volume: &PersistentVolume) -> i128 {
    let capacity = volume.spec.as_ref().and_then(|spec| spec.capacity.as_ref());
    let storage = capacity.and_then(|capacity| capacity.get("storage"));
    storage.and_then(amount).unwrap_or(0)
}

/// How much is asked for.
pub(super) fn request(spec: &PersistentVolumeClaimSpec) -> i128 {
    let requests = spec
        .resources
        .as_ref()
        .and_then(|all| all.requests.as_ref());
    let storage = requests.and_then(|requests| requests.get("storage"));
    storage.and_then(amount).unwrap_or(0)
}
