//! The recorded progress of an operation.

use std::time::Duration;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Step, StepKind};
use crate::{planted, why::Code};

/// The recorded progress of one operation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Timeline {
    /// The steps that were started, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepRecord>,
    /// Why it was cancelled, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<Cause>,
    /// How it ended, if it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<OperationOutcome>,
}

/// The recorded progress of one step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepRecord {
    /// The name of the step.
    pub name: String,
    /// The state of the step.
    pub state: StepState,
    /// When it was started.
    pub began: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
    /// The number of attempts that were started.
    pub attempts: u32,
    /// When the next attempt is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
    /// Why it failed, or what it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
}

/// The state of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum StepState {
    /// An attempt is running, or was when the process ended.
    Running,
    /// Another attempt will be made.
    Waiting,
    /// It is done.
    Succeeded,
    /// It will not be tried again.
    Failed,
}

/// A cause, for people and for programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cause {
    /// The code in the error catalogue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// What happened.
    pub message: String,
}

impl Cause {
    /// A cause without a code.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            code: None,
            message: message.into(),
        }
    }

    /// A cause with a code of the error catalogue.
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
pub enum OperationOutcome {
    /// Every step is done.
    Succeeded,
    /// A step failed for good.
    Failed {
        /// The name of the step.
        step: String,
        /// Why it ended.
        cause: Cause,
    },
    /// The operation was cancelled.
    Cancelled {
        /// The step that was running or next.
        step: Option<String>,
        /// Why it ended.
        cause: Cause,
    },
}

/// The result of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptResult {
    /// The step is done.
    Done,
    /// A condition does not hold yet.
    NotYet(Cause),
    /// It failed, and another attempt may succeed.
    Failed(Cause),
    /// It failed, and another attempt would fail as well.
    FailedPermanently(Cause),
}

impl Timeline {
    /// Whether the operation has ended.
    pub fn is_finished(&self) -> bool {
        self.outcome.is_some()
    }

    /// The number of attempts that were started, of all steps. No two attempts of an operation have the
    /// same number, in any process, because a timeline is written only in the version that was read.
    pub fn attempts(&self) -> u64 {
        planted!(FenceOfStep => return self.steps.last().map_or(0, |it| u64::from(it.attempts)));
        let attempts = self.steps.iter().map(|record| u64::from(record.attempts));
        attempts.sum()
    }

    /// Cancels the operation, unless it has ended. The first cause is kept.
    pub fn cancel(&mut self, cause: Cause) {
        if !self.is_finished() {
            self.cancelled.get_or_insert(cause);
        }
    }

    /// Records the start of an attempt at `step`, the `index`th.
    pub fn begin(&mut self, index: usize, step: &Step, now: Timestamp) {
        if let Some(record) = self.steps.get_mut(index) {
            record.state = StepState::Running;
            record.attempts += 1;
            record.due = None;
            return;
        }
        self.steps.push(StepRecord {
            name: step.name.to_owned(),
            state: StepState::Running,
            began: now,
            ended: None,
            attempts: 1,
            due: None,
            cause: None,
        });
    }

    /// Records the result of an attempt at `step`, the last that was started.
    pub fn record_attempt(&mut self, step: &Step, result: AttemptResult, now: Timestamp) {
        let Some(record) = self.steps.last_mut() else {
            return;
        };
        let (state, due, cause) = after_attempt(step, record, result, now);
        record.state = state;
        record.due = due;
        record.cause = cause;
        if matches!(state, StepState::Succeeded | StepState::Failed) {
            record.ended = Some(now);
        }
    }
}

/// The state of the step after an attempt, when the next attempt is due, and the cause.
fn after_attempt(
    step: &Step,
    record: &StepRecord,
    result: AttemptResult,
    now: Timestamp,
) -> (StepState, Option<Timestamp>, Option<Cause>) {
    let due_after = |wait: Duration| now.checked_add(wait).unwrap_or(Timestamp::MAX);
    match (&step.kind, result) {
        (_, AttemptResult::Done) => (StepState::Succeeded, None, None),
        (
            StepKind::Condition {
                poll_interval,
                timeout,
            },
            AttemptResult::NotYet(cause) | AttemptResult::Failed(cause),
        ) => {
            let deadline = record.began.checked_add(*timeout).unwrap_or(Timestamp::MAX);
            if now >= deadline {
                (StepState::Failed, None, Some(cause))
            } else {
                (
                    StepState::Waiting,
                    Some(due_after(*poll_interval).min(deadline)),
                    Some(cause),
                )
            }
        }
        (
            StepKind::Retrying { retry, .. },
            AttemptResult::NotYet(cause) | AttemptResult::Failed(cause),
        ) if record.attempts < retry.attempts => (
            StepState::Waiting,
            Some(due_after(retry.wait(record.attempts))),
            Some(cause),
        ),
        (
            _,
            AttemptResult::NotYet(cause)
            | AttemptResult::Failed(cause)
            | AttemptResult::FailedPermanently(cause),
        ) => (StepState::Failed, None, Some(cause)),
    }
}
