//! The decision about a farm: what to write, which drains to set, and what to report. Pure.

mod config;
mod deletion;
mod drains;
mod names;
mod plan;
mod report;
mod rollout_facts;

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use neap_kit::{apply::Plan, event::EventDraft};
use serde_json::Value;

use self::{config::ConfigOutcome, deletion::Leaving};
use super::{
    Component, ComponentKind,
    drain::DrainDecision,
    facts::{FarmFacts, UserConfig},
    objects::{self, ConfigSource, DesiredWorkload, ObjectContext},
    pool_queue::PoolQueue,
    refusals::REFUSAL_RETRY,
    rollout::{self, LiveWorkload, Phase},
    rollout_operation::{self, RolloutRecord},
    settings,
    storage_plan::{self, StorageDecision, StorageFacts},
    validate::{self, Problem},
};
use crate::{
    api::{ComponentStatus, RolloutStatus, Shard, State},
    configuration::FarmSettings,
    platform::QueueName,
    queue::QueueFacts,
};

/// How often a scheduler is asked while workers are drained.
pub const DRAIN_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A decision about a farm.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Decision {
    /// What is done for each component.
    pub components: Vec<ComponentDecision>,
    /// Drains to set and to end.
    pub drains: Vec<DrainChange>,
    /// Pools whose scheduler has to be asked before this decision is carried out.
    pub inquiries: Vec<Inquiry>,
    /// What is recorded about the roll-out of the farm.
    pub rollout: RolloutRecord,
    /// When to look again.
    pub requeue_after: Option<Duration>,
}

/// What is done for a component.
#[derive(Debug, Clone, PartialEq)]
pub struct ComponentDecision {
    /// Its index in the facts.
    pub index: usize,
    /// The writes.
    pub plan: Plan,
    /// The status afterwards.
    pub status: ComponentStatus,
    /// Whether the status is worth a write: that of a component that was just created says nothing new.
    pub reports: bool,
    /// Events.
    pub events: Vec<EventDraft>,
}

/// A question to a scheduler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inquiry {
    /// The uid of the pool.
    pub pool: String,
    /// The name of the scheduler.
    pub scheduler: String,
    /// The queue of the pool.
    pub queue: QueueName,
}

/// A drain to set or to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrainChange {
    /// The uid of the pool.
    pub pool: String,
    /// The name of the scheduler.
    pub scheduler: String,
    /// The queue.
    pub queue: QueueName,
    /// The workers.
    pub pattern: BTreeMap<String, String>,
    /// Whether they get no new actions.
    pub drained: bool,
}

/// What is known about a component while the decision is made.
struct Member<'a> {
    component: &'a Component,
    problem: Option<Problem>,
    config: Option<ConfigSource>,
    warnings: Vec<String>,
    workload: Option<DesiredWorkload>,
    live: Option<LiveWorkload>,
    /// No pod of it has ever been ready, so nothing can be lost by changing it.
    fresh: bool,
    /// The selector of the live workload is another, which cannot be changed.
    replace: bool,
    phase: Phase,
    drain: Option<DrainDecision>,
    /// The scheduler that has the workers of a pool.
    scheduler: Option<String>,
    /// The component before it that it waits for.
    waits_for: Option<String>,
    /// The pool for which a component that is being deleted is kept.
    kept_for: Option<String>,
    /// Whether the workload may be written.
    may_apply: bool,
    replicas: i32,
}

/// Decides about a farm.
pub fn decide(facts: &FarmFacts) -> Decision {
    let farm = &facts.components;
    let settings = settings::settings(farm);
    let context = ObjectContext {
        longest_action_seconds: settings::longest_action(farm),
        operator_namespace: facts.operator_namespace.clone(),
        monitored: facts.monitored,
    };
    let mut members: Vec<_> = farm
        .iter()
        .map(|component| member(facts, component, settings.as_ref(), &context))
        .collect();
    names::check(facts, &mut members, &context);
    let storage = decide_storage(facts, &members);
    if let Some((index, decision)) = &storage {
        refuse(&mut members[*index], decision);
    }
    order(&mut members);
    let leaving = Leaving::of(&members);
    let mut decision = Decision::default();
    drains::decide(facts, &mut members, &leaving, &mut decision);
    deletion::keep(&mut members);
    allow(&mut members);
    for index in 0..members.len() {
        let storage = storage.as_ref().filter(|it| it.0 == index).map(|it| &it.1);
        let component = report::decide(facts, &members, index, storage, &context);
        decision.look_again(component.1);
        decision.components.push(component.0);
    }
    if let Some((_, storage)) = &storage {
        decision.look_again(storage.requeue_after);
    }
    if !facts.refused.is_empty() {
        decision.look_again(Duration::try_from(REFUSAL_RETRY).ok());
    }
    for config in facts.user_configs.values() {
        if let UserConfig::Evaluating { ask_again, .. } = config {
            decision.look_again(*ask_again);
        }
    }
    let rollout = rollout_facts::gather(facts, &members, &decision.components);
    decision.rollout = rollout_operation::decide(&rollout);
    decision
}

impl Decision {
    fn look_again(&mut self, after: Option<Duration>) {
        self.requeue_after = match (self.requeue_after, after) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }
}

fn member<'a>(
    facts: &'a FarmFacts,
    component: &'a Component,
    settings: Option<&FarmSettings>,
    context: &ObjectContext,
) -> Member<'a> {
    let farm = &facts.components;
    let mut problem = validate::problem(component, farm);
    let (mut config, mut warnings) = (None, Vec::new());
    if problem.is_none() {
        let ConfigOutcome {
            source,
            problem: found,
            warnings: found_warnings,
        } = config::source(facts, component, settings);
        (config, problem, warnings) = (source, found, found_warnings);
    }
    let evaluating = problem.take_if(|it| it.reason == config::EVALUATING);
    problem = problem.or_else(|| write_problem(facts, component));
    let workload = config
        .as_ref()
        .map(|config| workload(farm, component, config, context));
    let kind = objects::workload_kind(component.kind);
    let object = facts
        .live_of(component)
        .iter()
        .find(|(other, object)| {
            *other == kind && object.metadata.name.as_deref() == Some(component.name())
        })
        .map(|(_, object)| object);
    let live = object.map(LiveWorkload::of);
    let selector = |value: &Value| value.pointer("/spec/selector/matchLabels").cloned();
    let replace = object
        .zip(workload.as_ref())
        .is_some_and(|(live, desired)| {
            let live = live.data.pointer("/spec/selector/matchLabels").cloned();
            live != selector(&desired.object.object)
        });
    let replicas = replicas(component, settings);
    let phase = match (&live, &workload) {
        (None, _) => Phase::Missing,
        (Some(live), Some(desired)) if !replace => live.phase(&desired.revision, replicas),
        _ => Phase::Outdated,
    };
    // If the pods have this very configuration, it was evaluated before the operator started.
    if ![Phase::Settled, Phase::Progressing].contains(&phase) {
        problem = problem.or(evaluating);
    }
    Member {
        component,
        problem,
        config,
        warnings,
        workload,
        fresh: is_fresh(component, live.as_ref()),
        live,
        replace,
        phase,
        drain: None,
        scheduler: None,
        waits_for: None,
        kept_for: None,
        may_apply: false,
        replicas,
    }
}

/// Why the objects of a component cannot be written.
fn write_problem(facts: &FarmFacts, component: &Component) -> Option<Problem> {
    plan::claim_problem(facts, component).or_else(|| {
        let message = facts.refused.get(component.uid())?;
        Some(Problem::new("WriteRefused", message.clone()))
    })
}

/// The replicas of a component; those of the storage change in stages.
fn replicas(component: &Component, settings: Option<&FarmSettings>) -> i32 {
    match (component.kind, settings) {
        (ComponentKind::Storage, Some(settings)) => {
            i32::try_from(settings.storage.replicas).unwrap_or(i32::MAX)
        }
        _ => component.replicas(),
    }
}

/// The workload of a component; that of a pool records its queue.
fn workload(
    farm: &[Component],
    component: &Component,
    config: &ConfigSource,
    context: &ObjectContext,
) -> DesiredWorkload {
    let mut workload = objects::workload(component, config, context);
    let worker = component.worker();
    if let Some(pool) = worker.and_then(|worker| PoolQueue::wanted(farm, worker)) {
        pool.record(&mut workload.object.object);
    }
    workload
}

fn is_fresh(component: &Component, live: Option<&LiveWorkload>) -> bool {
    let new = matches!(component.status.state, None | Some(State::Creating));
    new && live.is_none_or(|live| live.ready == 0)
}

/// The next state of the shards, and the index of the storage.
fn decide_storage(facts: &FarmFacts, members: &[Member<'_>]) -> Option<(usize, StorageDecision)> {
    let index = members.iter().position(|it| {
        it.component.kind == ComponentKind::Storage && !it.component.is_deleting()
    })?;
    let member = &members[index];
    let spec = member.component.storage()?;
    let wanted = settings::wanted_shards(spec);
    let replaced = |member: &Member<'_>| {
        let (live, workload) = (member.live.as_ref(), member.workload.as_ref());
        // A browser only shows what others store. One that does not run must not hold up the shards.
        let idle = member.component.kind == ComponentKind::Browser;
        live.zip(workload).is_some_and(|(live, desired)| {
            live.is_replaced(&desired.revision) || idle && live.ready == 0
        })
    };
    let invalid = member.problem.as_ref();
    if invalid.is_some() && member.component.status.storage.is_none() {
        return None;
    }
    let decision = storage_plan::decide(&StorageFacts {
        status: member.component.status.storage.as_ref(),
        spec,
        wanted: if invalid.is_some_and(|it| it.reason != "ConfigInvalid") {
            // What is not valid is not carried out.
            recorded_shards(member.component).unwrap_or(wanted)
        } else {
            wanted
        },
        storage_settled: member.phase == Phase::Settled,
        farm_settled: members
            .iter()
            .filter(|it| !it.component.is_deleting())
            .all(replaced),
        now: facts.now,
    });
    Some((index, decision))
}

fn recorded_shards(component: &Component) -> Option<Vec<Shard>> {
    let status = component.status.storage.as_ref()?;
    let change = status.resharding.as_ref();
    let shards = change.map_or(&status.shards, |change| &change.to);
    (!shards.is_empty()).then(|| shards.clone())
}

/// A storage whose change is refused stays as it is.
fn refuse(member: &mut Member<'_>, decision: &StorageDecision) {
    let running = decision.status.resharding.is_some();
    if let Some(message) = decision.refused.as_ref().filter(|_| !running) {
        let problem = Problem::new("PlanNotAcknowledged", message.clone());
        member.problem.get_or_insert(problem);
    }
    if decision.status.geometry.is_some() && decision.refused.is_some() && !running {
        member.may_apply = false;
    }
}

/// Which component each waits for: the first before it that is not ready with its newest configuration.
fn order(members: &mut [Member<'_>]) {
    let mut unsettled: Option<String> = None;
    for member in members {
        if member.component.is_deleting() {
            continue;
        }
        if !member.fresh {
            member.waits_for.clone_from(&unsettled);
        }
        let settled = member.phase == Phase::Settled && member.problem.is_none();
        if unsettled.is_none() && !settled {
            let (kind, name) = (member.component.kind.kind(), member.component.name());
            unsettled = Some(format!("{kind} {name}"));
        }
    }
}

/// Whether a scheduler is going to be restarted, and which.
fn scheduler_restart(members: &[Member<'_>]) -> Option<String> {
    let mut members = members.iter();
    let scheduler = members.find(|it| {
        it.component.kind == ComponentKind::Scheduler
            && !it.component.is_deleting()
            && it.phase == Phase::Outdated
            && it.problem.is_none()
            && it.waits_for.is_none()
            && it.live.as_ref().is_some_and(|live| live.ready > 0)
    });
    scheduler.map(|it| it.component.name().to_owned())
}

/// Which workloads may be written now.
fn allow(members: &mut [Member<'_>]) {
    let pools_released = members
        .iter()
        .filter(|it| it.component.kind == ComponentKind::Worker)
        .all(|it| {
            it.drain
                .as_ref()
                .is_none_or(|drain| drain.all_released || drain.drains.is_empty())
        });
    for member in members {
        if member.problem.is_some() && !member.component.is_deleting() {
            continue;
        }
        member.may_apply = match member.phase {
            Phase::Missing => !member.component.is_deleting(),
            Phase::Progressing | Phase::Settled => true,
            Phase::Outdated if member.fresh && !member.component.is_deleting() => true,
            Phase::Outdated if member.component.is_deleting() => member
                .drain
                .as_ref()
                .is_some_and(|drain| drain.all_released),
            Phase::Outdated if member.waits_for.is_some() => false,
            Phase::Outdated => match member.component.kind {
                ComponentKind::Worker => member
                    .drain
                    .as_ref()
                    .is_some_and(|drain| drain.all_released),
                ComponentKind::Scheduler => {
                    pools_released || member.live.as_ref().is_none_or(|live| live.ready == 0)
                }
                _ => true,
            },
        };
    }
}

/// The number of actions that a scheduler has, by what it says about any of its pools.
fn operations(facts: &FarmFacts) -> u32 {
    let queues = facts.queues.values().filter_map(|it| it.as_ref().ok());
    let operations = queues.map(|queue: &QueueFacts| queue.operations);
    operations.max().unwrap_or(0)
}

/// The record of the roll-out of a component.
fn rollout_record(member: &Member<'_>, now: Timestamp) -> Option<RolloutStatus> {
    let desired = member.workload.as_ref()?;
    if member.phase == Phase::Missing || member.component.is_deleting() {
        return None;
    }
    let before = member.component.status.rollout.as_ref();
    rollout::record(
        before,
        &desired.revision,
        member.phase,
        member.live.as_ref(),
        now,
    )
}
