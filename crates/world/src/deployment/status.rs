//! The status of a Deployment.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus, ReplicaSetStatus};
use kube::ResourceExt;
use neap_kit::planted;

use super::{
    condition::{AVAILABLE, Conditions, FAILURE, PROGRESSING, reason},
    replica_sets::{ReplicaSetPlan, ReplicaSetPlans},
    size::RolloutSize,
};
use crate::workload::nonzero;

/// The replica counts; conditions are added by [`availability`], [`progress`] and [`failure`].
pub(super) fn numbers(deployment: &Deployment, sets: &ReplicaSetPlans<'_>) -> DeploymentStatus {
    let statuses: Vec<_> = sets.all().map(ReplicaSetPlan::status).collect();
    let sum = |field: fn(&ReplicaSetStatus) -> Option<i32>| {
        statuses.iter().filter_map(field).sum::<i32>()
    };
    let available = sum(|status| status.available_replicas);
    let former = deployment.status.as_ref();
    let updated = sets.new.as_ref().map_or(0, |new| new.status().replicas);
    let mut terminating = statuses.iter().map(|status| status.terminating_replicas);
    DeploymentStatus {
        observed_generation: deployment.metadata.generation,
        replicas: nonzero(sum(|status| Some(status.replicas))),
        updated_replicas: nonzero(updated),
        ready_replicas: nonzero(sum(|status| status.ready_replicas)),
        available_replicas: nonzero(available),
        unavailable_replicas: nonzero((sets.replicas() - available).max(0)),
        terminating_replicas: terminating.try_fold(0, |sum, set| Some(sum + set?)),
        collision_count: former.and_then(|status| status.collision_count),
        conditions: None,
    }
}

/// Sets `Available`: whether enough pods are available.
pub(super) fn availability(
    conditions: &mut Conditions,
    status: &DeploymentStatus,
    size: RolloutSize,
) {
    if status.available_replicas.unwrap_or(0) >= size.min_available() {
        let message = "Deployment has minimum availability.".to_owned();
        conditions.set(AVAILABLE, "True", "MinimumReplicasAvailable", message);
    } else {
        let message = "Deployment does not have minimum availability.".to_owned();
        conditions.set(AVAILABLE, "False", "MinimumReplicasUnavailable", message);
    }
}

/// Sets `Progressing` when the Deployment is paused or resumed. An exceeded deadline stays
/// reported.
pub(super) fn pause(conditions: &mut Conditions, deployment: &Deployment) {
    let progress = conditions.progress();
    if deadline(deployment).is_none() || progress == Some(reason::DEADLINE_EXCEEDED) {
        return;
    }
    let was_paused = progress == Some(reason::PAUSED);
    let spec = deployment.spec.as_ref();
    let is_paused = spec.and_then(|spec| spec.paused) == Some(true);
    if is_paused && !was_paused {
        let message = "Deployment is paused".to_owned();
        conditions.set(PROGRESSING, "Unknown", reason::PAUSED, message);
    } else if was_paused && !is_paused {
        let message = "Deployment is resumed".to_owned();
        conditions.set(PROGRESSING, "Unknown", reason::RESUMED, message);
    }
}

/// The progress deadline; none if it is not set.
pub(super) fn deadline(deployment: &Deployment) -> Option<Duration> {
    let spec = deployment.spec.as_ref()?;
    let seconds = spec.progress_deadline_seconds.filter(|&s| s != i32::MAX)?;
    Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

/// Whether every pod is of the current template and available.
pub(super) fn is_complete(status: &DeploymentStatus, size: RolloutSize) -> bool {
    let wanted = nonzero(size.replicas);
    status.updated_replicas == wanted
        && status.replicas == wanted
        && status.available_replicas == wanted
}

/// Sets `Progressing`; returns the time until the deadline passes if nothing changes.
pub(super) fn progress(
    conditions: &mut Conditions,
    deployment: &Deployment,
    status: &DeploymentStatus,
    sets: &ReplicaSetPlans<'_>,
    size: RolloutSize,
) -> Option<Duration> {
    let Some(deadline) = deadline(deployment) else {
        conditions.remove(PROGRESSING);
        return None;
    };
    let was_complete = conditions.progress() == Some(reason::COMPLETE);
    if was_complete && status.replicas == status.updated_replicas {
        planted!(CompleteAnew => {
            conditions.set_now(PROGRESSING, "True", reason::COMPLETE, "It is over.".to_owned());
            return Some(Duration::from_mins(1));
        });
        return None;
    }
    let who = match &sets.new {
        Some(new) => format!("ReplicaSet {:?}", new.desired.name_any()),
        None => format!("Deployment {:?}", deployment.name_any()),
    };
    let former = deployment.status.clone().unwrap_or_default();
    if is_complete(status, size) {
        let message = format!("{who} has successfully progressed.");
        conditions.set(PROGRESSING, "True", reason::COMPLETE, message);
        return None;
    }
    if has_progressed(&former, status) {
        let message = format!("{who} is progressing.");
        conditions.set_now(PROGRESSING, "True", reason::UPDATED, message);
        return Some(deadline + Duration::from_secs(1));
    }
    let left = left(conditions, deadline)?;
    if left.is_zero() {
        let message = format!("{who} has timed out progressing.");
        conditions.set(PROGRESSING, "False", reason::DEADLINE_EXCEEDED, message);
        return None;
    }
    Some(left)
}

/// Whether any count improved.
fn has_progressed(former: &DeploymentStatus, status: &DeploymentStatus) -> bool {
    let old = |status: &DeploymentStatus| {
        status.replicas.unwrap_or(0) - status.updated_replicas.unwrap_or(0)
    };
    status.updated_replicas > former.updated_replicas
        || old(status) < old(former)
        || status.ready_replicas > former.ready_replicas
        || status.available_replicas > former.available_replicas
}

/// The time until the deadline has passed, plus a second so that it certainly has by then; zero if
/// it has passed, none if the rollout has never progressed.
fn left(conditions: &Conditions, deadline: Duration) -> Option<Duration> {
    let progressing = conditions.get(PROGRESSING)?;
    match progressing.reason.as_deref() {
        Some(reason::COMPLETE) => return None,
        Some(reason::DEADLINE_EXCEEDED) => return Some(Duration::ZERO),
        _ => {}
    }
    let since = progressing.last_update_time.as_ref()?.0;
    let elapsed = Duration::try_from(conditions.now.duration_since(since)).unwrap_or_default();
    let left = deadline.checked_sub(elapsed);
    Some(left.map_or(Duration::ZERO, |left| left + Duration::from_secs(1)))
}

/// Copies the `ReplicaFailure` condition of a ReplicaSet, that of the new one first.
pub(super) fn failure(conditions: &mut Conditions, sets: &ReplicaSetPlans<'_>) {
    let found = sets.all().find_map(|set| {
        let conditions = set.status().conditions.unwrap_or_default();
        conditions
            .into_iter()
            .find(|condition| condition.type_ == FAILURE)
    });
    match found {
        Some(found) => {
            let (reason, message) = (found.reason.unwrap_or_default(), found.message);
            conditions.set(FAILURE, &found.status, &reason, message.unwrap_or_default());
        }
        None => conditions.remove(FAILURE),
    }
}
