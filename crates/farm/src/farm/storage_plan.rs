//! Changes of the shards: what moves, whether it is safe, and in which stages it happens. Pure.
//!
//! New shards start first; then clients use the new shards and read from the former where a blob is
//! missing, for a window in which what is in use is copied; then they use only the new shards, and those
//! that are not used any more are stopped. A change that loses data is not started unless its exact plan was
//! acknowledged.

#[cfg(test)]
mod tests;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use neap_kit::event::EventDraft;

use super::objects::hash_of;
use crate::{
    api::{
        BuildbarnStorageSpec, ReshardingStage, ReshardingStatus, Shard, StoragePlanStatus,
        StorageStatus,
    },
    configuration::geometry,
    sharding::moved_share,
};

const DEFAULT_WINDOW_SECONDS: i64 = 86_400;
/// A change that moves more is a flush rather than a change.
const MAX_SAFE_SHARE: f64 = 0.5;

/// What a decision about the shards depends on.
#[derive(Debug, Clone)]
pub struct StorageFacts<'a> {
    /// The recorded state.
    pub status: Option<&'a StorageStatus>,
    /// The spec.
    pub spec: &'a BuildbarnStorageSpec,
    /// The shards that the spec asks for.
    pub wanted: Vec<Shard>,
    /// Whether all shards that should run are ready with their configuration.
    pub storage_settled: bool,
    /// Whether all components are ready with their configuration.
    pub farm_settled: bool,
    /// The time.
    pub now: Timestamp,
}

/// A decision about the shards.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StorageDecision {
    /// The state from now on.
    pub status: StorageStatus,
    /// Why the spec is not carried out.
    pub refused: Option<String>,
    /// Events.
    pub events: Vec<EventDraft>,
    /// When something changes by itself.
    pub requeue_after: Option<Duration>,
}

/// The hash of the sizes and blocks of all stores. A store whose sizes change is empty. The hash is recorded,
/// so the text that is hashed must not change: every storage would ask for an acknowledgement.
pub fn geometry_hash(spec: &BuildbarnStorageSpec) -> String {
    let stores = ["cas", "ac", "fsac"].map(|store| match geometry(spec, store) {
        Some(it) => format!(
            "{store} {} {} {} {} {} {}",
            it.size,
            it.index_size,
            it.old_blocks,
            it.current_blocks,
            it.new_blocks,
            it.spare_blocks
        ),
        None => format!("{store} none"),
    });
    hash_of(stores.join("\n"))
}

/// The next state of the shards.
pub fn decide(facts: &StorageFacts<'_>) -> StorageDecision {
    let wanted_geometry = geometry_hash(facts.spec);
    let recorded = facts.status.filter(|status| !status.shards.is_empty());
    let Some(status) = recorded else {
        let status = StorageStatus {
            shards: facts.wanted.clone(),
            geometry: Some(wanted_geometry),
            ..StorageStatus::default()
        };
        return StorageDecision {
            status,
            ..StorageDecision::default()
        };
    };
    if let Some(change) = &status.resharding {
        return advance(facts, status, change);
    }
    // The user's own configuration has its own sizes, and its replicas are shards all the same.
    let same_geometry = facts.spec.config_map_name.is_some()
        || status
            .geometry
            .as_ref()
            .is_none_or(|it| *it == wanted_geometry);
    if status.shards == facts.wanted && same_geometry {
        let status = StorageStatus {
            geometry: Some(wanted_geometry),
            plan: None,
            ..status.clone()
        };
        return StorageDecision {
            status,
            ..StorageDecision::default()
        };
    }
    begin(facts, status, &wanted_geometry, same_geometry)
}

/// The plan of a change that has not begun.
pub fn plan(
    from: &[Shard],
    spec: &BuildbarnStorageSpec,
    wanted: &[Shard],
    same_geometry: bool,
) -> StoragePlanStatus {
    let reordered = from.iter().enumerate().any(|(at, shard)| {
        let after = wanted.iter().position(|it| it.key == shard.key);
        after.is_some_and(|after| after != at)
    });
    let share = if reordered {
        1.0
    } else {
        moved_share(from, wanted)
    };
    let mut dangers = Vec::new();
    if !same_geometry {
        dangers.push("the sizes or blocks of a store change, which empties it on every shard");
    }
    if reordered {
        dangers.push("a shard's key moves to another replica");
    }
    if wanted.len() < from.len() {
        dangers.push("shards are removed, and what is not used within the window is lost");
    }
    if share > MAX_SAFE_SHARE {
        dangers.push(
            "most keys move, so most of the cache is lost unless it is used within the window",
        );
    }
    if window(spec) == 0 && share > 0.0 {
        dangers.push("there is no window in which blobs are copied");
    }
    let moved_percent = format!("{:.1}", share * 100.0);
    let mut summary = format!(
        "{} shards become {}; {moved_percent} % of the keys move",
        from.len(),
        wanted.len()
    );
    for danger in &dangers {
        summary.push_str("; ");
        summary.push_str(danger);
    }
    let stores = geometry_hash(spec);
    StoragePlanStatus {
        id: hash_of(format!("{from:?} {wanted:?} {stores} {}", window(spec))),
        summary,
        moved_percent,
        safe: dangers.is_empty(),
    }
}

fn window(spec: &BuildbarnStorageSpec) -> i64 {
    let set = spec.resharding.as_ref().and_then(|it| it.window_seconds);
    set.unwrap_or(DEFAULT_WINDOW_SECONDS)
}

fn begin(
    facts: &StorageFacts<'_>,
    status: &StorageStatus,
    wanted_geometry: &str,
    same_geometry: bool,
) -> StorageDecision {
    let plan = plan(&status.shards, facts.spec, &facts.wanted, same_geometry);
    let acknowledged = facts.spec.acknowledged_plan.as_deref() == Some(&*plan.id);
    if !plan.safe && !acknowledged {
        let id = &plan.id;
        let message = format!(
            "{}; nothing was changed. To go ahead, set spec.acknowledgedPlan to {id:?}; to keep the \
             data, undo the change",
            plan.summary
        );
        return StorageDecision {
            refused: Some(message),
            status: StorageStatus {
                plan: Some(plan),
                ..status.clone()
            },
            ..StorageDecision::default()
        };
    }
    let event = EventDraft::normal("ReshardingStarted", plan.summary.clone());
    let resharding = (status.shards != facts.wanted).then(|| ReshardingStatus {
        from: status.shards.clone(),
        to: facts.wanted.clone(),
        stage: ReshardingStage::Provisioning,
        since: Some(facts.now),
        moved_percent: plan.moved_percent.clone(),
    });
    StorageDecision {
        status: StorageStatus {
            shards: status.shards.clone(),
            geometry: Some(wanted_geometry.to_owned()),
            resharding,
            plan: None,
        },
        events: vec![event],
        ..StorageDecision::default()
    }
}

fn advance(
    facts: &StorageFacts<'_>,
    status: &StorageStatus,
    change: &ReshardingStatus,
) -> StorageDecision {
    let mut next = status.clone();
    let mut decision = StorageDecision::default();
    let enter = |stage, since, next: &mut StorageStatus| {
        next.resharding = Some(ReshardingStatus {
            stage,
            since,
            ..change.clone()
        });
    };
    match change.stage {
        // Nothing has moved yet, so the change can be taken back.
        ReshardingStage::Provisioning if facts.wanted == change.from => next.resharding = None,
        ReshardingStage::Provisioning if facts.storage_settled => {
            next.shards.clone_from(&change.to);
            let stage = if window(facts.spec) > 0 {
                ReshardingStage::Copying
            } else {
                ReshardingStage::Finishing
            };
            enter(stage, None, &mut next);
        }
        ReshardingStage::Copying => match change.since {
            // The window begins when the last client has the new configuration.
            None if facts.farm_settled => {
                enter(ReshardingStage::Copying, Some(facts.now), &mut next);
            }
            Some(since) => {
                let window = SignedDuration::from_secs(window(facts.spec));
                let left = since
                    .checked_add(window)
                    .unwrap_or(since)
                    .duration_since(facts.now);
                if left > SignedDuration::ZERO {
                    decision.requeue_after = Duration::try_from(left).ok();
                } else {
                    enter(ReshardingStage::Finishing, None, &mut next);
                }
            }
            None => {}
        },
        ReshardingStage::Finishing if facts.farm_settled => {
            next.resharding = None;
            let message = format!("clients use {} shards", change.to.len());
            decision
                .events
                .push(EventDraft::normal("ReshardingFinished", message));
        }
        _ => {}
    }
    if next.resharding.is_some() && facts.wanted != change.to && facts.wanted != change.from {
        next.plan = None;
        decision.refused = Some(
            "the shards are being changed already; the spec is looked at again when that is over"
                .to_owned(),
        );
    }
    decision.status = next;
    decision
}
