//! Rolls out from the old ReplicaSets to the new one, as far as the strategy allows now.

use std::collections::BTreeSet;

use kube::ResourceExt;

use super::{
    replica_sets::{ReplicaSetPlan, ReplicaSetPlans},
    size::RolloutSize,
};

/// Grows the new ReplicaSet, or else shrinks the old ones. The result of one determines the other,
/// so only one of them happens per reconcile.
pub(super) fn rolling_update(sets: &mut ReplicaSetPlans<'_>, size: RolloutSize) {
    if !grow(sets, size) {
        shrink(sets, size);
    }
}

fn grow(sets: &mut ReplicaSetPlans<'_>, size: RolloutSize) -> bool {
    let room = size.max_replicas() - sets.replicas();
    let Some(new) = &mut sets.new else {
        return false;
    };
    let replicas = new.replicas();
    let wanted = if replicas > size.replicas {
        size.replicas
    } else {
        replicas + room.clamp(0, size.replicas - replicas)
    };
    // A ReplicaSet created in this reconcile is created in its size, and does not end the
    // reconcile.
    let changes = wanted != replicas;
    if changes {
        new.resize(wanted, size);
    }
    changes && new.live.is_some()
}

fn shrink(sets: &mut ReplicaSetPlans<'_>, size: RolloutSize) {
    let not_yet = |set: &ReplicaSetPlan<'_>| set.replicas() - set.available();
    let unavailable = sets.new.as_ref().map_or(0, not_yet);
    let most = sets.replicas() - size.min_available() - unavailable;
    if most <= 0 {
        return;
    }
    // Pods that are not available are deleted first.
    let mut left = most;
    for set in &mut sets.old {
        let broken = (set.replicas() - set.available()).clamp(0, left);
        if broken > 0 {
            left -= broken;
            set.resize(set.replicas() - broken, size);
        }
    }
    let mut left = sets.available() - size.min_available();
    for set in &mut sets.old {
        let surplus = left.clamp(0, set.replicas());
        if surplus > 0 {
            left -= surplus;
            set.resize(set.replicas() - surplus, size);
        }
    }
}

/// Scales the old ReplicaSets to zero. True once none of their pods is left, so that the new one
/// may have pods. `busy` are the uids of ReplicaSets with pods that have not ended.
pub(super) fn scale_down_all(
    sets: &mut ReplicaSetPlans<'_>,
    busy: &BTreeSet<String>,
    size: RolloutSize,
) -> bool {
    let mut emptied = true;
    for set in &mut sets.old {
        if set.replicas() > 0 {
            set.resize(0, size);
            emptied = false;
        }
        let pods = set.status().replicas > 0;
        emptied &= !pods && !busy.contains(&set.desired.uid().unwrap_or_default());
    }
    emptied
}

/// Scales the new ReplicaSet to its full size.
pub(super) fn scale_up_new(sets: &mut ReplicaSetPlans<'_>, size: RolloutSize) {
    if let Some(new) = &mut sets.new
        && new.replicas() != size.replicas
    {
        new.resize(size.replicas, size);
    }
}
