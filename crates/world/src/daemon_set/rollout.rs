//! Rolls out a new template, a few nodes at a time.

use jiff::Timestamp;
use k8s_openapi::{
    api::{apps::v1::DaemonSetSpec, core::v1::Pod},
    apimachinery::pkg::util::intstr::IntOrString,
};

use super::{node::NodePods, pod::is_of};
use crate::workload::{Round, is_available, scaled_value, to_i32};

/// The number of nodes whose pod may be unavailable, or that may have a second pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RollingUpdateLimits {
    pub(super) unavailable: i32,
    pub(super) surge: i32,
}

impl RollingUpdateLimits {
    pub(super) fn of(spec: &DaemonSetSpec, desired: i32) -> Self {
        let strategy = spec.update_strategy.as_ref();
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.clone());
        let rolling = rolling.unwrap_or_default();
        let unavailable = rolling.max_unavailable.unwrap_or(IntOrString::Int(1));
        let surge = rolling.max_surge.unwrap_or(IntOrString::Int(0));
        Self {
            unavailable: scaled_value(&unavailable, desired, Round::Up),
            surge: scaled_value(&surge, desired, Round::Up),
        }
    }
}

pub(super) fn is_on_delete(spec: &DaemonSetSpec) -> bool {
    let strategy = spec.update_strategy.as_ref();
    strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("OnDelete")
}

/// Old pods to delete now, and nodes that get a new pod beside the old one.
#[derive(Debug, Default)]
pub(super) struct RolloutSteps<'a> {
    pub(super) delete: Vec<&'a Pod>,
    pub(super) create: Vec<String>,
}

/// The pods of one node.
struct OldAndNew<'a> {
    /// Whether the node should get a pod. If not, its remaining old pod is deleted.
    should_run: bool,
    new: Option<&'a Pod>,
    old: Option<&'a Pod>,
}

/// The next steps towards pods of the revision with this hash.
pub(super) fn next<'a>(
    pods_by_node: &[NodePods<'a>],
    hash: &str,
    min_ready: i32,
    limits: RollingUpdateLimits,
    now: Timestamp,
) -> RolloutSteps<'a> {
    let works =
        |pod: Option<&Pod>| pod.is_some_and(|pod| is_available(pod, min_ready, now).is_ok());
    let pairs = pods_by_node.iter().map(|node_pods| {
        let pair = OldAndNew {
            should_run: node_pods.should_run,
            new: node_pods.live().find(|pod| is_of(pod, hash)),
            old: node_pods.live().find(|pod| !is_of(pod, hash)),
        };
        (node_pods.node.clone(), pair)
    });
    if limits.surge > 0 {
        surge(pairs, works, limits.surge)
    } else {
        replace(pairs, works, limits.unavailable)
    }
}

fn replace<'a>(
    pairs: impl Iterator<Item = (String, OldAndNew<'a>)>,
    works: impl Fn(Option<&Pod>) -> bool,
    most: i32,
) -> RolloutSteps<'a> {
    let (mut missing, mut broken, mut sound) = (0, Vec::new(), Vec::new());
    for (_, pair) in pairs {
        if pair.should_run && !works(pair.new.or(pair.old)) {
            missing += 1;
        }
        match (pair.new, pair.old) {
            (None, Some(old)) if works(Some(old)) => sound.push(old),
            // An unavailable pod does not count against the limit.
            (None, Some(old)) => broken.push(old),
            _ => {}
        }
    }
    sound.truncate(usize::try_from(most - missing).unwrap_or(0));
    broken.extend(sound);
    RolloutSteps {
        delete: broken,
        create: Vec::new(),
    }
}

fn surge<'a>(
    pairs: impl Iterator<Item = (String, OldAndNew<'a>)>,
    works: impl Fn(Option<&Pod>) -> bool,
    most: i32,
) -> RolloutSteps<'a> {
    let mut steps = RolloutSteps::default();
    let mut beside = 0;
    for (node, pair) in pairs {
        match (pair.new, pair.old) {
            (None, Some(old)) if !pair.should_run => steps.delete.push(old),
            (None, Some(_)) => steps.create.push(node),
            (Some(_), Some(old)) if works(pair.new) || !works(Some(old)) => steps.delete.push(old),
            (Some(_), Some(_)) => beside += 1,
            (_, None) => {}
        }
    }
    let left = (most - beside - to_i32(steps.delete.len())).max(0);
    steps.create.truncate(usize::try_from(left).unwrap_or(0));
    steps
}
