//! The deletion of an ElastiService: its target is woken, everything that was made for it is deleted, and
//! only then the object goes.

use std::time::Duration;

use super::{
    TARGET_RETRY_DELAY,
    draft::{Draft, Finalizer, SliceChange},
    hand_off,
};
use crate::{api::Mode, elasti_service::objects, reason::Reason, target::Target};

pub(super) fn leave(draft: &mut Draft<'_>) {
    let facts = draft.facts;
    let asleep = draft.status.asleep_since.is_some() || draft.status.mode == Some(Mode::Proxy);
    let has_resolvers = asleep || !facts.slices.is_empty() || draft.status.hand_off.is_some();
    let rivalled = facts.rival.is_some();
    let unusable = facts.public.is_none() || facts.target == Target::Missing || rivalled;
    let given_up = is_overdue(draft, facts.timeouts.deletion);
    // Nothing else would wake a target that sleeps, however late it is and even without a Service. One that
    // was woken for the deletion and is at zero again is scaled by another controller.
    let stranded = asleep && facts.target.replicas() == Some(0) && !(given_up && was_woken(draft));
    if !stranded && (!has_resolvers || unusable || given_up) {
        return release(draft);
    }
    // The private Service of KubeElasti has none of our labels, without which no watch shows its ready pods.
    if let (Some(public), Some(live), false) = (&facts.public, &facts.private, rivalled) {
        let private = objects::private(&facts.service, public, Some(live));
        draft.private = Some(Box::new(private));
    }
    match facts.target.replicas() {
        None => draft.requeue_after(TARGET_RETRY_DELAY),
        Some(0) => {
            let before = draft.status.replicas_before.unwrap_or(0);
            let why = Reason::new("Deleted", "it is being deleted");
            draft.wake(&why, facts.service.spec.wake_replicas().max(before));
            if !rivalled {
                draft.want_slices();
            }
        }
        Some(_) => {
            draft.record_wake(Some(&Reason::new("Deleted", "it is being deleted")));
            draft.resume_keda();
            let done = hand_off::to_pods(draft);
            let ready = facts.ready_pods > 0;
            if done || ready && is_overdue(draft, facts.timeouts.deletion_proof) {
                return release(draft);
            }
        }
    }
    draft.reconciling("Leaving", "its pods have to answer before it is deleted");
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
