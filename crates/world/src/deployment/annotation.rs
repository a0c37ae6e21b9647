//! What is noted on Deployments and their sets.

use std::collections::BTreeMap;

use kube::ResourceExt;

use super::size::Size;

pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
const MOST: &str = "deployment.kubernetes.io/max-replicas";
/// Notes of a Deployment that are not its sets'.
const ITS_OWN: [&str; 6] = [
    REVISION,
    HISTORY,
    DESIRED,
    MOST,
    "kubectl.kubernetes.io/last-applied-configuration",
    "deprecated.deployment.rollback.to",
];
/// A history that gets longer than this loses its beginning.
const LONGEST_HISTORY: usize = 2000;

/// Which revision an object is, or zero.
pub(super) fn revision(object: &impl ResourceExt) -> i64 {
    number(object, REVISION).unwrap_or(0)
}

/// The number of pods that was wished for when the set was last given its size.
pub(super) fn desired(set: &impl ResourceExt) -> Option<i64> {
    number(set, DESIRED)
}

/// The most pods that were allowed when the set was last given its size.
pub(super) fn most(set: &impl ResourceExt) -> Option<i64> {
    number(set, MOST)
}

fn number(object: &impl ResourceExt, name: &str) -> Option<i64> {
    object.annotations().get(name)?.parse().ok()
}

/// Notes on a set which size the whole had when it got its own.
pub(super) fn note_size(set: &mut impl ResourceExt, size: Size) {
    let notes = set.annotations_mut();
    notes.insert(DESIRED.to_owned(), size.replicas.to_string());
    notes.insert(MOST.to_owned(), size.most().to_string());
}

/// Gives a set its Deployment's annotations, and its revision if that is higher than the one it
/// has, which becomes part of its history.
pub(super) fn note_revision(
    set: &mut impl ResourceExt,
    deployment: &BTreeMap<String, String>,
    new: i64,
) {
    let former = set.annotations().get(REVISION).cloned();
    let notes = set.annotations_mut();
    let handed = deployment
        .iter()
        .filter(|(name, _)| !ITS_OWN.contains(&name.as_str()));
    notes.extend(handed.map(|(name, value)| (name.clone(), value.clone())));
    let former_number = former.as_deref().unwrap_or("0").parse().unwrap_or(0);
    if former_number >= new {
        return;
    }
    notes.insert(REVISION.to_owned(), new.to_string());
    if let Some(former) = former {
        let mut history = notes.remove(HISTORY).unwrap_or_default();
        if !history.is_empty() {
            history.push(',');
        }
        history.push_str(&former);
        while history.len() > LONGEST_HISTORY {
            let rest = history.split_once(',').map(|(_, rest)| rest.to_owned());
            history = rest.unwrap_or_default();
        }
        notes.insert(HISTORY.to_owned(), history);
    }
}
