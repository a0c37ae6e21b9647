//! What is reported about a component: its status and its Events.

use std::time::Duration;

use neap_kit::{
    apply::Plan,
    event::EventDraft,
    status::{ConditionStatus, ConditionUpdate, Readiness, updated_conditions},
};

use super::{
    ComponentDecision, Member, config::EVALUATING, names::WAITING_FOR_DELETION, operations, plan,
    rollout_record,
};
use crate::{
    api::{Access, ComponentStatus, RolloutStatus, State},
    farm::{
        Component, ComponentKind,
        facts::FarmFacts,
        objects::{self, ObjectContext},
        rollout::{self, Phase},
        storage_plan::StorageDecision,
    },
};

/// Conditions that are only there while they hold.
const EXTRA: [&str; 4] = ["Exposed", "SchemaUnknown", "Draining", "Resharding"];

/// The writes, the status and the Events of a component, and when to look at it again.
pub(super) fn decide(
    facts: &FarmFacts,
    members: &[Member<'_>],
    index: usize,
    storage: Option<&StorageDecision>,
    context: &ObjectContext,
) -> (ComponentDecision, Option<Duration>) {
    let member = &members[index];
    let before = &member.component.status;
    let plan = plan::plan(facts, member, context);
    let rollout = rollout_record(member, facts.now);
    let readiness = readiness(facts, member, rollout.as_ref());
    let extra = extra_conditions(facts, member, storage);
    let mut updates = readiness.condition_updates().to_vec();
    updates.extend(extra.iter().cloned());
    let generation = member.component.metadata.generation;
    let kept: Vec<_> = before
        .conditions
        .iter()
        .filter(|it| !EXTRA.contains(&&*it.type_) || extra.iter().any(|new| new.type_ == it.type_))
        .cloned()
        .collect();
    let live = member.live.as_ref();
    let mut status = ComponentStatus {
        state: Some(state(member, &readiness)),
        replicas: live.map_or(0, |live| live.existing),
        ready_replicas: live.map_or(0, |live| live.ready),
        observed_generation: generation,
        conditions: updated_conditions(&kept, &updates, generation, facts.now),
        rollout: rollout.clone(),
        drains: member
            .drain
            .as_ref()
            .map_or_else(Vec::new, |drain| drain.drains.clone()),
        storage: storage
            .map(|it| it.status.clone())
            .or(before.storage.clone()),
    };
    let mut events = transitions(member, &readiness, before, &extra);
    if let Some(storage) = storage {
        events.extend(storage.events.iter().cloned());
    }
    events.extend(overdue(member, before));
    restart_losses(facts, member, &plan, &mut status, &mut events);
    let left = rollout.and_then(|it| rollout::time_left(&it, facts.now));
    let decision = ComponentDecision {
        index,
        plan,
        reports: is_news(before, &status, &readiness),
        status,
        events,
    };
    let soon = left.and_then(|left| Duration::try_from(left).ok());
    (decision, soon.map(|left| left + Duration::from_secs(1)))
}

/// A component that was just created has the state Creating from its definition. Saying so again would be a
/// write for each object of a new farm.
fn is_news(before: &ComponentStatus, after: &ComponentStatus, readiness: &Readiness) -> bool {
    let new = before.observed_generation.is_none() && after.state == Some(State::Creating);
    let silent = new && matches!(readiness, Readiness::Reconciling("Creating", _));
    !silent && before != after
}

#[expect(clippy::too_many_lines, reason = "one arm for each phase")]
fn readiness(facts: &FarmFacts, member: &Member<'_>, rollout: Option<&RolloutStatus>) -> Readiness {
    let component = member.component;
    if component.is_deleting() {
        return Readiness::Reconciling("Deleting", deleting_message(facts, member));
    }
    if let Some(problem) = &member.problem {
        let waiting = [
            "WaitingForStorage",
            "WaitingForScheduler",
            WAITING_FOR_DELETION,
            EVALUATING,
        ];
        let message = problem.message.clone();
        if waiting.contains(&problem.reason) {
            return Readiness::Reconciling(problem.reason, message);
        }
        return Readiness::Stalled(problem.reason, message);
    }
    let trouble = facts
        .pods_of(component)
        .iter()
        .filter(|pod| !pod.ready && !pod.deleting)
        .find_map(|pod| {
            pod.trouble
                .as_ref()
                .map(|it| format!("; {}: {it}", pod.name))
        });
    let has_trouble = trouble.is_some();
    let trouble = trouble.unwrap_or_default();
    let ready = member.live.as_ref().map_or(0, |live| live.ready);
    let wanted = member.replicas;
    match member.phase {
        Phase::Settled if component.replicas() == 0 => {
            Readiness::Ready("ScaledToZero", "it is scaled to zero".to_owned())
        }
        Phase::Settled if wanted != component.replicas() && component.worker().is_some() => {
            let message =
                format!("{ready} pods are ready; some are drained before they are removed");
            Readiness::Reconciling("Draining", message)
        }
        Phase::Settled => Readiness::Ready("Ready", format!("{ready} pods are ready")),
        Phase::Missing if has_trouble || member.live.is_some() => Readiness::Reconciling(
            "Replacing",
            format!("the workload is created again{trouble}"),
        ),
        Phase::Missing => Readiness::Reconciling("Creating", "its objects are created".to_owned()),
        Phase::Outdated => match &member.waits_for {
            Some(other) => {
                let message = format!("a new version waits until {other} is ready");
                Readiness::Reconciling("WaitingForRollout", message)
            }
            None if !member.may_apply => Readiness::Reconciling(
                "Draining",
                "workers are drained before the new version is rolled out".to_owned(),
            ),
            None => Readiness::Reconciling("RollingOut", "a new version is rolled out".to_owned()),
        },
        Phase::Progressing if rollout.is_some_and(|it| it.failed) => {
            let kind = component.kind.kind();
            let message = format!(
                "the roll-out of {kind} {} does not succeed: {ready} of {wanted} pods are ready{trouble}",
                component.name()
            );
            Readiness::Stalled("RolloutFailed", message)
        }
        Phase::Progressing if is_new(&component.status) && !has_trouble => {
            Readiness::Reconciling("Creating", format!("{ready} of {wanted} pods are ready"))
        }
        Phase::Progressing => {
            let message = format!("{ready} of {wanted} pods are ready and up to date{trouble}");
            Readiness::Reconciling("WaitingForPods", message)
        }
    }
}

fn is_new(status: &ComponentStatus) -> bool {
    matches!(status.state, None | Some(State::Creating))
}

fn deleting_message(facts: &FarmFacts, member: &Member<'_>) -> String {
    let pods = facts.pods_of(member.component).iter();
    let pods = pods.filter(|pod| !pod.finished).count();
    let running: u32 = member
        .drain
        .iter()
        .flat_map(|drain| &drain.drains)
        .filter_map(|drain| drain.running)
        .sum();
    match (&member.drain, &member.kept_for) {
        (Some(_), _) => format!("{pods} pods are drained and stopped; {running} actions run"),
        (None, Some(pool)) => format!("it is kept until the workers of {pool} are drained"),
        (None, None) => "its objects are deleted with it".to_owned(),
    }
}

fn state(member: &Member<'_>, readiness: &Readiness) -> State {
    if member.component.is_deleting() {
        return State::Deleting;
    }
    let before = &member.component.status;
    let seen = before.observed_generation == member.component.metadata.generation;
    match readiness {
        Readiness::Ready(..) => State::Ready,
        _ if is_new(before) => State::Creating,
        Readiness::Stalled(..) => State::NotReady,
        Readiness::Reconciling(..) => match member.phase {
            // Nothing was changed: pods that were ready are not any more.
            Phase::Progressing if before.rollout.is_none() && seen => State::NotReady,
            Phase::Progressing if before.state == Some(State::NotReady) && seen => State::NotReady,
            _ => State::Reconciling,
        },
    }
}

fn extra_conditions(
    facts: &FarmFacts,
    member: &Member<'_>,
    storage: Option<&StorageDecision>,
) -> Vec<ConditionUpdate> {
    let holds = |type_, reason, message: String| {
        ConditionUpdate::new(type_, ConditionStatus::True, reason, message)
    };
    let mut extra = Vec::new();
    if let Some(warning) = member.warnings.first() {
        extra.push(holds(
            "SchemaUnknown",
            "UnknownImageVersion",
            warning.clone(),
        ));
    }
    if let Some(message) = exposed(member.component) {
        extra.push(holds("Exposed", "NoAuthentication", message));
    }
    let drains = member.drain.iter().flat_map(|drain| &drain.drains);
    let (count, running) = drains.fold((0, 0), |(count, running), drain| {
        (count + 1, running + drain.running.unwrap_or(0))
    });
    if count > 0 {
        let error = facts
            .queues
            .get(member.component.uid())
            .and_then(|it| it.as_ref().err());
        let (reason, message) = match error {
            Some(error) => (
                "SchedulerDoesNotAnswer",
                format!("{count} pods are drained; {error}"),
            ),
            None => (
                "WaitingForActions",
                format!("{count} pods are drained; {running} actions run"),
            ),
        };
        extra.push(holds("Draining", reason, message));
    }
    let change = storage.and_then(|it| it.status.resharding.as_ref());
    if let Some(change) = change {
        let message = format!(
            "{} shards become {}; {} % of the keys move",
            change.from.len(),
            change.to.len(),
            change.moved_percent
        );
        let reason = match change.stage {
            crate::api::ReshardingStage::Provisioning => "Provisioning",
            crate::api::ReshardingStage::Copying => "Copying",
            crate::api::ReshardingStage::Finishing => "Finishing",
        };
        extra.push(holds("Resharding", reason, message));
    }
    extra
}

/// What callers from outside of the cluster can do, if nothing asks who they are.
fn exposed(component: &Component) -> Option<String> {
    if !objects::is_exposed(component) {
        return None;
    }
    let frontend = component.frontend();
    if frontend.is_some_and(|spec| is_authenticated(spec.access.as_ref())) {
        return None;
    }
    let consequence = match component.kind {
        ComponentKind::Frontend => "run programs on the workers; set spec.access.authentication",
        ComponentKind::Scheduler => {
            "run programs on the workers, take actions as a worker, and kill actions and change drains on \
             the web page; use ClusterIP"
        }
        _ => "read all files and results; use ClusterIP, or an Ingress that asks for a password",
    };
    Some(format!(
        "serviceType is LoadBalancer or NodePort and callers are not authenticated: every client that \
         reaches the address can {consequence}"
    ))
}

fn is_authenticated(access: Option<&Access>) -> bool {
    let authentication = access.and_then(|access| access.authentication.as_ref());
    authentication.is_some_and(|it| it.allow.is_none())
}

/// An Event when it stalls, and when a warning is new.
fn transitions(
    member: &Member<'_>,
    readiness: &Readiness,
    before: &ComponentStatus,
    extra: &[ConditionUpdate],
) -> Vec<EventDraft> {
    let mut events = Vec::new();
    let reason_before = |type_: &str| {
        let found = before.conditions.iter().find(|it| it.type_ == type_);
        found.map(|it| (it.reason.as_str(), it.message.as_str()))
    };
    if let Readiness::Stalled(reason, message) = readiness
        && reason_before("Ready") != Some((*reason, message))
    {
        events.push(EventDraft::warning(reason, message.clone()));
    }
    for update in extra {
        let warns = ["Exposed", "SchemaUnknown"].contains(&update.type_);
        if warns && reason_before(update.type_).is_none() {
            events.push(EventDraft::warning(update.reason, update.message.clone()));
        }
    }
    let rolled = before
        .rollout
        .as_ref()
        .filter(|_| member.phase == Phase::Settled);
    if let Some(rollout) = rolled.filter(|_| !is_new(before)) {
        let message = format!("revision {} is rolled out", rollout.revision);
        events.push(EventDraft::normal("RolledOut", message));
    }
    events
}

/// Workers that are stopped although they run actions.
fn overdue(member: &Member<'_>, before: &ComponentStatus) -> Vec<EventDraft> {
    let drain = member.drain.iter();
    let overdue = drain.flat_map(|drain| &drain.overdue);
    overdue
        .filter(|(pod, _)| {
            let known = before.drains.iter().find(|it| it.pattern.get("pod") == Some(pod));
            known.is_some_and(|it| !it.released)
        })
        .map(|(pod, running)| {
            let message = format!(
                "the drain of {pod} has reached its bound with {running} running actions; the pod may be \
                 stopped"
            );
            EventDraft::warning("DrainTimedOut", message)
        })
        .collect()
}

/// Operations that a restart of the scheduler loses are counted.
fn restart_losses(
    facts: &FarmFacts,
    member: &Member<'_>,
    plan: &Plan,
    status: &mut ComponentStatus,
    events: &mut Vec<EventDraft>,
) {
    let restarts = member.component.kind == ComponentKind::Scheduler
        && member.phase == Phase::Outdated
        && member.may_apply
        && !plan.is_empty();
    let lost = operations(facts);
    if restarts && lost > 0 {
        if let Some(rollout) = &mut status.rollout {
            rollout.lost_operations = Some(lost);
        }
        let message = format!(
            "the scheduler is restarted with {lost} operations, which clients have to ask for again"
        );
        events.push(EventDraft::warning("OperationsLost", message));
    }
}
