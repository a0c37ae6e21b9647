//! The state of a pod, and its creation from a template.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Pod, PodCondition, PodTemplateSpec},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};

pub(crate) fn from_template(
    template: &PodTemplateSpec,
    namespace: &str,
    name: String,
    owner: OwnerReference,
) -> Pod {
    let meta = template.metadata.clone().unwrap_or_default();
    Pod {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(namespace.to_owned()),
            labels: meta.labels,
            annotations: meta.annotations,
            finalizers: meta.finalizers,
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        spec: template.spec.clone(),
        status: None,
    }
}

/// Whether the pod has neither ended nor been deleted.
pub(crate) fn is_active(pod: &Pod) -> bool {
    !has_ended(pod) && pod.metadata.deletion_timestamp.is_none()
}

/// Whether the pod has succeeded or failed.
pub(crate) fn has_ended(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Whether the pod is running and ready.
pub(crate) fn is_running(pod: &Pod) -> bool {
    phase(pod) == "Running" && is_ready(pod)
}

/// The phase of the pod.
pub(crate) fn phase(pod: &Pod) -> &str {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    phase.unwrap_or("Pending")
}

/// Whether the pod is ready.
pub(crate) fn is_ready(pod: &Pod) -> bool {
    ready(pod).is_some()
}

/// The time at which the pod became ready.
pub(crate) fn ready_since(pod: &Pod) -> Option<Timestamp> {
    ready(pod)?.last_transition_time.as_ref().map(|time| time.0)
}

fn ready(pod: &Pod) -> Option<&PodCondition> {
    readiness(pod).filter(|condition| condition.status == "True")
}

/// The `Ready` condition of the pod, true or false.
pub(crate) fn readiness(pod: &Pod) -> Option<&PodCondition> {
    let mut conditions = pod
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    conditions.find(|condition| condition.type_ == "Ready")
}

/// Succeeds if the pod has been ready for `min_ready` seconds; otherwise fails with the remaining
/// time, or with none if the pod is not ready at all.
pub(crate) fn is_available(
    pod: &Pod,
    min_ready: i32,
    now: Timestamp,
) -> Result<(), Option<Duration>> {
    if !is_ready(pod) {
        return Err(None);
    }
    if min_ready <= 0 {
        return Ok(());
    }
    let wanted = Duration::from_secs(min_ready.unsigned_abs().into());
    let Some(since) = ready_since(pod) else {
        return Err(Some(wanted));
    };
    let elapsed = Duration::try_from(now.duration_since(since)).unwrap_or_default();
    match wanted.checked_sub(elapsed) {
        None | Some(Duration::ZERO) => Ok(()),
        Some(left) => Err(Some(left)),
    }
}
