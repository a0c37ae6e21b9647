//! The deletion of an ElastiService: its target is woken, everything that was made for it is deleted, and
//! only then the object goes.

use std::time::Duration;

use neap_kit::event::EventDraft;

use super::{
    TARGET_RETRY_DELAY,
    draft::{Draft, Finalizer, SliceChange},
    failing, hand_off,
};
use crate::{
    api::Mode,
    elasti_service::{facts::Facts, objects},
    reason::Reason,
    target::{Keda, Target, canonical_kind},
};

/// The longest that a deletion waits between two looks at pods that do not become ready.
const PODS_INTERVAL: Duration = Duration::from_secs(5);

pub(super) fn leave(draft: &mut Draft<'_>) {
    let facts = draft.facts;
    if facts.namespace_terminates {
        // Nothing can be created there, everything else is deleted with it, and the rights to write there may
        // be deleted at any moment.
        return abandon(draft);
    }
    if let Some(refusal) = &facts.refusal
        && is_overdue(draft, facts.timeouts.deletion_proof)
        && facts.since(refusal.since) >= facts.timeouts.deletion_proof
    {
        let paused = matches!(facts.keda, Keda::Found { by_us: true, .. });
        let paused = if paused {
            ", and its ScaledObject stays paused"
        } else {
            ""
        };
        let left = format!(
            "a write is refused: {}; {}{paused}",
            refusal.message,
            left(facts)
        );
        report(draft, &left);
        return abandon(draft);
    }
    let asleep = draft.status.asleep_since.is_some() || draft.status.mode == Some(Mode::Proxy);
    let has_resolvers = asleep || !facts.slices.is_empty() || draft.status.hand_off.is_some();
    let rivalled = facts.rival.is_some();
    let unusable = facts.public.is_none() || facts.target == Target::Missing || rivalled;
    // Pods that have failed are not waited for as long as pods that start.
    let failed = facts.ready_pods == 0 && failing::has_failed(facts, &draft.status);
    let limit = if failed {
        facts.timeouts.deletion_proof
    } else {
        facts.timeouts.deletion
    };
    let given_up = is_overdue(draft, limit);
    // Nothing else would wake a target that sleeps, however late it is and even without a Service. One that
    // was woken for the deletion and is at zero again is scaled by another controller.
    let stranded = asleep && facts.target.replicas() == Some(0) && !(given_up && was_woken(draft));
    if !stranded && (!has_resolvers || unusable || given_up) {
        if given_up && has_resolvers && !unusable {
            report(draft, &left(facts));
        }
        return release(draft);
    }
    approach(draft);
}

/// One step towards pods that answer.
fn approach(draft: &mut Draft<'_>) {
    let facts = draft.facts;
    let rivalled = facts.rival.is_some();
    // The private Service of KubeElasti has none of our labels, without which no watch shows its ready pods.
    if let (Some(public), Some(live), false) = (&facts.public, &facts.private, rivalled) {
        let private = objects::private(&facts.service, public, Some(live));
        draft.private = Some(Box::new(private));
    }
    match facts.target.replicas() {
        None => draft.requeue_after(TARGET_RETRY_DELAY),
        Some(0) => {
            let before = draft.status.replicas_before.unwrap_or(0);
            let why = Reason::new("Deleted", "the ElastiService is being deleted");
            draft.wake(&why, facts.service.spec.wake_replicas().max(before));
            if !rivalled {
                draft.want_slices();
            }
        }
        Some(_) => {
            draft.record_wake(Some(&Reason::new(
                "Deleted",
                "the ElastiService is being deleted",
            )));
            draft.resume_keda();
            let done = hand_off::to_pods(draft);
            let ready = facts.ready_pods > 0;
            if !ready {
                draft.requeue_after(PODS_INTERVAL);
            }
            if done {
                return release(draft);
            }
            if ready && is_overdue(draft, facts.timeouts.deletion_proof) {
                report(draft, "the data plane was not proved to reach its pods");
                return release(draft);
            }
        }
    }
    let problem = facts.pods.as_ref().and_then(|pods| pods.problem.as_ref());
    let problem = problem.map_or(String::new(), |problem| format!("; {}", problem.message));
    let message = format!("the ElastiService is removed once a pod answers{problem}");
    draft.reconciling("Terminating", &message);
}

/// What is left of a service that was not restored: the state of its workload.
fn left(facts: &Facts) -> String {
    let target = &facts.service.spec.scale_target_ref;
    let target = format!("{} {}", canonical_kind(&target.kind), target.name);
    let problem = facts.pods.as_ref().and_then(|pods| pods.problem.as_ref());
    match (facts.target.replicas(), problem) {
        (Some(0), _) => format!("{target} has 0 replicas; scale it up if it has to run"),
        (Some(replicas), Some(problem)) => {
            format!(
                "{target} has {replicas} replicas and no ready pod: {}",
                problem.message
            )
        }
        (Some(replicas), None) => format!("{target} has {replicas} replicas and no ready pod"),
        (None, _) => format!("the replicas of {target} are not known"),
    }
}

/// Reports to users that the deletion does not wait any longer. The status is gone soon, and Events stay.
fn report(draft: &mut Draft<'_>, left: &str) {
    let message =
        format!("the ElastiService was removed although clients may not reach a pod: {left}");
    let event = EventDraft::warning("NotRestored", message);
    draft.owner_events.push(event.clone());
    draft.events.push(event);
}

/// Whether it was woken since its deletion began.
fn was_woken(draft: &Draft<'_>) -> bool {
    let begun = draft.facts.service.metadata.deletion_timestamp.as_ref();
    let wake = draft.status.last_wake.as_ref();
    wake.zip(begun)
        .is_some_and(|(wake, begun)| wake.time >= begun.0)
}

/// Whether the deletion takes longer than this. If not, there is another decision then.
fn is_overdue(draft: &mut Draft<'_>, limit: Duration) -> bool {
    let facts = draft.facts;
    let begun = facts.service.metadata.deletion_timestamp.as_ref();
    let left = begun.and_then(|begun| facts.until(begun.0, limit));
    draft.requeue_after_opt(left);
    left.is_none()
}

/// Removes only the finalizer. What was made for it is deleted with it by the garbage collector.
fn abandon(draft: &mut Draft<'_>) {
    draft.private = None;
    draft.slices = SliceChange::Leave;
    draft.scale = None;
    draft.pause_keda = None;
    draft.finalizer = Finalizer::Abandon;
    draft.status = draft.facts.status();
    draft.readiness = None;
}

/// Deletes what was made for it, and removes the finalizer.
fn release(draft: &mut Draft<'_>) {
    draft.resume_keda();
    draft.inquiry = None;
    draft.private = None;
    // The slices of a Service for which another ElastiService is responsible are not ours.
    let rivalled = draft.facts.rival.is_some();
    draft.slices = if rivalled {
        SliceChange::Leave
    } else {
        SliceChange::Remove
    };
    draft.delete_foreign_slice = !rivalled;
    draft.finalizer = Finalizer::Remove;
    if let Ok(granted) = &draft.facts.ports {
        draft.freed_ports.clone_from(&granted.freed);
    }
    // The status is not written any more: the object is about to be deleted.
    draft.status = draft.facts.status();
    draft.readiness = None;
}
