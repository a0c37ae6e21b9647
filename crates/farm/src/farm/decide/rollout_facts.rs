//! What the record of a roll-out depends on, from a decision about the components.

use std::fmt::Write as _;

use super::{ComponentDecision, Member};
use crate::farm::{
    facts::FarmFacts,
    objects::hash_of,
    rollout::Phase,
    rollout_operation::{ComponentProgress, RolloutComponent, RolloutFacts},
};

/// The facts about the components that are not being deleted.
pub(super) fn gather<'a>(
    facts: &'a FarmFacts,
    members: &[Member<'_>],
    decisions: &[ComponentDecision],
) -> RolloutFacts<'a> {
    let (mut components, mut target) = (Vec::new(), String::new());
    for (member, decision) in members.iter().zip(decisions) {
        if member.component.is_deleting() {
            continue;
        }
        let component = component(member, decision);
        // Writing to a String does not fail.
        let _ = writeln!(target, "{} {}", component.name, component.revision);
        components.push(component);
    }
    RolloutFacts {
        farm: &facts.farm,
        operations: facts.operations.as_deref(),
        components,
        target: hash_of(&target),
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
    let what = match member.phase {
        Phase::Settled => return ComponentProgress::Settled,
        Phase::Outdated if !member.may_apply => "workers are drained",
        Phase::Outdated | Phase::Progressing => "new pods start",
        Phase::Missing => "the workload is created",
    };
    ComponentProgress::Running(what.to_owned())
}
