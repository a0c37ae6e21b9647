//! From the former sets to the new one, as far as the strategy allows now.

use std::collections::BTreeSet;

use kube::ResourceExt;

use super::{
    sets::{Set, Sets},
    size::Size,
};

/// Grows the new set, or else shrinks old ones. What became of the one decides about the other, so
/// only one of them happens at a time.
pub(super) fn rolling(sets: &mut Sets<'_>, size: Size) {
    if !grow(sets, size) {
        shrink(sets, size);
    }
}

fn grow(sets: &mut Sets<'_>, size: Size) -> bool {
    let room = size.most() - sets.replicas();
    let Some(new) = &mut sets.new else {
        return false;
    };
    let replicas = new.replicas();
    let wanted = if replicas > size.replicas {
        size.replicas
    } else {
        replicas + room.clamp(0, size.replicas - replicas)
    };
    // A set that is made in this pass is made in its size, and leaves the pass going.
    let changes = wanted != replicas;
    if changes {
        new.resize(wanted, size);
    }
    changes && new.live.is_some()
}

fn shrink(sets: &mut Sets<'_>, size: Size) {
    let not_yet = |set: &Set<'_>| set.replicas() - set.available();
    let unavailable = sets.new.as_ref().map_or(0, not_yet);
    let most = sets.replicas() - size.fewest() - unavailable;
    if most <= 0 {
        return;
    }
    // Pods that do not work are not missed.
    let mut left = most;
    for set in &mut sets.old {
        let broken = (set.replicas() - set.available()).clamp(0, left);
        if broken > 0 {
            left -= broken;
            set.resize(set.replicas() - broken, size);
        }
    }
    let mut left = sets.available() - size.fewest();
    for set in &mut sets.old {
        let surplus = left.clamp(0, set.replicas());
        if surplus > 0 {
            left -= surplus;
            set.resize(set.replicas() - surplus, size);
        }
    }
}

/// Empties the old sets; whether the new one may have pods: none of the old ones' is left.
/// `busy` are the uids of sets that have pods which have not ended.
pub(super) fn emptied(sets: &mut Sets<'_>, busy: &BTreeSet<String>, size: Size) -> bool {
    let mut emptied = true;
    for set in &mut sets.old {
        if set.replicas() > 0 {
            set.resize(0, size);
            emptied = false;
        }
        let pods = set.status().replicas > 0;
        emptied &= !pods && !busy.contains(&set.goal.uid().unwrap_or_default());
    }
    emptied
}

/// Gives the new set its full size.
pub(super) fn fill(sets: &mut Sets<'_>, size: Size) {
    if let Some(new) = &mut sets.new
        && new.replicas() != size.replicas
    {
        new.resize(size.replicas, size);
    }
}
