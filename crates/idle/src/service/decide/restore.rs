//! What slept before and is no longer named: it is as it was before anything else is done.

use neap_kit::event::Note;

use super::{
    super::{facts::Former, verdict::Because},
    Restore,
    draft::Draft,
};
use crate::target::Keda;

/// Wakes it and has KEDA go on, and forgets it. What is gone is left so.
pub(super) fn restore(draft: &mut Draft<'_>, former: &Former) -> Because {
    let facts = draft.facts;
    let before = draft.status.replicas_before.unwrap_or(0);
    let replicas = facts.minimum().max(before);
    let at_zero = former.target.replicas() == Some(0);
    let resting = draft.status.resting.take();
    if let Some(resting) = resting.filter(|_| at_zero) {
        let message = format!("{} is scaled to {replicas}", resting.target.name);
        draft.notes.push(Note::normal("SuccessToScale", message));
    }
    draft.restore = Some(Restore {
        replicas: at_zero.then_some(replicas),
        resume: matches!(former.keda, Keda::Found { by_us: true, .. }),
    });
    let message = "what slept before is woken, since another is named now";
    draft.woken(Some(&Because::new("TargetChanged", message)));
    draft.status.replicas_before = None;
    draft.status.hand_off = None;
    draft.reconciling("Restoring", message)
}
