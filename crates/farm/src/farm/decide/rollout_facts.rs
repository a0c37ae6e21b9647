//! What the record of a roll-out depends on, from a decision about the components.

use super::{ComponentDecision, Member};
use crate::farm::{
    facts::FarmFacts,
    rollout::Phase,
    rollout_operation::{ComponentProgress, RolloutComponent, RolloutFacts},
};

/// The facts about the components that are not being deleted.
pub(super) fn gather<'a>(
    facts: &'a FarmFacts,
    members: &[Member<'_>],
    decisions: &[ComponentDecision],
) -> RolloutFacts<'a> {
    let all = members.iter().zip(decisions);
    let present = all.filter(|(member, _)| !member.component.is_deleting());
    RolloutFacts {
        farm: &facts.farm,
        operations: facts.operations.as_deref(),
        components: present
            .map(|(member, decision)| component(member, decision))
            .collect(),
        now: facts.now,
    }
}

fn component(member: &Member<'_>, decision: &ComponentDecision) -> RolloutComponent {
    let (kind, name) = (member.component.kind.kind(), member.component.name());
    let workload = member.workload.as_ref();
    RolloutComponent {
        name: format!("{kind} {name}"),
        revision: workload.map_or_else(String::new, |it| it.revision.clone()),
        progress: progress(member, decision),
        replaces: member.phase == Phase::Outdated && !member.fresh,
        owner: member.component.owner_reference(),
    }
}

fn progress(member: &Member<'_>, decision: &ComponentDecision) -> ComponentProgress {
    let mut conditions = decision.status.conditions.iter();
    let stalled = conditions.find(|it| it.type_ == "Stalled" && it.status == "True");
    if let Some(stalled) = stalled {
        return ComponentProgress::Failed(stalled.message.clone());
    }
    if member.problem.is_some() || member.waits_for.is_some() {
        return ComponentProgress::Pending;
    }
    let status = &member.component.status;
    let seen = status.observed_generation == member.component.metadata.generation;
    let mut conditions = status.conditions.iter().filter(|_| seen);
    // What the server refused is tried again, which is no roll-out of its own.
    if let Some(refused) = conditions.find(|it| it.type_ == "Ready" && it.reason == "WriteRefused")
    {
        return ComponentProgress::Failed(refused.message.clone());
    }
    let what = match member.phase {
        Phase::Settled => return ComponentProgress::Settled,
        Phase::Outdated if !member.may_apply => "workers are drained",
        Phase::Outdated | Phase::Progressing => "new pods start",
        Phase::Missing => "the workload is created",
    };
    ComponentProgress::Running(what.to_owned())
}
