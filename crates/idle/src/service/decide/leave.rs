//! The end of an ElastiService: what runs is woken, everything is as if it had never been, and only
//! then the object goes.

use std::time::Duration;

use super::{
    super::{objects, verdict::Because},
    Finalizer, Slices,
    draft::Draft,
    hand_off,
};
use crate::{api::Mode, target::Target};

pub(super) fn leave(draft: &mut Draft<'_>) {
    let facts = draft.facts;
    let asleep = draft.status.asleep_since.is_some() || draft.status.mode == Some(Mode::Proxy);
    let ours = asleep || !facts.slices.is_empty() || draft.status.hand_off.is_some();
    let taken = facts.rival.is_some();
    let nothing = facts.public.is_none() || facts.target == Target::Missing || taken;
    let given_up = overdue(draft, facts.patience.giving_up);
    // Nobody else would wake what was put to sleep here, however late it is and with no Service left.
    // One that was woken for this and is at zero again is kept there by somebody else.
    let stranded = asleep && facts.target.replicas() == Some(0) && !(given_up && woken(draft));
    if !stranded && (!ours || nothing || given_up) {
        return let_go(draft);
    }
    // That of KubeElasti has no label of ours, without which nobody sees whether its pods are ready.
    if let (Some(public), Some(live), false) = (facts.public, facts.private, taken) {
        let private = objects::private(facts.service, public, Some(live));
        draft.private = Some(Box::new(private));
    }
    match facts.target.replicas() {
        None => draft.again(Duration::from_secs(5)),
        Some(0) => {
            let before = draft.status.replicas_before.unwrap_or(0);
            let why = Because::new("Deleted", "it is being deleted");
            draft.wake(&why, facts.minimum().max(before));
            if !taken {
                draft.want_slices();
            }
        }
        Some(_) => {
            draft.woken(Some(&Because::new("Deleted", "it is being deleted")));
            draft.unpause();
            let done = hand_off::to_pods(draft);
            let ready = facts.ready_pods > 0;
            if done || ready && overdue(draft, facts.patience.farewell) {
                return let_go(draft);
            }
        }
    }
    draft.reconciling("Leaving", "its pods answer for it before it goes");
}

/// Whether it was woken since it began to go.
fn woken(draft: &Draft<'_>) -> bool {
    let begun = draft.facts.service.metadata.deletion_timestamp.as_ref();
    let wake = draft.status.last_wake.as_ref();
    wake.zip(begun)
        .is_some_and(|(wake, begun)| wake.time >= begun.0)
}

/// Whether it has been going for longer than this. If not, there is another look then.
fn overdue(draft: &mut Draft<'_>, limit: Duration) -> bool {
    let facts = draft.facts;
    let begun = facts.service.metadata.deletion_timestamp.as_ref();
    let left = begun.and_then(|begun| facts.until(begun.0, limit));
    draft.again_in(left);
    left.is_none()
}

fn let_go(draft: &mut Draft<'_>) {
    draft.unpause();
    draft.proof = None;
    draft.private = None;
    // What stands in for a Service that another looks after is that one's.
    let taken = draft.facts.rival.is_some();
    draft.slices = if taken { Slices::Leave } else { Slices::Remove };
    draft.stray = !taken;
    draft.finalizer = Finalizer::Remove;
    if let Ok(granted) = &draft.facts.ports {
        draft.free.clone_from(&granted.freed);
    }
    // Nobody reads it any more.
    draft.status = draft.facts.status();
    draft.standing = None;
}
