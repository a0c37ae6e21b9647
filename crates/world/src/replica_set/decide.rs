//! Which pods to create and which to delete. Pure.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::{ReplicaSet, ReplicaSetSpec, ReplicaSetStatus},
    core::v1::Pod,
};
use kube::ResourceExt;
use neap_kit::planted;

use crate::workload::{
    claim, from_template, has_ended, is_active, is_available, is_ready, nonzero, owned_by, phase,
    ready_since, suffix, to_i32,
};

/// The annotation with which users rank pods for deletion.
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
/// The maximum number of pods created or deleted in one reconcile.
const BURST_REPLICAS: usize = 500;

#[derive(Debug)]
pub(super) struct Facts<'a> {
    pub(super) set: &'a ReplicaSet,
    /// The pods of its namespace that it controls, and the orphans.
    pub(super) pods: Vec<&'a Pod>,
    pub(super) now: Timestamp,
}

#[derive(Debug, Default)]
pub(super) struct Decision<'a> {
    pub(super) adopt: Vec<&'a Pod>,
    pub(super) release: Vec<&'a Pod>,
    pub(super) create: Vec<Pod>,
    pub(super) delete: Vec<&'a Pod>,
    pub(super) status: ReplicaSetStatus,
    /// The time until a pod becomes available, which no watch reports.
    pub(super) requeue_after: Option<Duration>,
}

pub(super) fn decide<'a>(facts: &Facts<'a>) -> Decision<'a> {
    let set = facts.set;
    let Some(spec) = &set.spec else {
        return Decision::default();
    };
    let leaving = set.metadata.deletion_timestamp.is_some();
    let uid = set.uid().unwrap_or_default();
    let mut claims = claim(&facts.pods, &uid, &spec.selector, leaving);
    // A pod that has ended would not count, and would be withheld from an owner it might belong to.
    claims.adopt.retain(|pod| is_active(pod));
    let mut own = claims.owned;
    own.extend(&claims.adopt);
    let active: Vec<&Pod> = own.iter().copied().filter(|pod| is_active(pod)).collect();
    let terminating = own.iter().filter(|pod| is_terminating(pod)).count();
    let (mut status, requeue_after) = status(set, spec, &active, facts.now);
    status.terminating_replicas = Some(to_i32(terminating));
    let mut decision = Decision {
        adopt: claims.adopt,
        release: claims.release,
        status,
        requeue_after,
        ..Decision::default()
    };
    planted!(DoneByGeneration => {
        let observed = set.status.as_ref().and_then(|it| it.observed_generation);
        if observed == set.metadata.generation {
            return decision;
        }
    });
    if leaving {
        return decision;
    }
    let wanted = usize::try_from(spec.replicas.unwrap_or(1)).unwrap_or(0);
    if active.len() < wanted {
        let missing = (wanted - active.len()).min(BURST_REPLICAS);
        decision.create = replicas(set, spec, &facts.pods, missing);
    } else {
        let surplus = (active.len() - wanted).min(BURST_REPLICAS);
        decision.delete = deletion_order(active);
        decision.delete.truncate(surplus);
    }
    decision
}

/// New pods under the first free names.
fn replicas(set: &ReplicaSet, spec: &ReplicaSetSpec, pods: &[&Pod], count: usize) -> Vec<Pod> {
    let (Some(template), Some(owner)) = (&spec.template, owned_by(set)) else {
        return Vec::new();
    };
    let namespace = set.namespace().unwrap_or_default();
    let uid = set.uid().unwrap_or_default();
    let base = format!("{}-", set.name_any());
    // The prefix is shortened to leave space for the suffix.
    let short: String = base.chars().take(58).collect();
    let names = (0..).map(|number: u64| format!("{short}{}", suffix(&[&uid, &number.to_string()])));
    let taken = pods.iter().filter_map(|pod| pod.metadata.name.as_deref());
    let taken: HashSet<&str> = taken.collect();
    let free = names.filter(|name| !taken.contains(name.as_str()));
    let pods = free.take(count).map(|name| {
        let mut pod = from_template(template, &namespace, name, owner.clone());
        pod.metadata.generate_name = Some(base.clone());
        planted!(ServerNames => pod.metadata.name = None);
        pod
    });
    pods.collect()
}

/// The pods in the order in which they are deleted.
fn deletion_order(mut pods: Vec<&Pod>) -> Vec<&Pod> {
    let mut on_node: HashMap<&str, usize> = HashMap::new();
    for pod in &pods {
        *on_node.entry(node(pod)).or_default() += 1;
    }
    pods.sort_by_cached_key(|pod| {
        let progress = match phase(pod) {
            "Pending" => 0,
            "Unknown" => 1,
            _ => 2,
        };
        let later = |time: Option<Timestamp>| {
            std::cmp::Reverse(time.map_or(i64::MAX, Timestamp::as_second))
        };
        (
            !node(pod).is_empty(),
            progress,
            is_ready(pod),
            deletion_cost(pod),
            std::cmp::Reverse(on_node[node(pod)]),
            later(ready_since(pod)),
            std::cmp::Reverse(restarts(pod)),
            later(pod.creation_timestamp().map(|time| time.0)),
            pod.name_any(),
        )
    });
    pods
}

/// Whether the pod was deleted and has not ended yet.
fn is_terminating(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some() && !has_ended(pod)
}

fn node(pod: &Pod) -> &str {
    let spec = pod.spec.as_ref();
    spec.and_then(|spec| spec.node_name.as_deref())
        .unwrap_or_default()
}

fn deletion_cost(pod: &Pod) -> i32 {
    let cost = pod.annotations().get(DELETION_COST);
    cost.and_then(|cost| cost.parse().ok()).unwrap_or(0)
}

fn restarts(pod: &Pod) -> i32 {
    let statuses = pod
        .status
        .iter()
        .flat_map(|status| status.container_statuses.iter().flatten());
    statuses
        .map(|container| container.restart_count)
        .max()
        .unwrap_or(0)
}

fn status(
    set: &ReplicaSet,
    spec: &ReplicaSetSpec,
    active: &[&Pod],
    now: Timestamp,
) -> (ReplicaSetStatus, Option<Duration>) {
    let template = spec
        .template
        .as_ref()
        .and_then(|template| template.metadata.as_ref());
    let labels = template
        .and_then(|meta| meta.labels.clone())
        .unwrap_or_default();
    let has_all = |pod: &&&Pod| {
        labels
            .iter()
            .all(|(key, value)| pod.labels().get(key) == Some(value))
    };
    let (mut available, mut requeue_after) = (0, None::<Duration>);
    for pod in active {
        match is_available(pod, spec.min_ready_seconds.unwrap_or(0), now) {
            Ok(()) => available += 1,
            Err(Some(left)) => {
                requeue_after = Some(requeue_after.map_or(left, |soonest| soonest.min(left)));
            }
            Err(None) => {}
        }
    }
    let former = set.status.as_ref();
    let status = ReplicaSetStatus {
        replicas: to_i32(active.len()),
        fully_labeled_replicas: nonzero(to_i32(active.iter().filter(has_all).count())),
        ready_replicas: nonzero(to_i32(active.iter().filter(|pod| is_ready(pod)).count())),
        available_replicas: nonzero(available),
        terminating_replicas: None,
        observed_generation: set.metadata.generation,
        conditions: former.and_then(|status| status.conditions.clone()),
    };
    (status, requeue_after)
}
