//! The PersistentVolumeClaims of a StatefulSet's ordinals.

use k8s_openapi::{
    api::{
        apps::v1::{StatefulSet, StatefulSetPersistentVolumeClaimRetentionPolicy as Policy},
        core::v1::{PersistentVolumeClaim, Pod},
    },
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{Resource, ResourceExt};

use crate::workload::owned_by;

fn templates(set: &StatefulSet) -> impl Iterator<Item = &PersistentVolumeClaim> {
    let spec = set.spec.iter();
    spec.flat_map(|spec| spec.volume_claim_templates.iter().flatten())
}

fn name(set: &StatefulSet, template: &PersistentVolumeClaim, ordinal: i32) -> String {
    format!("{}-{}-{ordinal}", template.name_any(), set.name_any())
}

/// The volumes of an ordinal, as (name in the pod, name of the claim).
pub(super) fn names(set: &StatefulSet, ordinal: i32) -> impl Iterator<Item = (String, String)> {
    templates(set).map(move |it| (it.name_any(), name(set, it, ordinal)))
}

/// The claims of an ordinal, as they are created.
pub(super) fn claims(set: &StatefulSet, ordinal: i32) -> Vec<PersistentVolumeClaim> {
    let selector = set.spec.as_ref().map(|spec| spec.selector.clone());
    let chosen = selector.and_then(|selector| selector.match_labels);
    let claims = templates(set).map(|template| {
        let mut claim = template.clone();
        claim.metadata.name = Some(name(set, template, ordinal));
        claim.metadata.namespace = set.namespace();
        claim
            .labels_mut()
            .extend(chosen.clone().unwrap_or_default());
        claim.status = None;
        set_owner(set, None, &mut claim);
        claim
    });
    claims.collect()
}

/// The claim with the owners that the set's retention policy requires, if they differ. `leaving` is
/// the pod that is deleted by scaling down.
pub(super) fn reowned(
    set: &StatefulSet,
    leaving: Option<&Pod>,
    claim: &PersistentVolumeClaim,
) -> Option<PersistentVolumeClaim> {
    let mut goal = claim.clone();
    set_owner(set, leaving, &mut goal);
    (goal.owner_references() != claim.owner_references()).then_some(goal)
}

/// Sets the owner with which the claim is deleted: the set, a pod beyond the replica count, or
/// none.
fn set_owner(set: &StatefulSet, leaving: Option<&Pod>, claim: &mut PersistentVolumeClaim) {
    let spec = set.spec.as_ref();
    let policy = spec.and_then(|spec| spec.persistent_volume_claim_retention_policy.clone());
    let Policy {
        when_deleted,
        when_scaled,
    } = policy.unwrap_or_default();
    let goes = |when: &Option<String>| when.as_deref() == Some("Delete");
    let owner: Option<OwnerReference> = match leaving {
        Some(pod) if goes(&when_scaled) => owned_by(pod),
        _ if goes(&when_deleted) => owned_by(set),
        _ => None,
    };
    let uid = set.uid().unwrap_or_default();
    let pod_kind = Pod::kind(&());
    let former = claim.metadata.owner_references.take().unwrap_or_default();
    let is_others = |owner: &OwnerReference| owner.uid != uid && owner.kind != pod_kind;
    let mut owners: Vec<_> = former.into_iter().filter(is_others).collect();
    owners.extend(owner);
    claim.metadata.owner_references = Some(owners).filter(|owners| !owners.is_empty());
}
