//! The revisions to roll back to.

use k8s_openapi::api::apps::v1::ReplicaSet;
use kube::ResourceExt;

use super::{annotation, replica_sets::ReplicaSetPlans};

/// The oldest ReplicaSets beyond `limit` that are empty.
pub(super) fn surplus<'a>(sets: &ReplicaSetPlans<'a>, limit: Option<i32>) -> Vec<&'a ReplicaSet> {
    let Some(limit) = limit.filter(|&limit| limit != i32::MAX) else {
        return Vec::new();
    };
    let live = sets.old.iter().filter_map(|set| set.live);
    let mut live: Vec<_> = live
        .filter(|set| set.metadata.deletion_timestamp.is_none())
        .collect();
    let surplus = live
        .len()
        .saturating_sub(usize::try_from(limit).unwrap_or(0));
    live.sort_by_key(|set| (annotation::revision(*set), set.creation_timestamp()));
    let oldest = live.into_iter().take(surplus);
    oldest.filter(|set| is_empty(set)).collect()
}

/// Whether it has no pods, wants none, and its controller has observed that.
fn is_empty(set: &ReplicaSet) -> bool {
    let status = set.status.clone().unwrap_or_default();
    let replicas = set.spec.as_ref().and_then(|spec| spec.replicas);
    status.replicas == 0
        && replicas == Some(0)
        && set.metadata.generation <= status.observed_generation
}
