//! A new template, a few nodes at a time.

use jiff::Timestamp;
use k8s_openapi::{
    api::{apps::v1::DaemonSetSpec, core::v1::Pod},
    apimachinery::pkg::util::intstr::IntOrString,
};

use super::{node::Place, pod::is_of};
use crate::workload::{Round, is_available, share, whole};

/// How many nodes may be without, or have one pod too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) unavailable: i32,
    pub(super) surge: i32,
}

impl Room {
    pub(super) fn of(spec: &DaemonSetSpec, desired: i32) -> Self {
        let strategy = spec.update_strategy.as_ref();
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.clone());
        let rolling = rolling.unwrap_or_default();
        let unavailable = rolling.max_unavailable.unwrap_or(IntOrString::Int(1));
        let surge = rolling.max_surge.unwrap_or(IntOrString::Int(0));
        Self {
            unavailable: share(&unavailable, desired, Round::Up),
            surge: share(&surge, desired, Round::Up),
        }
    }
}

pub(super) fn is_on_delete(spec: &DaemonSetSpec) -> bool {
    let strategy = spec.update_strategy.as_ref();
    strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("OnDelete")
}

/// Old pods that end now, and nodes that get a new one beside the old one.
#[derive(Debug, Default)]
pub(super) struct Steps<'a> {
    pub(super) delete: Vec<&'a Pod>,
    pub(super) create: Vec<String>,
}

/// What a node has.
struct Pair<'a> {
    /// Whether it would get a pod. One that would not loses the old pod that was left to it.
    starts: bool,
    new: Option<&'a Pod>,
    old: Option<&'a Pod>,
}

/// Finds the next steps towards pods of the revision with this hash.
pub(super) fn next<'a>(
    places: &[Place<'a>],
    hash: &str,
    min_ready: i32,
    room: Room,
    now: Timestamp,
) -> Steps<'a> {
    let works =
        |pod: Option<&Pod>| pod.is_some_and(|pod| is_available(pod, min_ready, now).is_ok());
    let pairs = places.iter().map(|place| {
        let pair = Pair {
            starts: place.starts,
            new: place.live().find(|pod| is_of(pod, hash)),
            old: place.live().find(|pod| !is_of(pod, hash)),
        };
        (place.node.clone(), pair)
    });
    if room.surge > 0 {
        surge(pairs, works, room.surge)
    } else {
        replace(pairs, works, room.unavailable)
    }
}

fn replace<'a>(
    pairs: impl Iterator<Item = (String, Pair<'a>)>,
    works: impl Fn(Option<&Pod>) -> bool,
    most: i32,
) -> Steps<'a> {
    let (mut missing, mut broken, mut sound) = (0, Vec::new(), Vec::new());
    for (_, pair) in pairs {
        if pair.starts && !works(pair.new.or(pair.old)) {
            missing += 1;
        }
        match (pair.new, pair.old) {
            (None, Some(old)) if works(Some(old)) => sound.push(old),
            // One that does not work is not missed.
            (None, Some(old)) => broken.push(old),
            _ => {}
        }
    }
    sound.truncate(usize::try_from(most - missing).unwrap_or(0));
    broken.extend(sound);
    Steps {
        delete: broken,
        create: Vec::new(),
    }
}

fn surge<'a>(
    pairs: impl Iterator<Item = (String, Pair<'a>)>,
    works: impl Fn(Option<&Pod>) -> bool,
    most: i32,
) -> Steps<'a> {
    let mut steps = Steps::default();
    let mut beside = 0;
    for (node, pair) in pairs {
        match (pair.new, pair.old) {
            (None, Some(old)) if !pair.starts => steps.delete.push(old),
            (None, Some(_)) => steps.create.push(node),
            (Some(_), Some(old)) if works(pair.new) || !works(Some(old)) => steps.delete.push(old),
            (Some(_), Some(_)) => beside += 1,
            (_, None) => {}
        }
    }
    let left = (most - beside - whole(steps.delete.len())).max(0);
    steps.create.truncate(usize::try_from(left).unwrap_or(0));
    steps
}
