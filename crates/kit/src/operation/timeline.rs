//! The recorded progress of an operation.

use std::time::Duration;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{OnTimeout, Step, StepKind};
use crate::{planted, schema, why::Code};

/// The recorded progress of one operation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Timeline {
    /// The steps that were started, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepRecord>,
    /// When the operation fails if it has not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// Why it was cancelled, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<Cause>,
    /// What it achieved, or what was found out about its failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
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
    /// The number of attempts that were started. Polls of a condition count as one.
    pub attempts: u32,
    /// The number of attempts since the last one that had a result: their process ended.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub interrupted: u32,
    /// When a poll of the condition was last recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polled: Option<Timestamp>,
    /// The last attempts that failed, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailedAttempt>,
    /// When the next attempt is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
    /// Why it failed, or what it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
}

/// An attempt that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailedAttempt {
    /// Its number among the attempts at its step.
    pub attempt: u32,
    /// When it ended.
    #[schemars(schema_with = "schema::time")]
    pub ended: Timestamp,
    /// Why it failed.
    pub cause: Cause,
}

/// The maximum number of failed attempts that a step keeps.
const MAX_FAILURES: usize = 8;

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(count: &u32) -> bool {
    *count == 0
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
    /// It was not attempted; the cause says why.
    Skipped,
    /// Its condition did not hold in time, and the operation continued.
    TimedOut,
}

impl StepState {
    /// Whether the steps after it may start.
    pub fn is_done(self) -> bool {
        matches!(self, Self::Succeeded | Self::Skipped | Self::TimedOut)
    }
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

    /// The index of the record of a step that was started: of the `occurrence`th of its name.
    pub fn position(&self, name: &str, occurrence: usize) -> Option<usize> {
        let same = self.steps.iter().enumerate();
        let mut same = same.filter(|(_, record)| record.name == name);
        same.nth(occurrence).map(|(at, _)| at)
    }

    fn record_mut(&mut self, step: &Step, occurrence: usize, now: Timestamp) -> &mut StepRecord {
        let at = self.position(step.name, occurrence).unwrap_or_else(|| {
            self.steps.push(StepRecord::started(step.name, now));
            self.steps.len() - 1
        });
        &mut self.steps[at]
    }

    /// Records the start of an attempt at the `occurrence`th step of this name.
    pub fn begin(&mut self, step: &Step, occurrence: usize, now: Timestamp) {
        let record = self.record_mut(step, occurrence, now);
        record.state = StepState::Running;
        record.attempts += 1;
        record.interrupted += 1;
        record.due = None;
        record.ended = None;
    }

    /// Records that a step is not attempted.
    pub fn skip(&mut self, step: &Step, occurrence: usize, reason: &str, now: Timestamp) {
        let record = self.record_mut(step, occurrence, now);
        record.state = StepState::Skipped;
        record.ended = Some(now);
        record.cause = Some(Cause::new(reason));
    }

    /// Records the result of an attempt at a step that was started.
    pub fn record_attempt(
        &mut self,
        step: &Step,
        occurrence: usize,
        result: AttemptResult,
        now: Timestamp,
    ) {
        let record = self.record_mut(step, occurrence, now);
        record.interrupted = 0;
        let failure = match &result {
            AttemptResult::Failed(cause) | AttemptResult::FailedPermanently(cause) => Some(cause),
            AttemptResult::Done | AttemptResult::NotYet(_) => None,
        };
        if let Some(cause) = failure {
            let (attempt, cause) = (record.attempts, cause.clone());
            if record.failures.len() == MAX_FAILURES {
                // The first failure says most about the cause, and the last ones about the state.
                record.failures.remove(1);
            }
            record.failures.push(FailedAttempt {
                attempt,
                ended: now,
                cause,
            });
        }
        let (state, due, cause) = after_attempt(step, record, result, now);
        record.state = state;
        record.due = due;
        record.cause = cause;
        record.polled = (state == StepState::Waiting).then_some(now);
        if state == StepState::Failed || state.is_done() {
            record.ended = Some(now);
        }
    }
}

impl StepRecord {
    fn started(name: &str, now: Timestamp) -> Self {
        Self {
            name: name.to_owned(),
            state: StepState::Running,
            began: now,
            ended: None,
            attempts: 0,
            interrupted: 0,
            polled: None,
            failures: Vec::new(),
            due: None,
            cause: None,
        }
    }
}

fn after(start: Timestamp, wait: Duration) -> Timestamp {
    start.checked_add(wait).unwrap_or(Timestamp::MAX)
}

/// The state of the step after an attempt, when the next attempt is due, and the cause.
fn after_attempt(
    step: &Step,
    record: &StepRecord,
    result: AttemptResult,
    now: Timestamp,
) -> (StepState, Option<Timestamp>, Option<Cause>) {
    match (&step.kind, result) {
        (_, AttemptResult::Done) => (StepState::Succeeded, None, None),
        (
            StepKind::Condition {
                poll_interval,
                timeout,
                on_timeout,
            },
            AttemptResult::NotYet(cause) | AttemptResult::Failed(cause),
        ) => {
            let deadline = after(record.began, *timeout);
            match on_timeout {
                _ if now < deadline => {
                    let due = after(now, *poll_interval).min(deadline);
                    (StepState::Waiting, Some(due), Some(cause))
                }
                OnTimeout::Fail => (StepState::Failed, None, Some(cause)),
                OnTimeout::Warn => (StepState::TimedOut, None, Some(cause)),
            }
        }
        (
            StepKind::Retrying {
                retry,
                give_up_after,
                ..
            },
            AttemptResult::NotYet(cause) | AttemptResult::Failed(cause),
        ) if record.attempts < retry.attempts => {
            let due = after(now, retry.wait(record.attempts));
            let end = give_up_after.map_or(Timestamp::MAX, |time| after(record.began, time));
            if due < end {
                (StepState::Waiting, Some(due), Some(cause))
            } else {
                (StepState::Failed, None, Some(cause))
            }
        }
        (
            _,
            AttemptResult::NotYet(cause)
            | AttemptResult::Failed(cause)
            | AttemptResult::FailedPermanently(cause),
        ) => (StepState::Failed, None, Some(cause)),
    }
}
