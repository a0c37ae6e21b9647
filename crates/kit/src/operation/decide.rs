//! What an operation does next.

use jiff::Timestamp;

use super::{Cause, OperationOutcome, StepKind, StepList, StepState, Timeline};
use crate::{planted, why::Code};

/// What an operation does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextStep {
    /// An attempt at the step with this index.
    Attempt(usize),
    /// Nothing before this moment.
    Wait(Timestamp),
    /// The operation is finished with this outcome.
    End(OperationOutcome),
}

/// What is next in `timeline`, the timeline of an operation with the steps of `step_list`.
///
/// An attempt that was running and has no result is made again: its process has ended. A step whose
/// attempts ended with the process too often is given up, unless it only waits for a condition.
pub fn decide(step_list: &StepList, timeline: &Timeline, now: Timestamp) -> NextStep {
    if let Some(outcome) = &timeline.outcome {
        return NextStep::End(outcome.clone());
    }
    let unfinished = |record: &super::StepRecord| record.state != StepState::Succeeded;
    let current = timeline.steps.iter().position(unfinished);
    let index = current.unwrap_or(timeline.steps.len());
    let Some(step) = step_list.steps.get(index) else {
        return NextStep::End(OperationOutcome::Succeeded);
    };
    if let Some(cause) = &timeline.cancelled {
        let step = Some(step.name.to_owned());
        return NextStep::End(OperationOutcome::Cancelled {
            step,
            cause: cause.clone(),
        });
    }
    let Some(record) = timeline.steps.get(index) else {
        return NextStep::Attempt(index);
    };
    let failed = |cause: Cause| {
        let step = record.name.clone();
        NextStep::End(OperationOutcome::Failed { step, cause })
    };
    match (record.state, record.due) {
        (StepState::Failed, _) => failed(record.cause.clone().unwrap_or_else(unknown_cause)),
        (StepState::Waiting, Some(due)) if due > now => NextStep::Wait(due),
        (StepState::Running, _) if is_given_up(&step.kind, record.attempts) => failed(crashed()),
        _ => NextStep::Attempt(index),
    }
}

/// Whether a step is given up because its attempts ended with the process.
fn is_given_up(kind: &StepKind, attempts: u32) -> bool {
    const MAX_CRASHED_ATTEMPTS: u32 = 5;
    planted!(CrashIsFailure => return true);
    match kind {
        StepKind::Condition { .. } => false,
        StepKind::Action { .. } => attempts >= MAX_CRASHED_ATTEMPTS,
        StepKind::Retrying { retry, .. } => attempts >= retry.attempts.max(MAX_CRASHED_ATTEMPTS),
    }
}

fn crashed() -> Cause {
    Cause::coded(Code("NT-KIT-014"), "the process ended during every attempt")
}

fn unknown_cause() -> Cause {
    Cause::new("no cause was recorded")
}
