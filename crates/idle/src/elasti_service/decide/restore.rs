//! Restores a workload that sleeps and that the spec no longer names, before anything else is done.

use neap_kit::event::EventDraft;

use super::draft::{Draft, FormerRestore};
use crate::{elasti_service::facts::FormerTarget, reason::Reason, target::Keda};

/// Wakes the workload, resumes its ScaledObject, and removes both from the status. A workload that does not
/// exist any more is skipped.
pub(super) fn restore(draft: &mut Draft<'_>, former: &FormerTarget) -> Reason {
    let facts = draft.facts;
    let before = draft.status.replicas_before.unwrap_or(0);
    let replicas = facts.service.spec.wake_replicas().max(before);
    let at_zero = former.target.replicas() == Some(0);
    let resting = draft.status.resting.take();
    if let Some(resting) = resting.filter(|_| at_zero) {
        let message = format!("{} is scaled to {replicas}", resting.target.name);
        draft
            .events
            .push(EventDraft::normal("SuccessToScale", message));
    }
    draft.restore = Some(FormerRestore {
        replicas: at_zero.then_some(replicas),
        resume: matches!(former.keda, Keda::Found { by_us: true, .. }),
    });
    let message = "the former target is woken, since the spec names another one";
    draft.record_wake(Some(&Reason::new("TargetChanged", message)));
    draft.status.replicas_before = None;
    draft.status.hand_off = None;
    draft.reconciling("Restoring", message)
}
