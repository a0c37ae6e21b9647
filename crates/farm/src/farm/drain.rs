//! Drains: which workers get no new actions, and when they may be stopped. Pure.
//!
//! A worker is drained at the scheduler, and its pod may end when it has no running action or when the
//! bound has passed. What the scheduler says is believed only in answers that show the drain itself: an
//! answer from before the drain says nothing about the actions that a worker got since. A scheduler keeps
//! its drains in memory, so what an earlier answer said counts for nothing: a pod is released by the answer
//! of this very decision, and without an answer none is.
//!
//! A Deployment chooses itself which pods it deletes. [`deletable`] computes the same choice, and the
//! replicas are lowered only by pods that are drained. Pods that are about to be deleted stay marked,
//! because the Deployment would choose others instead.
//!
//! In a roll-out, pods of the former version stay drained until the last of them is gone: between the first
//! and the last, each could get an action and be stopped with it.
//!
//! Between the lowering and the deletion a scheduler can still restart and give a released worker an
//! action. From the deletion on the pod itself sees to it that nothing is lost: its worker takes no further
//! action and finishes those that it has, and its runner waits for that (`objects::workloads`).

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use crate::{api::DrainStatus, queue::QueueFacts};

/// The annotation by which a Deployment prefers the pods to delete.
pub const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
/// The cost of a pod that is drained.
pub const DRAINED_COST: &str = "-1000";
/// The time after which the scheduler has forgotten a worker that does not synchronize, and after which an
/// idle worker has synchronized after a restart.
const ABSENT_GRACE: SignedDuration = SignedDuration::from_secs(120);

/// A pod of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PodFacts {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Whether it has a node.
    pub assigned: bool,
    /// Whether its containers run.
    pub running: bool,
    /// Whether it is ready.
    pub ready: bool,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Whether its containers have ended for good.
    pub finished: bool,
    /// When it was created.
    pub created_at: Option<Timestamp>,
    /// Its cost of deletion.
    pub deletion_cost: i64,
    /// The version of the workload that it belongs to.
    pub revision: String,
    /// Why a container does not run, if one does not.
    pub trouble: Option<String>,
}

/// Why a worker is drained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DrainReason {
    /// The user keeps the pool from getting actions.
    Cordon,
    /// The scheduler is going to be restarted.
    SchedulerRestart,
    /// The scheduler or the storage is being deleted, and the pool stays.
    ComponentDeletion,
    /// The pods of the pool are going to be replaced.
    RollOut,
    /// The pool has more pods than it should.
    ScaleDown,
    /// The pool is being deleted.
    Deletion,
}

impl DrainReason {
    /// The reason in the status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cordon => "Cordon",
            Self::SchedulerRestart => "SchedulerRestart",
            Self::ComponentDeletion => "ComponentDeletion",
            Self::RollOut => "RollOut",
            Self::ScaleDown => "ScaleDown",
            Self::Deletion => "Deletion",
        }
    }
}

/// What a decision about the drains of a pool depends on.
#[derive(Debug, Clone)]
pub struct DrainFacts<'a> {
    /// The pods of the pool.
    pub pods: &'a [PodFacts],
    /// The replicas that the pool should have.
    pub wanted: i32,
    /// The replicas that its Deployment has.
    pub live: i32,
    /// The pods that its Deployment counts.
    pub existing: i32,
    /// Why all workers are drained, if they are.
    pub all: Option<DrainReason>,
    /// The version that replaces the pods of all others at this moment; none if no roll-out is in progress, or
    /// if it has failed and the former pods may be needed for long.
    pub replacing: Option<&'a str>,
    /// The drains so far.
    pub drains: &'a [DrainStatus],
    /// What the scheduler says; none if it was not asked or did not answer.
    pub queue: Option<&'a QueueFacts>,
    /// How long to wait for running actions.
    pub timeout: SignedDuration,
    /// The time.
    pub now: Timestamp,
}

/// A decision about the drains of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DrainDecision {
    /// The drains from now on.
    pub drains: Vec<DrainStatus>,
    /// Patterns that the scheduler has to be told.
    pub add: Vec<BTreeMap<String, String>>,
    /// Patterns that the scheduler has to forget.
    pub remove: Vec<BTreeMap<String, String>>,
    /// The replicas that the Deployment may have now.
    pub replicas: i32,
    /// Pods that are drained and are to be deleted first.
    pub mark: Vec<String>,
    /// Pods that are not to be deleted first any more.
    pub unmark: Vec<String>,
    /// Pods whose bound passed while actions ran.
    pub overdue: Vec<(String, u32)>,
    /// Whether every pod of the pool is released, or there is none.
    pub all_released: bool,
}

/// Whether the scheduler has to be asked: something is drained or has to be.
pub fn needs_queue(facts: &DrainFacts<'_>) -> bool {
    !facts.drains.is_empty() || !targets(facts).is_empty()
}

/// The next state of the drains.
pub fn decide(facts: &DrainFacts<'_>) -> DrainDecision {
    let targets = targets(facts);
    let mut decision = DrainDecision::default();
    for (name, reason) in &targets {
        let drain = advance(facts, name, *reason, &mut decision);
        decision.drains.push(drain);
    }
    for drain in facts.drains {
        if pod_of(drain).is_none_or(|name| !targets.contains_key(name)) {
            forget(facts, drain, &mut decision);
        }
    }
    let released: BTreeSet<_> = decision
        .drains
        .iter()
        .filter(|drain| drain.released && drain.reason != DrainReason::Cordon.as_str())
        .filter_map(pod_of)
        .map(str::to_owned)
        .collect();
    let alive: Vec<_> = alive(facts.pods).collect();
    decision.all_released = alive.iter().all(|pod| released.contains(&pod.name));
    let shrinking: BTreeSet<_> = released
        .iter()
        .filter(|name| {
            targets
                .get(*name)
                .is_some_and(|it| *it >= DrainReason::ScaleDown)
        })
        .cloned()
        .collect();
    decision.replicas = replicas(facts, &shrinking);
    let count = i32::try_from(alive.len()).unwrap_or(i32::MAX);
    // The Deployment may be choosing at this moment.
    let chooses = count.max(facts.existing) > decision.replicas.min(facts.live);
    for pod in &alive {
        let is_surplus = targets
            .get(&pod.name)
            .is_some_and(|it| *it >= DrainReason::ScaleDown);
        if shrinking.contains(&pod.name) && !is_marked(pod) {
            decision.mark.push(pod.name.clone());
        } else if !is_surplus && is_marked(pod) && !chooses {
            decision.unmark.push(pod.name.clone());
        }
    }
    decision
}

/// The pods that have to be drained.
fn targets(facts: &DrainFacts<'_>) -> BTreeMap<String, DrainReason> {
    let mut targets = BTreeMap::new();
    if let Some(reason) = facts.all {
        targets.extend(alive(facts.pods).map(|pod| (pod.name.clone(), reason)));
    }
    for pod in alive(facts.pods).filter(|pod| is_replaced(facts, pod)) {
        targets
            .entry(pod.name.clone())
            .or_insert(DrainReason::RollOut);
    }
    let count = alive(facts.pods).count();
    let wanted = usize::try_from(facts.wanted).unwrap_or(0);
    let surplus = count.saturating_sub(wanted);
    let drained: BTreeSet<_> = facts.drains.iter().filter_map(pod_of).collect();
    let mut pods: Vec<_> = alive(facts.pods).collect();
    pods.sort_by_key(|pod| {
        let is_kept = !is_replaced(facts, pod);
        let is_new = !drained.contains(&*pod.name);
        (is_kept, rank(pod), is_new, newest(pod))
    });
    for pod in pods.into_iter().take(surplus) {
        let reason = targets
            .entry(pod.name.clone())
            .or_insert(DrainReason::ScaleDown);
        *reason = (*reason).max(DrainReason::ScaleDown);
    }
    targets
}

/// Whether a roll-out replaces it. A pod without a version is not one of the Deployment's.
fn is_replaced(facts: &DrainFacts<'_>, pod: &PodFacts) -> bool {
    let replacing = facts.replacing;
    replacing.is_some_and(|revision| !pod.revision.is_empty() && pod.revision != revision)
}

/// Whether the Deployment deletes it before others.
fn is_marked(pod: &PodFacts) -> bool {
    pod.deletion_cost < 0
}

fn alive(pods: &[PodFacts]) -> impl Iterator<Item = &PodFacts> {
    pods.iter().filter(|pod| !pod.deleting && !pod.finished)
}

/// The order in which a ReplicaSet deletes pods, lowest first.
fn rank(pod: &PodFacts) -> (bool, bool, bool, i64) {
    (pod.assigned, pod.running, pod.ready, pod.deletion_cost)
}

/// Newer pods first.
fn newest(pod: &PodFacts) -> (i64, String) {
    let created = pod.created_at.map_or(0, Timestamp::as_second);
    (-created, pod.name.clone())
}

/// The pods that a Deployment may delete if it has `count` too many. Where equal ranks are cut, all pods of
/// that rank may be chosen. Each version has a ReplicaSet, and any of them may be the one that is lowered.
pub fn deletable(pods: &[PodFacts], count: usize) -> BTreeSet<String> {
    let mut versions: BTreeMap<&str, Vec<&PodFacts>> = BTreeMap::new();
    for pod in alive(pods) {
        versions.entry(&pod.revision).or_default().push(pod);
    }
    let chosen = versions.into_values();
    chosen.flat_map(|pods| deletable_of(pods, count)).collect()
}

/// The same for one ReplicaSet.
fn deletable_of(mut sorted: Vec<&PodFacts>, count: usize) -> BTreeSet<String> {
    sorted.sort_by_key(|pod| rank(pod));
    let Some(last) = count.checked_sub(1).and_then(|last| sorted.get(last)) else {
        return sorted
            .iter()
            .take(count)
            .map(|pod| pod.name.clone())
            .collect();
    };
    let limit = rank(last);
    let chosen = sorted.iter().take_while(|pod| rank(pod) <= limit);
    chosen.map(|pod| pod.name.clone()).collect()
}

/// The replicas by which the Deployment deletes only drained pods.
fn replicas(facts: &DrainFacts<'_>, released: &BTreeSet<String>) -> i32 {
    if facts.wanted >= facts.live {
        return facts.wanted;
    }
    let count = i32::try_from(alive(facts.pods).count()).unwrap_or(i32::MAX);
    // Pods that do not exist need no drain. The Deployment counts its pods too: if it knows of more than our
    // cache shows, some of them may be busy.
    let base = if count < facts.live && facts.existing != count {
        facts.live
    } else {
        count
    };
    let most = usize::try_from(count.saturating_sub(facts.wanted)).unwrap_or(0);
    let safe = (1..=most)
        .rev()
        .find(|surplus| deletable(facts.pods, *surplus).is_subset(released))
        .unwrap_or(0);
    let safe = i32::try_from(safe).unwrap_or(0);
    base.saturating_sub(safe).min(facts.live).max(facts.wanted)
}

fn pod_of(drain: &DrainStatus) -> Option<&str> {
    drain.pattern.get("pod").map(String::as_str)
}

fn advance(
    facts: &DrainFacts<'_>,
    name: &str,
    reason: DrainReason,
    decision: &mut DrainDecision,
) -> DrainStatus {
    let pattern = BTreeMap::from([("pod".to_owned(), name.to_owned())]);
    let known = facts.drains.iter().find(|drain| drain.pattern == pattern);
    let mut drain = known.cloned().unwrap_or_else(|| DrainStatus {
        pattern: pattern.clone(),
        since: Some(facts.now),
        ..DrainStatus::default()
    });
    let was_cordon = drain.reason == DrainReason::Cordon.as_str();
    reason.as_str().clone_into(&mut drain.reason);
    if reason == DrainReason::Cordon {
        drain.deadline = None;
    } else if drain.deadline.is_none() || was_cordon {
        drain.deadline = facts.now.checked_add(facts.timeout).ok();
    }
    drain.released = false;
    let Some(queue) = facts.queue else {
        // The first time the status is written before the scheduler is told, and a scheduler that does not
        // answer is asked again. It may have been restarted when it does.
        drain.applied_at = None;
        decision.add.push(pattern);
        return expire(facts, name, drain, decision);
    };
    if queue.unknown {
        // No worker has registered since the scheduler started. What was counted before it did is void.
        if drain.running.take().is_some() {
            drain.applied_at = None;
        }
        let since = *drain.applied_at.get_or_insert(facts.now);
        drain.released = is_absent(facts, name, since);
        return expire(facts, name, drain, decision);
    }
    if !queue.drains.contains(&pattern) {
        // New, or the scheduler was restarted and has lost it.
        drain.applied_at = None;
        decision.add.push(pattern);
        return expire(facts, name, drain, decision);
    }
    let applied_at = *drain.applied_at.get_or_insert(facts.now);
    let matching = queue.workers.iter();
    let matching: Vec<_> = matching
        .filter(|worker| worker.id.get("pod").is_some_and(|pod| pod == name))
        .collect();
    let running = matching.iter().filter(|worker| worker.executing).count();
    drain.running = Some(u32::try_from(running).unwrap_or(u32::MAX));
    let confirmed = if matching.is_empty() {
        is_absent(facts, name, applied_at)
    } else {
        matching.iter().all(|worker| worker.drained)
    };
    drain.released = confirmed && running == 0;
    expire(facts, name, drain, decision)
}

/// Whether a worker that the scheduler does not list has no action.
fn is_absent(facts: &DrainFacts<'_>, name: &str, since: Timestamp) -> bool {
    facts.now.duration_since(since) >= ABSENT_GRACE || never_started(facts, name)
}

/// A pod whose containers have never run has no action.
fn never_started(facts: &DrainFacts<'_>, name: &str) -> bool {
    let pod = facts.pods.iter().find(|pod| pod.name == name);
    pod.is_some_and(|pod| !pod.running && !pod.ready)
}

fn expire(
    facts: &DrainFacts<'_>,
    name: &str,
    mut drain: DrainStatus,
    decision: &mut DrainDecision,
) -> DrainStatus {
    let due = drain.deadline.is_some_and(|deadline| facts.now >= deadline);
    if due && !drain.released {
        let running = drain.running.unwrap_or(0);
        decision.overdue.push((name.to_owned(), running));
        drain.released = true;
    }
    drain
}

/// A drain that is not needed any more stays in the status until the scheduler has forgotten it.
fn forget(facts: &DrainFacts<'_>, drain: &DrainStatus, decision: &mut DrainDecision) {
    // A pod that is being deleted still finishes what it has, and one that is marked may be deleted at any
    // moment. Neither must get anything new.
    let may_end = |name: &str| {
        let pod = facts.pods.iter().find(|pod| pod.name == name);
        pod.is_some_and(|pod| pod.deleting || !pod.finished && is_marked(pod))
    };
    let listed = |queue: &QueueFacts| queue.drains.contains(&drain.pattern);
    if pod_of(drain).is_some_and(may_end) {
        decision.drains.push(drain.clone());
        if facts.queue.is_some_and(|it| !it.unknown && !listed(it)) {
            decision.add.push(drain.pattern.clone());
        }
        return;
    }
    match facts.queue {
        Some(queue) if listed(queue) => {
            decision.remove.push(drain.pattern.clone());
            decision.drains.push(drain.clone());
        }
        Some(_) => {}
        None => decision.drains.push(drain.clone()),
    }
}
