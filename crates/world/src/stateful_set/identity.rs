//! The identity of a pod: its ordinal, name, labels and volumes.

use k8s_openapi::api::{
    apps::v1::{ControllerRevision, StatefulSet},
    core::v1::{PersistentVolumeClaimVolumeSource, Pod, PodTemplateSpec, Volume},
};
use kube::ResourceExt;

use super::claims;
use crate::workload::{REVISION_HASH, from_template, owned_by};

const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
const POD_INDEX: &str = "apps.kubernetes.io/pod-index";

/// The ordinal of a pod of the set named `set`, by its name.
pub(super) fn ordinal(set: &str, pod: &Pod) -> Option<i32> {
    let name = pod.metadata.name.as_deref()?;
    let ordinal = name.strip_prefix(set)?.strip_prefix('-')?;
    let is_plain = ordinal == "0" || !ordinal.starts_with(['0', '-', '+']);
    ordinal.parse().ok().filter(|_| is_plain)
}

/// The name of the revision that a pod was created from.
pub(super) fn revision(pod: &Pod) -> Option<&str> {
    pod.labels().get(REVISION_HASH).map(String::as_str)
}

/// The pod with this ordinal, from `template`, which is that of `revision`.
pub(super) fn pod(
    set: &StatefulSet,
    template: &PodTemplateSpec,
    revision: &ControllerRevision,
    ordinal: i32,
) -> Option<Pod> {
    let (owner, namespace) = (owned_by(set)?, set.namespace()?);
    let name = format!("{}-{ordinal}", set.name_any());
    let mut pod = from_template(template, &namespace, name, owner);
    pod.metadata.generate_name = Some(format!("{}-", set.name_any()));
    let labels = pod.labels_mut();
    labels.insert(REVISION_HASH.to_owned(), revision.name_any());
    identify(set, &mut pod, ordinal);
    if let Some(spec) = &mut pod.spec {
        spec.hostname.clone_from(&pod.metadata.name);
        let service = set.spec.as_ref().and_then(|spec| spec.service_name.clone());
        spec.subdomain = service.filter(|name| !name.is_empty());
    }
    Some(pod)
}

/// Sets the labels and volumes of its ordinal on a pod.
pub(super) fn identify(set: &StatefulSet, pod: &mut Pod, ordinal: i32) {
    let name = pod.name_any();
    let labels = pod.labels_mut();
    labels.insert(POD_NAME.to_owned(), name);
    labels.insert(POD_INDEX.to_owned(), ordinal.to_string());
    let Some(spec) = &mut pod.spec else {
        return;
    };
    let own = claims::names(set, ordinal).map(|(template, claim)| Volume {
        name: template,
        persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
            claim_name: claim,
            ..PersistentVolumeClaimVolumeSource::default()
        }),
        ..Volume::default()
    });
    let mut volumes: Vec<Volume> = own.collect();
    let others = spec.volumes.take().unwrap_or_default().into_iter();
    let is_other = |volume: &Volume| !volumes.iter().any(|own| own.name == volume.name);
    let others: Vec<_> = others.filter(is_other).collect();
    volumes.extend(others);
    spec.volumes = Some(volumes).filter(|volumes| !volumes.is_empty());
}

/// The pod with its labels corrected, if a user has changed them. A pod's volumes are immutable.
pub(super) fn repaired(set: &StatefulSet, pod: &Pod, ordinal: i32) -> Option<Pod> {
    let mut repaired = pod.clone();
    identify(set, &mut repaired, ordinal);
    repaired.spec.clone_from(&pod.spec);
    (repaired != *pod).then_some(repaired)
}
