//! How a decision is told.

use neap_kit::{
    event::Note,
    status::{Standing, Statement, Truth, conditions},
};

use super::{Wish, draft::Draft};

/// Puts what was decided into the conditions, and what is new into words.
pub(super) fn tell(draft: &mut Draft<'_>) {
    let Some(standing) = draft.standing.take() else {
        return;
    };
    let mut statements = standing.statements().to_vec();
    statements.extend(extra(draft));
    let facts = draft.facts;
    let generation = facts.service.metadata.generation;
    if let Standing::Stalled(reason, message) = &standing
        && !was(draft, "Stalled", reason)
    {
        draft.notes.push(Note::warning(reason, message.clone()));
    }
    if let Some(scale) = draft.scale {
        let target = &facts.service.spec.scale_target_ref.name;
        let message = format!("{target} is scaled to {}", scale.replicas);
        draft.notes.push(Note::normal("SuccessToScale", message));
    }
    let old = std::mem::take(&mut draft.status.conditions);
    draft.status.conditions = conditions(&old, &statements, generation, facts.now);
    draft.status.observed_generation = generation;
}

/// Conditions that not everybody has: said where they are so, and taken back where they were.
fn extra(draft: &Draft<'_>) -> Vec<Statement> {
    let truth = |so: bool| if so { Truth::True } else { Truth::False };
    let known = |kind: &str| {
        let mut conditions = draft.status.conditions.iter();
        conditions.any(|condition| condition.type_ == kind)
    };
    let mut all = Vec::new();
    let mut say = |kind, so: Option<bool>, reason: [&'static str; 2], message: [&str; 2]| {
        if let Some(so) = so.filter(|so| *so || known(kind)) {
            let at = usize::from(!so);
            all.push(Statement::new(kind, truth(so), reason[at], message[at]));
        }
    };
    say(
        "WouldSleep",
        Some(draft.would_sleep.unwrap_or(false)),
        ["Idle", "NotIdle"],
        ["nobody asks for it", "somebody asks for it"],
    );
    say(
        "Conflict",
        draft.conflict,
        ["ScaledBack", "NotScaledBack"],
        [
            "somebody scaled it up right after it fell asleep; leave spec.replicas to us, or name the autoscaler",
            "nobody scaled it up since it fell asleep",
        ],
    );
    let blind = draft.facts.blind();
    say(
        "Unprovable",
        Some(blind.is_some()),
        ["NoProof", "Proof"],
        [
            "whom the data plane reaches cannot be proved, so a longer wait stands in for it",
            "the data plane can be asked",
        ],
    );
    all
}

fn was(draft: &Draft<'_>, kind: &str, reason: &str) -> bool {
    let mut conditions = draft.status.conditions.iter();
    conditions.any(|it| it.type_ == kind && it.status == "True" && it.reason == reason)
}

/// What would become of it if it were more than observed.
pub(super) fn observed(draft: &mut Draft<'_>, wish: &Wish) {
    draft.would_sleep = Some(matches!(wish, Wish::Sleep(_)));
}
