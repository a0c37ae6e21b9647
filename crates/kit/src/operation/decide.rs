//! What is next.

use jiff::Timestamp;

use super::{Cause, How, Outcome, Script, State, Timeline};
use crate::{planted, why::Code};

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// An attempt at the step with this index.
    Attempt(usize),
    /// Nothing before this time.
    Wait(Timestamp),
    /// It is over, like this.
    End(Outcome),
}

/// What is next in `timeline`, which is one of `script`.
///
/// An attempt that was under way and of which nothing is known is made again: whoever made it is
/// gone. Only one that may not be repeated without limit counts against its step.
pub fn decide(script: &Script, timeline: &Timeline, now: Timestamp) -> Next {
    if let Some(outcome) = &timeline.outcome {
        return Next::End(outcome.clone());
    }
    let unfinished = |entry: &super::Entry| entry.state != State::Succeeded;
    let current = timeline.steps.iter().position(unfinished);
    let index = current.unwrap_or(timeline.steps.len());
    let Some(step) = script.steps.get(index) else {
        return Next::End(Outcome::Succeeded);
    };
    if let Some(cause) = &timeline.cancelled {
        let step = Some(step.name.to_owned());
        return Next::End(Outcome::Cancelled {
            step,
            cause: cause.clone(),
        });
    }
    let Some(entry) = timeline.steps.get(index) else {
        return Next::Attempt(index);
    };
    let failed = |cause: Cause| {
        let step = entry.name.clone();
        Next::End(Outcome::Failed { step, cause })
    };
    match (entry.state, entry.due) {
        (State::Failed, _) => failed(entry.cause.clone().unwrap_or_else(unknown)),
        (State::Waiting, Some(due)) if due > now => Next::Wait(due),
        (State::Running, _) if is_spent(&step.how, entry.attempts) => failed(broken_off()),
        _ => Next::Attempt(index),
    }
}

/// Whether a step whose every attempt ended with the process is given up.
fn is_spent(how: &How, attempts: u32) -> bool {
    const CRASHES: u32 = 5;
    planted!(CrashIsFailure => return true);
    match how {
        How::Condition { .. } => false,
        How::Action { .. } => attempts >= CRASHES,
        How::Retrying { retry, .. } => attempts >= retry.attempts.max(CRASHES),
    }
}

fn broken_off() -> Cause {
    Cause::coded(Code("NT-KIT-014"), "the process ended during every attempt")
}

fn unknown() -> Cause {
    Cause::new("no cause was noted")
}
