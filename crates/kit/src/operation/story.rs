//! Between a timeline and the status that tells it.

use jiff::Timestamp;

use super::{
    Cause, Entry, Operation, OperationStatus, Outcome, Phase, State, StepStatus, Timeline,
};
use crate::{
    status::{Standing, conditions},
    why::Code,
};

/// The entry of the catalogue for what somebody cancelled.
const CANCELLED: Code = Code("NT-KIT-005");

/// What became of `operation` so far. Who set `cancel` in its spec has cancelled it.
pub(super) fn timeline(operation: &Operation) -> Timeline {
    let status = operation.status.clone().unwrap_or_default();
    let reason = operation.spec.cancel_reason.as_deref();
    let reason = reason.unwrap_or("somebody asked for it to end");
    let asked = operation
        .spec
        .cancel
        .then(|| Cause::coded(CANCELLED, reason));
    let outcome = outcome(&status);
    Timeline {
        steps: status.steps.into_iter().map(entry).collect(),
        cancelled: status.cancelled.or(asked),
        outcome,
    }
}

fn outcome(status: &OperationStatus) -> Option<Outcome> {
    let cause = status.cause.clone();
    let cause = cause.unwrap_or_else(|| Cause::new("no cause was noted"));
    match status.phase {
        Phase::Pending | Phase::Running => None,
        Phase::Succeeded => Some(Outcome::Succeeded),
        Phase::Failed => Some(Outcome::Failed {
            step: status.step.clone().unwrap_or_default(),
            cause,
        }),
        Phase::Cancelled => Some(Outcome::Cancelled {
            step: status.step.clone(),
            cause,
        }),
    }
}

/// The status of `operation` when `timeline` is what became of it.
pub(super) fn status(
    operation: &Operation,
    timeline: &Timeline,
    now: Timestamp,
) -> OperationStatus {
    let (phase, cause) = phase(timeline);
    let done = |entry: &&Entry| entry.state == State::Succeeded;
    let done = timeline.steps.iter().filter(done).count();
    let message = message(timeline);
    let generation = operation.metadata.generation;
    let old = operation.status.as_ref();
    let old = old.map(|status| &*status.conditions).unwrap_or_default();
    let statements = standing(phase, message.clone()).statements();
    OperationStatus {
        phase,
        step: step(timeline),
        progress: Some(format!("{done}/{}", operation.spec.steps.len())),
        message: Some(message),
        steps: timeline.steps.iter().map(told).collect(),
        cancelled: timeline.cancelled.clone(),
        cause,
        conditions: conditions(old, &statements, generation, now),
        observed_generation: generation,
    }
}

fn phase(timeline: &Timeline) -> (Phase, Option<Cause>) {
    match &timeline.outcome {
        None if timeline.steps.is_empty() => (Phase::Pending, None),
        None => (Phase::Running, None),
        Some(Outcome::Succeeded) => (Phase::Succeeded, None),
        Some(Outcome::Failed { cause, .. }) => (Phase::Failed, Some(cause.clone())),
        Some(Outcome::Cancelled { cause, .. }) => (Phase::Cancelled, Some(cause.clone())),
    }
}

fn step(timeline: &Timeline) -> Option<String> {
    match &timeline.outcome {
        Some(Outcome::Failed { step, .. }) => Some(step.clone()),
        Some(Outcome::Cancelled { step, .. }) => step.clone(),
        _ => timeline.steps.last().map(|entry| entry.name.clone()),
    }
}

fn message(timeline: &Timeline) -> String {
    match (&timeline.outcome, timeline.steps.last()) {
        (Some(Outcome::Succeeded), _) => "every step is done".to_owned(),
        (Some(Outcome::Failed { step, cause }), _) => {
            format!("the step {step} failed: {}", cause.message)
        }
        (Some(Outcome::Cancelled { step, cause }), _) => {
            let before = step.as_deref().unwrap_or("its end");
            format!(
                "it was cancelled before {before} was done: {}",
                cause.message
            )
        }
        (None, None) => "no step was begun yet".to_owned(),
        (None, Some(entry)) => going_on(entry),
    }
}

fn going_on(entry: &Entry) -> String {
    let Entry { name, attempts, .. } = entry;
    let cause = entry.cause.as_ref().map(|cause| &cause.message);
    match (entry.state, cause) {
        (State::Succeeded, _) => format!("the step {name} is done"),
        (State::Waiting, Some(cause)) => {
            format!("the step {name} waits after attempt {attempts}: {cause}")
        }
        _ => format!("attempt {attempts} at the step {name}"),
    }
}

fn standing(phase: Phase, message: String) -> Standing {
    match phase {
        Phase::Pending => Standing::Reconciling("Pending", message),
        Phase::Running => Standing::Reconciling("Running", message),
        Phase::Succeeded => Standing::Ready("Succeeded", message),
        Phase::Failed => Standing::Stalled("Failed", message),
        Phase::Cancelled => Standing::Stalled("Cancelled", message),
    }
}

fn entry(step: StepStatus) -> Entry {
    Entry {
        name: step.name,
        state: step.state,
        began: step.started,
        ended: step.ended,
        attempts: step.attempts,
        due: step.due,
        cause: step.cause,
    }
}

fn told(entry: &Entry) -> StepStatus {
    StepStatus {
        name: entry.name.clone(),
        state: entry.state,
        attempts: entry.attempts,
        started: entry.began,
        ended: entry.ended,
        due: entry.due,
        cause: entry.cause.clone(),
    }
}
