//! What makes a pod the one with its number.

use k8s_openapi::api::{
    apps::v1::{ControllerRevision, StatefulSet},
    core::v1::{PersistentVolumeClaimVolumeSource, Pod, PodTemplateSpec, Volume},
};
use kube::ResourceExt;

use super::claim;
use crate::workload::{REVISION_HASH, from_template, owned_by};

const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
const POD_INDEX: &str = "apps.kubernetes.io/pod-index";

/// The number of a pod of the set called `set`, by its name.
pub(super) fn number(set: &str, pod: &Pod) -> Option<i32> {
    let name = pod.metadata.name.as_deref()?;
    let number = name.strip_prefix(set)?.strip_prefix('-')?;
    let is_plain = number == "0" || !number.starts_with(['0', '-', '+']);
    number.parse().ok().filter(|_| is_plain)
}

/// The name of the revision that a pod was made of.
pub(super) fn revision(pod: &Pod) -> Option<&str> {
    pod.labels().get(REVISION_HASH).map(String::as_str)
}

/// The pod with this number, of a template that is that of `revision`.
pub(super) fn pod(
    set: &StatefulSet,
    template: &PodTemplateSpec,
    revision: &ControllerRevision,
    number: i32,
) -> Option<Pod> {
    let (owner, namespace) = (owned_by(set)?, set.namespace()?);
    let name = format!("{}-{number}", set.name_any());
    let mut pod = from_template(template, &namespace, name, owner);
    pod.metadata.generate_name = Some(format!("{}-", set.name_any()));
    let labels = pod.labels_mut();
    labels.insert(REVISION_HASH.to_owned(), revision.name_any());
    identify(set, &mut pod, number);
    if let Some(spec) = &mut pod.spec {
        spec.hostname.clone_from(&pod.metadata.name);
        let service = set.spec.as_ref().and_then(|spec| spec.service_name.clone());
        spec.subdomain = service.filter(|name| !name.is_empty());
    }
    Some(pod)
}

/// Gives a pod the labels and volumes of its number.
pub(super) fn identify(set: &StatefulSet, pod: &mut Pod, number: i32) {
    let name = pod.name_any();
    let labels = pod.labels_mut();
    labels.insert(POD_NAME.to_owned(), name);
    labels.insert(POD_INDEX.to_owned(), number.to_string());
    let Some(spec) = &mut pod.spec else {
        return;
    };
    let own = claim::names(set, number).map(|(template, claim)| Volume {
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

/// The pod with its labels put right, if somebody has changed them. Volumes of a pod cannot be.
pub(super) fn mended(set: &StatefulSet, pod: &Pod, number: i32) -> Option<Pod> {
    let mut mended = pod.clone();
    identify(set, &mut mended, number);
    mended.spec.clone_from(&pod.spec);
    (mended != *pod).then_some(mended)
}
