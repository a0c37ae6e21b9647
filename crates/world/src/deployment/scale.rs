//! Another wished number, spread over the sets there are.

use std::cmp::Reverse;

use super::{
    annotation,
    sets::{Set, Sets},
    size::Size,
};

/// Whether some set got its size when another number was wished for.
pub(super) fn is_due(sets: &Sets<'_>, size: Size) -> bool {
    let wanted = i64::from(size.replicas);
    let mut active = sets.all().filter(|set| set.replicas() > 0);
    active.any(|set| annotation::desired(&set.goal).is_some_and(|desired| desired != wanted))
}

/// Gives the sets sizes that add up to what is wished for. `present` is how many pods there are.
pub(super) fn scale(sets: &mut Sets<'_>, size: Size, present: i32, is_recreate: bool) {
    if let Some(only) = active_or_latest(sets) {
        only.resize(size.replicas, size);
    } else if is_saturated(sets, size) {
        let old = sets.old.iter_mut().filter(|set| set.replicas() > 0);
        old.for_each(|set| set.resize(0, size));
    } else if !is_recreate {
        in_proportion(sets, size, present);
    }
}

/// The set that has all the pods, or will have them if there is none.
fn active_or_latest<'s, 'a>(sets: &'s mut Sets<'a>) -> Option<&'s mut Set<'a>> {
    match sets.all().filter(|set| set.replicas() > 0).count() {
        0 => sets.new.as_mut().or(sets.old.last_mut()),
        1 => sets.all_mut().find(|set| set.replicas() > 0),
        _ => None,
    }
}

fn is_saturated(sets: &Sets<'_>, size: Size) -> bool {
    sets.new.as_ref().is_some_and(|new| {
        new.replicas() == size.replicas
            && new.available() == size.replicas
            && annotation::desired(&new.goal) == Some(size.replicas.into())
    })
}

/// Each set keeps its part of the whole, so that a bad template does not get more of it.
fn in_proportion(sets: &mut Sets<'_>, size: Size, present: i32) {
    let mut active: Vec<_> = sets.all_mut().filter(|set| set.replicas() > 0).collect();
    let total: i32 = active.iter().map(|set| set.replicas()).sum();
    let allowed = if size.replicas > 0 { size.most() } else { 0 };
    let change = allowed - total;
    if change > 0 {
        active.sort_by_key(|set| (Reverse(set.replicas()), Reverse(set.made_at())));
    } else {
        active.sort_by_key(|set| (Reverse(set.replicas()), set.made_at()));
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

/// By how much a set would change if it kept its part of the whole.
fn part(set: &Set<'_>, size: Size, present: i32) -> i32 {
    let replicas = set.replicas();
    if size.replicas == 0 {
        return -replicas;
    }
    let whole = annotation::most(&set.goal).filter(|&most| most > 0);
    let whole = whole.unwrap_or(present.into()).max(1);
    let scaled = i64::from(replicas) * i64::from(size.most());
    let rounded = (2 * scaled + whole) / (2 * whole);
    i32::try_from(rounded).unwrap_or(i32::MAX) - replicas
}
