//! Whether a payload has gone without a verdict for too long, and what it waits for.

use jiff::SignedDuration;
use neap_kit::status::{ConditionStatus, ConditionUpdate};

use super::{Draft, verdict::VerdictFacts};
use crate::{
    api::conditions::{self, reasons},
    payload::Phase,
};

pub(super) fn decide(draft: &mut Draft<'_>, phase: Phase) {
    let timeouts = draft.facts.timeouts;
    let limit = match phase {
        Phase::Pending => Some(timeouts.creation),
        Phase::Ready => Some(timeouts.verdict),
        Phase::Accepted | Phase::Rejected | Phase::Failed => None,
    };
    let created = draft.payload().metadata.creation_timestamp.clone();
    let Some((limit, created)) = limit.zip(created) else {
        return no_longer(draft);
    };
    let limit_of_wait = SignedDuration::try_from(limit).unwrap_or(SignedDuration::MAX);
    let deadline = created
        .0
        .checked_add(limit_of_wait)
        .unwrap_or(jiff::Timestamp::MAX);
    if draft.facts.now < deadline {
        no_longer(draft);
        draft.look_again_at(deadline);
        return;
    }
    let verdict = VerdictFacts::gather(draft.payload(), &draft.status);
    let waits = verdict.explanation(verdict.ruling());
    let hours = limit.as_secs() / 3600;
    let message = format!("no verdict {hours} hours after it was created: {waits}");
    draft.set(ConditionUpdate::new(
        conditions::STUCK,
        ConditionStatus::True,
        reasons::DEADLINE_EXCEEDED,
        message,
    ));
}

/// The condition is there only if the payload has ever been stuck.
fn no_longer(draft: &mut Draft<'_>) {
    if draft.holds(conditions::STUCK).is_some() {
        let status = ConditionStatus::False;
        let update = ConditionUpdate::new(conditions::STUCK, status, reasons::PROGRESSING, "");
        draft.set(update);
    }
}
