//! The annotations of Deployments and their ReplicaSets.

use std::collections::BTreeMap;

use kube::ResourceExt;

use super::size::RolloutSize;

pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
const DESIRED_REPLICAS: &str = "deployment.kubernetes.io/desired-replicas";
const MAX_REPLICAS: &str = "deployment.kubernetes.io/max-replicas";
/// Annotations of a Deployment that are not copied to its ReplicaSets.
const NOT_COPIED: [&str; 6] = [
    REVISION,
    REVISION_HISTORY,
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    "kubectl.kubernetes.io/last-applied-configuration",
    "deprecated.deployment.rollback.to",
];
/// The maximum length of a revision history; a longer one loses its beginning.
const MAX_HISTORY_BYTES: usize = 2000;

/// The revision of an object, or zero.
pub(super) fn revision(object: &impl ResourceExt) -> i64 {
    number(object, REVISION).unwrap_or(0)
}

/// The Deployment's replica count when the ReplicaSet was last scaled.
pub(super) fn desired(set: &impl ResourceExt) -> Option<i64> {
    number(set, DESIRED_REPLICAS)
}

/// The Deployment's maximum number of pods when the ReplicaSet was last scaled.
pub(super) fn max_replicas(set: &impl ResourceExt) -> Option<i64> {
    number(set, MAX_REPLICAS)
}

fn number(object: &impl ResourceExt, name: &str) -> Option<i64> {
    object.annotations().get(name)?.parse().ok()
}

/// Records the size of the Deployment on a ReplicaSet that is scaled for it.
pub(super) fn set_size_annotations(set: &mut impl ResourceExt, size: RolloutSize) {
    let notes = set.annotations_mut();
    notes.insert(DESIRED_REPLICAS.to_owned(), size.replicas.to_string());
    notes.insert(MAX_REPLICAS.to_owned(), size.max_replicas().to_string());
}

/// Copies its Deployment's annotations to a ReplicaSet, and sets its revision if the new one is
/// higher; the former one becomes part of its history.
pub(super) fn set_revision(
    set: &mut impl ResourceExt,
    deployment: &BTreeMap<String, String>,
    new: i64,
) {
    let former = set.annotations().get(REVISION).cloned();
    let notes = set.annotations_mut();
    let handed = deployment
        .iter()
        .filter(|(name, _)| !NOT_COPIED.contains(&name.as_str()));
    notes.extend(handed.map(|(name, value)| (name.clone(), value.clone())));
    let former_number = former.as_deref().unwrap_or("0").parse().unwrap_or(0);
    if former_number >= new {
        return;
    }
    notes.insert(REVISION.to_owned(), new.to_string());
    if let Some(former) = former {
        let mut history = notes.remove(REVISION_HISTORY).unwrap_or_default();
        if !history.is_empty() {
            history.push(',');
        }
        history.push_str(&former);
        while history.len() > MAX_HISTORY_BYTES {
            let rest = history.split_once(',').map(|(_, rest)| rest.to_owned());
            history = rest.unwrap_or_default();
        }
        notes.insert(REVISION_HISTORY.to_owned(), history);
    }
}
