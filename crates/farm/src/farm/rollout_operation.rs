//! A roll-out of a farm as one Operation: which components it changes, in which order, and since when. Pure.
//!
//! No runner carries it out. What comes next follows from the state of the farm at any moment, and not from
//! what was done before; the timeline records what each decision finds. So it is written only when something
//! begins or ends, it is right again after whatever was missed, and a farm without this record is rolled out
//! in the same way.
//!
//! An operation is about one version of each component: if one changes again, it ends as cancelled, and the next
//! one begins.

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use neap_kit::{
    apply::{ObjectRef, ResourceKind},
    key::Key,
    operation::{
        Cause, Operation, OperationOutcome, StepList, StepRecord, StepState, Target, Timeline,
    },
};

use crate::api::{FARM_LABEL, MANAGED_BY_LABEL, MANAGER};

/// The kind of work.
pub const WORK: &str = "farm-rollout";
/// How many operations that have ended are kept for a farm.
const KEPT: usize = 5;

/// The state of a component in a roll-out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ComponentProgress {
    /// It is ready in its newest version.
    Settled,
    /// It waits for a component before it.
    Pending,
    /// It is changed at this moment; the text says what that waits for.
    Running(String),
    /// It stays as it is because of this.
    Failed(String),
}

/// A component of a roll-out.
#[derive(Debug, Clone, PartialEq)]
pub struct RolloutComponent {
    /// Kind and name.
    pub name: String,
    /// The version that it should have.
    pub revision: String,
    /// Its state.
    pub progress: ComponentProgress,
    /// Whether pods of another version have been ready, and will be replaced.
    pub replaces: bool,
    /// It as an owner.
    pub owner: OwnerReference,
}

/// What the record of a roll-out depends on.
#[derive(Debug)]
pub struct RolloutFacts<'a> {
    /// Namespace and name of the farm.
    pub farm: &'a Key,
    /// All Operations of the namespace; none if their kind is not served.
    pub operations: Option<&'a [Operation]>,
    /// The components that are not being deleted, in the order of a roll-out.
    pub components: Vec<RolloutComponent>,
    /// The time.
    pub now: Timestamp,
}

/// Writes to Operations, in this order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RolloutRecord {
    /// Operations whose status changes: before and after.
    pub updates: Vec<(Operation, Operation)>,
    /// The operation that begins. It exists before the farm is changed.
    pub begins: Option<Operation>,
    /// Old operations that are deleted.
    pub forgotten: Vec<ObjectRef>,
}

/// What is recorded.
pub fn decide(facts: &RolloutFacts<'_>) -> RolloutRecord {
    let mut record = RolloutRecord::default();
    let Some(operations) = facts.operations else {
        return record;
    };
    let ours = operations.iter().filter(|it| is_ours(it, facts.farm));
    let mut ended = Vec::new();
    let mut current = None;
    for operation in ours {
        let timeline = operation.timeline();
        if timeline.is_finished() {
            ended.push(operation);
            continue;
        }
        let next = if is_about(operation, &facts.components) {
            current = Some(operation);
            advance(facts, operation, &timeline)
        } else {
            superseded(&timeline, facts.now)
        };
        if next != timeline {
            let after = operation.with_timeline(&next, facts.now);
            record.updates.push((operation.clone(), after));
        }
    }
    if current.is_none() && facts.components.iter().any(begins) {
        record.begins = Some(new(facts, operations));
    }
    ended.sort_by_key(|operation| number(operation));
    let surplus = ended.len().saturating_sub(KEPT);
    record.forgotten = ended[..surplus].iter().map(|it| reference(it)).collect();
    record
}

/// Whether the operation rolls out what the components should be now. Those that were created or deleted since
/// do not matter to it.
fn is_about(operation: &Operation, components: &[RolloutComponent]) -> bool {
    components.iter().all(|component| {
        let revision = operation.spec.parameters.get(&component.name);
        revision.is_none_or(|revision| *revision == component.revision)
    })
}

/// Whether a component begins to be changed. One that waits does not: what it waits for may have failed, and
/// that operation has ended.
fn begins(component: &RolloutComponent) -> bool {
    component.replaces && matches!(component.progress, ComponentProgress::Running(_))
}

fn is_ours(operation: &Operation, farm: &Key) -> bool {
    let label = operation.labels().get(FARM_LABEL);
    operation.spec.work == WORK && label.map_or("", String::as_str) == farm.name()
}

fn reference(operation: &Operation) -> ObjectRef {
    ObjectRef {
        kind: ResourceKind::of::<Operation>(),
        key: Key::of(operation),
        uid: operation.uid().unwrap_or_default(),
    }
}

fn prefix(farm: &Key) -> String {
    match farm.name() {
        "" => "rollout-".to_owned(),
        name => format!("{name}-rollout-"),
    }
}

/// The number at the end of its name.
fn number(operation: &Operation) -> u64 {
    let name = operation.name_any();
    let number = name.rsplit('-').next().and_then(|it| it.parse().ok());
    number.unwrap_or(0)
}

fn new(facts: &RolloutFacts<'_>, operations: &[Operation]) -> Operation {
    let prefix = prefix(facts.farm);
    // Whatever has such a name keeps it.
    let taken = operations
        .iter()
        .filter(|it| it.name_any().starts_with(&prefix));
    let next = taken.map(number).max().unwrap_or(0) + 1;
    let key = Key::new(facts.farm.namespace(), &format!("{prefix}{next}"));
    let list = StepList {
        kind: WORK,
        steps: Vec::new(),
    };
    let changed = facts.components.iter().filter(|it| {
        matches!(
            it.progress,
            ComponentProgress::Running(_) | ComponentProgress::Pending
        )
    });
    let first = facts.components.iter().find(|it| begins(it));
    let owner = first.map(|it| &it.owner);
    let target = Target {
        api_version: owner.map_or_else(String::new, |it| it.api_version.clone()),
        kind: owner.map_or_else(String::new, |it| it.kind.clone()),
        namespace: facts.farm.namespace().to_owned(),
        name: owner.map_or_else(String::new, |it| it.name.clone()),
    };
    let mut operation = Operation::planned(&key, &list, target);
    operation.spec.steps = changed.map(|it| it.name.clone()).collect();
    let revisions = facts.components.iter();
    let revisions = revisions.map(|it| (it.name.clone(), it.revision.clone()));
    operation.spec.parameters = revisions.collect();
    let labels = operation.labels_mut();
    labels.insert(MANAGED_BY_LABEL.to_owned(), MANAGER.to_owned());
    if !facts.farm.name().is_empty() {
        labels.insert(FARM_LABEL.to_owned(), facts.farm.name().to_owned());
    }
    let owners = facts.components.iter().map(|it| OwnerReference {
        controller: None,
        block_owner_deletion: None,
        ..it.owner.clone()
    });
    operation.metadata.owner_references = Some(owners.collect());
    operation
}

/// The timeline after what was found now.
fn advance(facts: &RolloutFacts<'_>, operation: &Operation, before: &Timeline) -> Timeline {
    let mut timeline = before.clone();
    // A request to cancel it is not followed: what is rolled out is what the specs say.
    timeline.cancelled = None;
    let mut all_done = true;
    for name in &operation.spec.steps {
        let component = facts.components.iter().find(|it| it.name == *name);
        let progress = component.map(|it| &it.progress);
        let position = timeline.position(name, 0);
        let was_done = position.is_some_and(|at| timeline.steps[at].state.is_done());
        let (state, cause) = match progress {
            // Its pods were ready in this version. Later they may not be, which is another matter.
            _ if was_done => continue,
            None => (StepState::Skipped, Some("it was deleted".to_owned())),
            Some(ComponentProgress::Settled) => (StepState::Succeeded, None),
            Some(ComponentProgress::Running(why)) => (StepState::Running, Some(why.clone())),
            // One that fails before its turn does not stop those before it.
            Some(ComponentProgress::Failed(_)) if !all_done => continue,
            Some(ComponentProgress::Failed(why)) => (StepState::Failed, Some(why.clone())),
            Some(ComponentProgress::Pending) => {
                all_done = false;
                continue;
            }
        };
        let at = position.unwrap_or_else(|| {
            timeline.steps.push(started(name, facts.now));
            timeline.steps.len() - 1
        });
        let step = &mut timeline.steps[at];
        step.state = state;
        step.cause = cause.map(Cause::new);
        if state == StepState::Running {
            all_done = false;
            continue;
        }
        step.ended = Some(facts.now);
        if state == StepState::Failed {
            timeline.outcome = Some(OperationOutcome::Failed {
                step: name.clone(),
                cause: step.cause.clone().unwrap_or_else(|| Cause::new("")),
            });
            return timeline;
        }
    }
    if all_done {
        timeline.outcome = Some(OperationOutcome::Succeeded);
    }
    timeline
}

/// The timeline of a roll-out whose farm has changed since.
fn superseded(before: &Timeline, now: Timestamp) -> Timeline {
    let mut timeline = before.clone();
    let cause = Cause::new("the farm changed again, which begins another roll-out");
    let mut steps = timeline.steps.iter_mut();
    let running = steps.find(|step| !step.state.is_done());
    let step = running.map(|step| {
        step.state = StepState::Failed;
        step.ended = Some(now);
        step.cause = Some(cause.clone());
        step.name.clone()
    });
    timeline.cancelled = Some(cause.clone());
    timeline.outcome = Some(OperationOutcome::Cancelled { step, cause });
    timeline
}

fn started(name: &str, now: Timestamp) -> StepRecord {
    StepRecord {
        name: name.to_owned(),
        state: StepState::Running,
        began: now,
        ended: None,
        attempts: 1,
        interrupted: 0,
        polled: None,
        failures: Vec::new(),
        due: None,
        cause: None,
    }
}
