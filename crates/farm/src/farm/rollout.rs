//! Roll-outs: which component may be changed now. Pure.
//!
//! The order is that of the kinds, and of the names within a kind. A component is changed when all before it
//! are ready with their newest configuration, so a change that does not work stops at the first component
//! that it breaks.

#[cfg(test)]
mod tests;

use jiff::{SignedDuration, Timestamp};
use kube::api::DynamicObject;
use serde_json::Value;

use super::{objects::PROGRESS_DEADLINE_SECONDS, pool_queue::PoolQueue};
use crate::api::{ANNOTATION_REVISION, RolloutStatus};

/// The state of a workload in relation to what it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It does not exist.
    Missing,
    /// It has another version than it should have.
    Outdated,
    /// It has the right version, and not all of its pods are ready.
    Progressing,
    /// All of its pods are ready and have the right version.
    Settled,
}

/// What is observed of a workload.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LiveWorkload {
    /// The version that was applied.
    pub revision: String,
    /// The replicas that it should have.
    pub replicas: i32,
    /// The pods that exist.
    pub existing: i32,
    /// The ready pods.
    pub ready: i32,
    /// The pods of the right version.
    pub updated: i32,
    /// Whether its controller has seen its newest version.
    pub observed: bool,
    /// Whether its controller reports that it does not progress.
    pub stuck: bool,
    /// The queue in which its workers are, if it is a pool.
    pub queue: Option<PoolQueue>,
}

impl LiveWorkload {
    /// What a Deployment or StatefulSet shows.
    pub fn of(object: &DynamicObject) -> Self {
        let number = |path: &str| {
            let found = object.data.pointer(path).and_then(Value::as_i64);
            i32::try_from(found.unwrap_or(0)).unwrap_or(i32::MAX)
        };
        let annotations = object.metadata.annotations.as_ref();
        let revision = annotations.and_then(|it| it.get(ANNOTATION_REVISION));
        let observed = object.data.pointer("/status/observedGeneration");
        let observed = observed.and_then(Value::as_i64).unwrap_or(0);
        let conditions = object.data.pointer("/status/conditions");
        let mut conditions = conditions.and_then(Value::as_array).into_iter().flatten();
        let stuck = conditions.any(|it| it["type"] == "Progressing" && it["status"] == "False");
        Self {
            revision: revision.cloned().unwrap_or_default(),
            replicas: number("/spec/replicas"),
            existing: number("/status/replicas"),
            ready: number("/status/readyReplicas"),
            updated: number("/status/updatedReplicas"),
            observed: observed >= object.metadata.generation.unwrap_or(0),
            stuck,
            queue: PoolQueue::recorded(object),
        }
    }

    /// Whether no pod has another version: what only readers of the old configuration need may go.
    pub fn is_replaced(&self, revision: &str) -> bool {
        self.revision == revision && self.observed && self.updated >= self.existing
    }

    /// The phase, if it should have this version and number of replicas.
    pub fn phase(&self, revision: &str, replicas: i32) -> Phase {
        if self.revision != revision {
            return Phase::Outdated;
        }
        let counts = [self.replicas, self.existing, self.ready, self.updated];
        if self.observed && counts.iter().all(|count| *count == replicas) {
            Phase::Settled
        } else {
            Phase::Progressing
        }
    }
}

/// The record of the roll-out of a component: what is being rolled out, and since when.
pub fn record(
    before: Option<&RolloutStatus>,
    revision: &str,
    phase: Phase,
    live: Option<&LiveWorkload>,
    now: Timestamp,
) -> Option<RolloutStatus> {
    if phase == Phase::Settled {
        return None;
    }
    let same = before.filter(|it| it.revision == revision && it.started_at.is_some());
    let mut rollout = same.cloned().unwrap_or_else(|| RolloutStatus {
        revision: revision.to_owned(),
        ..RolloutStatus::default()
    });
    if phase == Phase::Progressing {
        let started_at = *rollout.started_at.get_or_insert(now);
        let limit = SignedDuration::from_secs(PROGRESS_DEADLINE_SECONDS);
        let late = now.duration_since(started_at) >= limit;
        rollout.failed = late || live.is_some_and(|live| live.stuck);
    }
    Some(rollout)
}

/// The time that a roll-out has left until it counts as failed.
pub fn time_left(rollout: &RolloutStatus, now: Timestamp) -> Option<SignedDuration> {
    let started_at = rollout.started_at.filter(|_| !rollout.failed)?;
    let limit = SignedDuration::from_secs(PROGRESS_DEADLINE_SECONDS);
    let end = started_at.checked_add(limit).ok()?;
    Some(end.duration_since(now).max(SignedDuration::ZERO))
}
