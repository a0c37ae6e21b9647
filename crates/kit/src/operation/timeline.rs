//! What became of an operation so far.

use std::time::Duration;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{How, Step};
use crate::{planted, why::Code};

/// The story of one operation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Timeline {
    /// The steps that were begun, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Entry>,
    /// Why it shall not go on, once somebody has said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<Cause>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}

/// One step of the story.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// The step's name.
    pub name: String,
    /// Where it stands.
    pub state: State,
    /// When it was begun.
    pub began: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
    /// How many attempts were begun.
    pub attempts: u32,
    /// When the next attempt is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
    /// Why it failed, or what it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
}

/// Where a step stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum State {
    /// An attempt is under way, or was when the process ended.
    Running,
    /// Another attempt is to be made.
    Waiting,
    /// It is done.
    Succeeded,
    /// It will not be tried again.
    Failed,
}

/// Why, for people and for programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cause {
    /// The entry of the error catalogue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// What happened.
    pub message: String,
}

impl Cause {
    /// A cause that has no entry of its own in the catalogue.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            code: None,
            message: message.into(),
        }
    }

    /// A cause that the catalogue explains.
    pub fn coded(code: Code, message: impl Into<String>) -> Self {
        Self {
            code: Some(code.to_string()),
            message: message.into(),
        }
    }
}

/// How an operation ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "result")]
pub enum Outcome {
    /// Every step is done.
    Succeeded,
    /// A step failed for good.
    Failed {
        /// Which one.
        step: String,
        /// Why.
        cause: Cause,
    },
    /// Somebody asked for it to end.
    Cancelled {
        /// The step that was next or under way.
        step: Option<String>,
        /// Why.
        cause: Cause,
    },
}

/// What an attempt came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attempt {
    /// The step is done.
    Done,
    /// A condition does not hold yet.
    NotYet(Cause),
    /// It failed, in a way that may pass.
    Failed(Cause),
    /// It failed, and would again.
    Hopeless(Cause),
}

impl Timeline {
    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        self.outcome.is_some()
    }

    /// How many attempts were begun, at all steps. No two attempts of an operation have the same
    /// number, whoever makes them, because a timeline is written only in the state that was read.
    pub fn attempts(&self) -> u64 {
        planted!(FenceOfStep => return self.steps.last().map_or(0, |it| u64::from(it.attempts)));
        let attempts = self.steps.iter().map(|entry| u64::from(entry.attempts));
        attempts.sum()
    }

    /// Asks for the operation to end. The first who asks is remembered.
    pub fn cancel(&mut self, cause: Cause) {
        if !self.is_over() {
            self.cancelled.get_or_insert(cause);
        }
    }

    /// Notes that an attempt at `step`, the `index`th, begins.
    pub fn begin(&mut self, index: usize, step: &Step, now: Timestamp) {
        if let Some(entry) = self.steps.get_mut(index) {
            entry.state = State::Running;
            entry.attempts += 1;
            entry.due = None;
            return;
        }
        self.steps.push(Entry {
            name: step.name.to_owned(),
            state: State::Running,
            began: now,
            ended: None,
            attempts: 1,
            due: None,
            cause: None,
        });
    }

    /// Notes what the attempt at `step`, the last that was begun, came to.
    pub fn note(&mut self, step: &Step, attempt: Attempt, now: Timestamp) {
        let Some(entry) = self.steps.last_mut() else {
            return;
        };
        let (state, due, cause) = judge(step, entry, attempt, now);
        entry.state = state;
        entry.due = due;
        entry.cause = cause;
        if matches!(state, State::Succeeded | State::Failed) {
            entry.ended = Some(now);
        }
    }
}

/// Where the step stands after the attempt, when it is tried again, and why.
fn judge(
    step: &Step,
    entry: &Entry,
    attempt: Attempt,
    now: Timestamp,
) -> (State, Option<Timestamp>, Option<Cause>) {
    let again = |wait: Duration| now.checked_add(wait).unwrap_or(Timestamp::MAX);
    match (&step.how, attempt) {
        (_, Attempt::Done) => (State::Succeeded, None, None),
        (How::Condition { poll, limit }, Attempt::NotYet(cause) | Attempt::Failed(cause)) => {
            let deadline = entry.began.checked_add(*limit).unwrap_or(Timestamp::MAX);
            if now >= deadline {
                (State::Failed, None, Some(cause))
            } else {
                (
                    State::Waiting,
                    Some(again(*poll).min(deadline)),
                    Some(cause),
                )
            }
        }
        (How::Retrying { retry, .. }, Attempt::NotYet(cause) | Attempt::Failed(cause))
            if entry.attempts < retry.attempts =>
        {
            (
                State::Waiting,
                Some(again(retry.wait(entry.attempts))),
                Some(cause),
            )
        }
        (_, Attempt::NotYet(cause) | Attempt::Failed(cause) | Attempt::Hopeless(cause)) => {
            (State::Failed, None, Some(cause))
        }
    }
}
