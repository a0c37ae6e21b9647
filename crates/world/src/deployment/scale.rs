//! A changed replica count, spread over the existing ReplicaSets.

use std::cmp::Reverse;

use super::{
    annotation,
    replica_sets::{ReplicaSetPlan, ReplicaSetPlans},
    size::RolloutSize,
};

/// Whether a ReplicaSet was last scaled for another replica count.
pub(super) fn is_due(sets: &ReplicaSetPlans<'_>, size: RolloutSize) -> bool {
    let wanted = i64::from(size.replicas);
    let mut active = sets.all().filter(|set| set.replicas() > 0);
    active.any(|set| annotation::desired(&set.desired).is_some_and(|desired| desired != wanted))
}

/// Scales the ReplicaSets so that their sizes add up to the replica count. `present` is the number
/// of existing pods.
pub(super) fn scale(
    sets: &mut ReplicaSetPlans<'_>,
    size: RolloutSize,
    present: i32,
    is_recreate: bool,
) {
    if let Some(only) = active_or_latest(sets) {
        only.resize(size.replicas, size);
    } else if is_saturated(sets, size) {
        let old = sets.old.iter_mut().filter(|set| set.replicas() > 0);
        old.for_each(|set| set.resize(0, size));
    } else if !is_recreate {
        in_proportion(sets, size, present);
    }
}

/// The only ReplicaSet with pods, or the latest one if none has any.
fn active_or_latest<'s, 'a>(
    sets: &'s mut ReplicaSetPlans<'a>,
) -> Option<&'s mut ReplicaSetPlan<'a>> {
    match sets.all().filter(|set| set.replicas() > 0).count() {
        0 => sets.new.as_mut().or(sets.old.last_mut()),
        1 => sets.all_mut().find(|set| set.replicas() > 0),
        _ => None,
    }
}

fn is_saturated(sets: &ReplicaSetPlans<'_>, size: RolloutSize) -> bool {
    sets.new.as_ref().is_some_and(|new| {
        new.replicas() == size.replicas
            && new.available() == size.replicas
            && annotation::desired(&new.desired) == Some(size.replicas.into())
    })
}

/// Each ReplicaSet keeps its proportion, so that a bad template does not get more pods.
fn in_proportion(sets: &mut ReplicaSetPlans<'_>, size: RolloutSize, present: i32) {
    let mut active: Vec<_> = sets.all_mut().filter(|set| set.replicas() > 0).collect();
    let total: i32 = active.iter().map(|set| set.replicas()).sum();
    let allowed = if size.replicas > 0 {
        size.max_replicas()
    } else {
        0
    };
    let change = allowed - total;
    if change > 0 {
        active.sort_by_key(|set| (Reverse(set.replicas()), Reverse(set.created_at())));
    } else {
        active.sort_by_key(|set| (Reverse(set.replicas()), set.created_at()));
    }
    let mut spread = 0;
    let mut parts: Vec<i32> = Vec::new();
    for set in &active {
        let part = part(set, size, present);
        let left = change - spread;
        let part = if change > 0 {
            part.min(left)
        } else {
            part.max(left)
        };
        let part = if left == 0 { 0 } else { part };
        spread += part;
        parts.push(part);
    }
    for (place, (set, part)) in active.into_iter().zip(parts).enumerate() {
        let rest = if place == 0 { change - spread } else { 0 };
        let replicas = (set.replicas() + part + rest).max(0);
        set.resize(replicas, size);
    }
}

/// The change in a ReplicaSet's size that keeps its proportion.
fn part(set: &ReplicaSetPlan<'_>, size: RolloutSize, present: i32) -> i32 {
    let replicas = set.replicas();
    if size.replicas == 0 {
        return -replicas;
    }
    let whole = annotation::max_replicas(&set.desired).filter(|&most| most > 0);
    let whole = whole.unwrap_or(present.into()).max(1);
    let scaled = i64::from(replicas) * i64::from(size.max_replicas());
    let rounded = (2 * scaled + whole) / (2 * whole);
    i32::try_from(rounded).unwrap_or(i32::MAX) - replicas
}
