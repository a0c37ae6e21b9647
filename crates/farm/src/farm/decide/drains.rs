//! The drains of all pools of a farm: why each is drained, and what its scheduler is asked and told.

use std::collections::BTreeMap;

use jiff::SignedDuration;

use super::{DRAIN_POLL_INTERVAL, Decision, DrainChange, Inquiry, Member, deletion::Leaving};
use crate::farm::{
    drain::{self, DrainDecision, DrainFacts, DrainReason},
    facts::FarmFacts,
    pool_queue::PoolQueue,
    rollout::Phase,
    settings,
};

/// Decides the drains of all pools.
#[expect(
    clippy::too_many_lines,
    reason = "the facts of a drain, and what follows for the farm"
)]
pub(super) fn decide(
    facts: &FarmFacts,
    members: &mut [Member<'_>],
    leaving: &Leaving,
    decision: &mut Decision,
) {
    for member in members {
        let component = member.component;
        let Some(worker) = component.worker() else {
            continue;
        };
        let recorded = member.live.as_ref().and_then(|live| live.queue.clone());
        let pool = PoolQueue::of_workers(recorded, &facts.components, worker);
        member.scheduler = pool.as_ref().map(|it| it.scheduler.clone());
        let scheduler = member.scheduler.as_deref();
        let rolling = member.phase == Phase::Outdated
            && !member.fresh
            && member.problem.is_none()
            && member.waits_for.is_none();
        let all = if component.is_deleting() {
            Some(DrainReason::Deletion)
        } else if leaving.is_deleted(scheduler) {
            Some(DrainReason::ComponentDeletion)
        } else if rolling {
            Some(DrainReason::RollOut)
        } else if leaving.is_restarted(scheduler) {
            Some(DrainReason::SchedulerRestart)
        } else if worker.cordoned {
            Some(DrainReason::Cordon)
        } else {
            None
        };
        let held = member.problem.is_some() && !component.is_deleting();
        let live = member.live.as_ref().map_or(0, |live| live.replicas);
        let wanted = if component.is_deleting() {
            0
        } else if held {
            live
        } else {
            member.replicas
        };
        let answer = facts.queues.get(component.uid());
        let queue = answer.and_then(|answer| answer.as_ref().ok());
        let seconds = worker.drain_timeout_seconds(settings::longest_action(&facts.components));
        let drain_facts = DrainFacts {
            pods: facts.pods_of(component),
            wanted,
            live,
            existing: member.live.as_ref().map_or(0, |live| live.existing),
            all,
            replacing: replacing(member),
            drains: &component.status.drains,
            queue,
            timeout: SignedDuration::from_secs(seconds),
            now: facts.now,
        };
        let needed = drain::needs_queue(&drain_facts);
        let mut drained = drain::decide(&drain_facts);
        match pool {
            // Without a scheduler no worker has an action.
            None => release_all(&mut drained, wanted),
            Some(PoolQueue { scheduler, queue }) => {
                if needed && answer.is_none() {
                    decision.inquiries.push(Inquiry {
                        pool: component.uid().to_owned(),
                        scheduler: scheduler.clone(),
                        queue: queue.clone(),
                    });
                }
                let change = |pattern: &BTreeMap<String, String>, drained| DrainChange {
                    pool: component.uid().to_owned(),
                    scheduler: scheduler.clone(),
                    queue: queue.clone(),
                    pattern: pattern.clone(),
                    drained,
                };
                let (add, remove) = (drained.add.iter(), drained.remove.iter());
                let changes = &mut decision.drains;
                changes.extend(add.map(|pattern| change(pattern, true)));
                changes.extend(remove.map(|pattern| change(pattern, false)));
            }
        }
        if poll_again(&drained, all) {
            decision.look_again(Some(DRAIN_POLL_INTERVAL));
        }
        member.replicas = drained.replicas;
        member.drain = Some(drained);
    }
}

/// The version that replaces the pods of a pool at this moment.
fn replacing<'a>(member: &'a Member<'_>) -> Option<&'a str> {
    let revision = &member.workload.as_ref()?.revision;
    let rollout = member.component.status.rollout.as_ref();
    // Pods of the former version take actions again when the new one does not succeed.
    let has_failed = rollout.is_some_and(|it| it.failed && it.revision == *revision);
    (member.phase == Phase::Progressing && !has_failed).then_some(revision)
}

/// A cordon that the scheduler has, and whose actions have ended, needs no attention until something changes.
fn poll_again(drained: &DrainDecision, all: Option<DrainReason>) -> bool {
    let resting = all == Some(DrainReason::Cordon)
        && drained.add.is_empty()
        && drained.remove.is_empty()
        && drained
            .drains
            .iter()
            .all(|drain| drain.applied_at.is_some() && drain.running == Some(0));
    !drained.drains.is_empty() && !resting
}

fn release_all(drained: &mut DrainDecision, wanted: i32) {
    drained.drains.clear();
    drained.all_released = true;
    drained.replicas = wanted;
}
