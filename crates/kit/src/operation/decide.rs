//! What an operation does next.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::{Cause, OperationOutcome, Step, StepKind, StepList, StepRecord, StepState, Timeline};
use crate::{planted, why::Code};

/// What an operation does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextStep {
    /// An attempt at the step with this index.
    Attempt(usize),
    /// The step with this index is recorded as skipped.
    Skip(usize),
    /// Nothing before this moment.
    Wait(Timestamp),
    /// The operation is finished with this outcome.
    End(OperationOutcome),
}

/// What is next in `timeline`, the timeline of an operation with the steps of `step_list`. `ran` has the
/// indexes of the steps that ran in this process.
///
/// Steps are matched with their records by name and occurrence, so that another version of the program
/// may insert steps, which run, and drop steps, whose records stay. An attempt that was running and has
/// no result is made again: its process has ended. A step whose attempts ended with the process too
/// often is given up, unless it only waits for a condition.
pub fn decide(
    step_list: &StepList,
    timeline: &Timeline,
    ran: &BTreeSet<usize>,
    now: Timestamp,
) -> NextStep {
    if let Some(outcome) = &timeline.outcome {
        return NextStep::End(outcome.clone());
    }
    let matched = match match_records(step_list, timeline) {
        Ok(matched) => matched,
        Err(cause) => return failed(&current_name(timeline), cause),
    };
    let unfinished = |record: Option<&StepRecord>| !record.is_some_and(|it| it.state.is_done());
    let Some(index) = matched.iter().copied().position(unfinished) else {
        return NextStep::End(OperationOutcome::Succeeded);
    };
    let step = &step_list.steps[index];
    if let Some(cause) = &timeline.cancelled {
        return NextStep::End(OperationOutcome::Cancelled {
            step: Some(step.name.to_owned()),
            cause: cause.clone(),
        });
    }
    if timeline.deadline.is_some_and(|deadline| now >= deadline) {
        let cause = Cause::coded(Code("NT-KIT-031"), "the operation exceeded its deadline");
        return failed(step.name, cause);
    }
    let rerun = |at: &usize| {
        let done = matched[*at].is_some_and(|it| it.state == StepState::Succeeded);
        done && step_list.steps[*at].reruns && !ran.contains(at)
    };
    if let Some(at) = (0..index).find(rerun) {
        return NextStep::Attempt(at);
    }
    next(step, index, matched[index], now)
}

/// What is next for the first step that has not ended.
fn next(step: &Step, index: usize, record: Option<&StepRecord>, now: Timestamp) -> NextStep {
    if matches!(step.kind, StepKind::Skipped { .. }) {
        return NextStep::Skip(index);
    }
    let Some(record) = record else {
        return NextStep::Attempt(index);
    };
    match (record.state, record.due) {
        (StepState::Failed, _) => failed(
            &record.name,
            record.cause.clone().unwrap_or_else(unknown_cause),
        ),
        (StepState::Waiting, Some(due)) if due > now => NextStep::Wait(due),
        (StepState::Running, _) if is_given_up(&step.kind, record.interrupted) => {
            failed(&record.name, crashed())
        }
        _ => NextStep::Attempt(index),
    }
}

/// The record of each step of the list, or why the operation cannot continue with this list.
fn match_records<'a>(
    step_list: &StepList,
    timeline: &'a Timeline,
) -> Result<Vec<Option<&'a StepRecord>>, Cause> {
    let positions = (0..step_list.steps.len())
        .map(|index| timeline.position(step_list.steps[index].name, step_list.occurrence(index)));
    let positions: Vec<_> = positions.collect();
    let done = |at: usize| timeline.steps[at].state.is_done();
    let any_done = timeline.steps.iter().any(|record| record.state.is_done());
    let known: Vec<_> = positions.iter().flatten().copied().collect();
    if any_done && !known.iter().any(|at| done(*at)) {
        return Err(Cause::coded(
            Code("NT-KIT-032"),
            "this version of the program knows none of the steps that are done",
        ));
    }
    // A step that is inserted later has a later record, so only records that were made by a list of
    // another order are out of order: a running step before a done one.
    let current = known.iter().position(|at| !done(*at));
    if let Some(current) = current
        && known[current..].iter().any(|at| done(*at))
        && timeline.steps[known[current]].state == StepState::Failed
    {
        return Err(Cause::coded(
            Code("NT-KIT-032"),
            "this version of the program has the steps in another order",
        ));
    }
    Ok(positions
        .into_iter()
        .map(|at| at.map(|at| &timeline.steps[at]))
        .collect())
}

fn current_name(timeline: &Timeline) -> String {
    let last = timeline.steps.last();
    last.map_or_else(String::new, |record| record.name.clone())
}

fn failed(step: &str, cause: Cause) -> NextStep {
    NextStep::End(OperationOutcome::Failed {
        step: step.to_owned(),
        cause,
    })
}

/// Whether a step is given up because its attempts ended with the process.
fn is_given_up(kind: &StepKind, interrupted: u32) -> bool {
    const MAX_CRASHED_ATTEMPTS: u32 = 5;
    planted!(CrashIsFailure => return true);
    match kind {
        StepKind::Condition { .. } | StepKind::Skipped { .. } => false,
        StepKind::Action { .. } => interrupted >= MAX_CRASHED_ATTEMPTS,
        StepKind::Retrying { retry, .. } => interrupted >= retry.attempts.max(MAX_CRASHED_ATTEMPTS),
    }
}

fn crashed() -> Cause {
    Cause::coded(Code("NT-KIT-014"), "the process ended during every attempt")
}

fn unknown_cause() -> Cause {
    Cause::new("no cause was recorded")
}
