//! Conversion between a timeline and the status of its Operation object.

use jiff::Timestamp;

use super::{
    Cause, Operation, OperationOutcome, OperationStatus, Phase, StepRecord, StepState, StepStatus,
    Timeline,
};
use crate::{
    status::{Readiness, updated_conditions},
    why::Code,
};

/// The code of operations that were cancelled in their spec.
const CANCELLED: Code = Code("NT-KIT-005");

/// For work that no [`Runner`](super::Runner) carries out, such as that of a level-triggered controller: it
/// records what it finds.
impl Operation {
    /// What is recorded about its progress.
    pub fn timeline(&self) -> Timeline {
        timeline(self)
    }

    /// The same operation with this progress.
    pub fn with_timeline(&self, timeline: &Timeline, now: Timestamp) -> Self {
        Self {
            status: Some(status(self, timeline, now)),
            ..self.clone()
        }
    }
}

/// The timeline of `operation`; cancelled if `cancel` is set in its spec.
pub(super) fn timeline(operation: &Operation) -> Timeline {
    let status = operation.status.clone().unwrap_or_default();
    let reason = operation.spec.cancel_reason.as_deref();
    let reason = reason.unwrap_or("cancellation was requested");
    let requested = operation
        .spec
        .cancel
        .then(|| Cause::coded(CANCELLED, reason));
    let outcome = outcome(&status);
    Timeline {
        steps: status.steps.into_iter().map(step_record).collect(),
        deadline: operation.spec.deadline,
        cancelled: status.cancelled.or(requested),
        message: status.result,
        outcome,
    }
}

fn outcome(status: &OperationStatus) -> Option<OperationOutcome> {
    let cause = status.cause.clone();
    let cause = cause.unwrap_or_else(|| Cause::new("no cause was recorded"));
    match status.phase {
        Phase::Pending | Phase::Running => None,
        Phase::Succeeded => Some(OperationOutcome::Succeeded),
        Phase::Failed => Some(OperationOutcome::Failed {
            step: status.step.clone().unwrap_or_default(),
            cause,
        }),
        Phase::Cancelled => Some(OperationOutcome::Cancelled {
            step: status.step.clone(),
            cause,
        }),
    }
}

/// The status of `operation` for `timeline`.
pub(super) fn status(
    operation: &Operation,
    timeline: &Timeline,
    now: Timestamp,
) -> OperationStatus {
    let (phase, cause) = phase(timeline);
    let done = |record: &&StepRecord| record.state.is_done();
    let done = timeline.steps.iter().filter(done).count();
    let message = message(timeline);
    let generation = operation.metadata.generation;
    let old = operation.status.as_ref();
    let old = old.map(|status| &*status.conditions).unwrap_or_default();
    let condition_updates = readiness(phase, message.clone()).condition_updates();
    OperationStatus {
        phase,
        step: step(timeline),
        progress: Some(format!("{done}/{}", operation.spec.steps.len())),
        message: Some(message),
        steps: timeline.steps.iter().map(step_status).collect(),
        cancelled: timeline.cancelled.clone(),
        result: timeline.message.clone(),
        cause,
        conditions: updated_conditions(old, &condition_updates, generation, now),
        observed_generation: generation,
    }
}

fn phase(timeline: &Timeline) -> (Phase, Option<Cause>) {
    match &timeline.outcome {
        None if timeline.steps.is_empty() => (Phase::Pending, None),
        None => (Phase::Running, None),
        Some(OperationOutcome::Succeeded) => (Phase::Succeeded, None),
        Some(OperationOutcome::Failed { cause, .. }) => (Phase::Failed, Some(cause.clone())),
        Some(OperationOutcome::Cancelled { cause, .. }) => (Phase::Cancelled, Some(cause.clone())),
    }
}

fn step(timeline: &Timeline) -> Option<String> {
    match &timeline.outcome {
        Some(OperationOutcome::Failed { step, .. }) => Some(step.clone()),
        Some(OperationOutcome::Cancelled { step, .. }) => step.clone(),
        _ => timeline.steps.last().map(|record| record.name.clone()),
    }
}

fn message(timeline: &Timeline) -> String {
    match (&timeline.outcome, timeline.steps.last()) {
        (Some(OperationOutcome::Succeeded), _) => "every step is done".to_owned(),
        (Some(OperationOutcome::Failed { step, cause }), _) => {
            format!("the step {step} failed: {}", cause.message)
        }
        (Some(OperationOutcome::Cancelled { step, cause }), _) => {
            let before = step.as_deref().unwrap_or("its end");
            format!(
                "it was cancelled before {before} was done: {}",
                cause.message
            )
        }
        (None, None) => "no step has started yet".to_owned(),
        (None, Some(record)) => step_message(record),
    }
}

fn step_message(record: &StepRecord) -> String {
    let StepRecord { name, attempts, .. } = record;
    let cause = record.cause.as_ref().map(|cause| &cause.message);
    match (record.state, cause) {
        (StepState::Succeeded, _) => format!("the step {name} is done"),
        (StepState::Waiting, Some(cause)) => {
            format!("the step {name} waits after attempt {attempts}: {cause}")
        }
        _ => format!("attempt {attempts} at the step {name}"),
    }
}

fn readiness(phase: Phase, message: String) -> Readiness {
    match phase {
        Phase::Pending => Readiness::Reconciling("Pending", message),
        Phase::Running => Readiness::Reconciling("Running", message),
        Phase::Succeeded => Readiness::Ready("Succeeded", message),
        Phase::Failed => Readiness::Stalled("Failed", message),
        Phase::Cancelled => Readiness::Stalled("Cancelled", message),
    }
}

fn step_record(step: StepStatus) -> StepRecord {
    StepRecord {
        name: step.name,
        state: step.state,
        began: step.started,
        ended: step.ended,
        attempts: step.attempts,
        interrupted: step.interrupted,
        polled: step.polled,
        failures: step.failures,
        due: step.due,
        cause: step.cause,
    }
}

fn step_status(record: &StepRecord) -> StepStatus {
    StepStatus {
        name: record.name.clone(),
        state: record.state,
        attempts: record.attempts,
        interrupted: record.interrupted,
        polled: record.polled,
        failures: record.failures.clone(),
        started: record.began,
        ended: record.ended,
        due: record.due,
        cause: record.cause.clone(),
    }
}
