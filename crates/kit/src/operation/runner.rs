//! Runs an operation.

use std::{future::Future, time::Duration};

use jiff::{SignedDuration, Timestamp};
use tokio_util::sync::CancellationToken;

use super::{
    AttemptResult, Cause, Journal, JournalError, NextStep, OperationOutcome, Step, StepAttempt,
    StepList, StoredTimeline, decide,
};
use crate::{clock::Clock, controller::Backoff, planted, why::Code};

/// The result of an attempt that did not fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// The step is done.
    Done,
    /// The step waits for something, described here.
    NotYet(String),
}

/// Why an attempt failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What happened.
    pub cause: Cause,
    /// Whether another attempt may succeed.
    pub retryable: bool,
}

/// Runs the steps of an operation. Steps must be idempotent: each may run again after it succeeded.
pub trait StepHandler: Send + Sync {
    /// Makes one attempt at a step. Requests to other systems should carry the key and the fence of the
    /// attempt, if those systems support them.
    fn attempt(
        &self,
        attempt: &StepAttempt,
    ) -> impl Future<Output = Result<Progress, Failure>> + Send;
}

/// Why a runner has returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunState {
    /// The operation is finished.
    Finished(OperationOutcome),
    /// The next attempt is due after this time.
    Waiting(Duration),
    /// The runner was stopped; the next one makes the attempt again.
    Stopped,
}

/// An operation, and what is needed to run it.
#[derive(Debug)]
pub struct Runner<'a, J, W> {
    /// The id of the operation in the journal.
    pub id: &'a str,
    /// The steps of the operation.
    pub step_list: &'a StepList,
    /// The storage of its timeline.
    pub journal: &'a J,
    /// The handler of its steps.
    pub handler: &'a W,
    /// The clock of the process.
    pub clock: Clock,
}

impl<J: Journal, W: StepHandler> Runner<'_, J, W> {
    /// Runs the operation until it is finished, or until `stop`. A running attempt is then abandoned,
    /// and the next runner makes it again. `None` if it was stopped.
    pub async fn run(
        &self,
        stop: &CancellationToken,
    ) -> Result<Option<OperationOutcome>, JournalError> {
        loop {
            match self.run_until_waiting(stop).await? {
                RunState::Finished(outcome) => return Ok(Some(outcome)),
                RunState::Stopped => return Ok(None),
                RunState::Waiting(time) => tokio::select! {
                    () = stop.cancelled() => return Ok(None),
                    () = self.clock.sleep(time) => {}
                },
            }
        }
    }

    /// Runs the operation until it is finished or its next attempt is not yet due.
    pub async fn run_until_waiting(
        &self,
        stop: &CancellationToken,
    ) -> Result<RunState, JournalError> {
        let mut conflicts = 0;
        loop {
            let stored = self.journal.load(self.id).await?;
            match self.advance(stored, stop).await {
                Ok(Some(run_state)) => return Ok(run_state),
                Ok(None) => conflicts = 0,
                // The operation was cancelled, or another process runs it. Retry with backoff, so that
                // repeated conflicts do not flood the server.
                Err(JournalError::Conflict) => {
                    planted!(ConflictsAtOnce => continue);
                    conflicts += 1;
                    let wait = Backoff::default().wait(&self.id, conflicts);
                    tokio::select! {
                        () = stop.cancelled() => return Ok(RunState::Stopped),
                        () = self.clock.sleep(wait) => {}
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Does what is next. None if there may be more to do at once.
    async fn advance(
        &self,
        stored: StoredTimeline,
        stop: &CancellationToken,
    ) -> Result<Option<RunState>, JournalError> {
        let StoredTimeline {
            mut timeline,
            version: seen,
            identity,
        } = stored;
        let now = self.clock.now();
        match decide(self.step_list, &timeline, now) {
            NextStep::End(outcome) => {
                if !timeline.is_finished() {
                    timeline.outcome = Some(outcome.clone());
                    self.journal.save(self.id, &timeline, &seen).await?;
                }
                Ok(Some(RunState::Finished(outcome)))
            }
            NextStep::Wait(due) => Ok(Some(RunState::Waiting(time_until(now, due)))),
            NextStep::Attempt(index) => {
                let step = &self.step_list.steps[index];
                timeline.begin(index, step, now);
                let seen = self.journal.save(self.id, &timeline, &seen).await?;
                let step_attempt = StepAttempt::new(&identity, step.name, timeline.attempts());
                let Some(result) = self.attempt(step, &step_attempt, stop).await else {
                    return Ok(Some(RunState::Stopped));
                };
                timeline.record_attempt(step, result, self.clock.now());
                self.journal.save(self.id, &timeline, &seen).await?;
                Ok(None)
            }
        }
    }

    /// Makes an attempt and returns its result; none if `stop` came first.
    async fn attempt(
        &self,
        step: &Step,
        attempt: &StepAttempt,
        stop: &CancellationToken,
    ) -> Option<AttemptResult> {
        let attempt = self.handler.attempt(attempt);
        let attempt = self.clock.within(step.timeout(), attempt);
        let ended = tokio::select! {
            () = stop.cancelled() => return None,
            ended = attempt => ended,
        };
        Some(match ended {
            Some(Ok(Progress::Done)) => AttemptResult::Done,
            Some(Ok(Progress::NotYet(what))) => AttemptResult::NotYet(Cause::new(what)),
            Some(Err(failure)) if failure.retryable => AttemptResult::Failed(failure.cause),
            Some(Err(failure)) => AttemptResult::FailedPermanently(failure.cause),
            None => AttemptResult::Failed(Cause::coded(
                Code("NT-KIT-003"),
                format!("it took longer than {:?}", step.timeout()),
            )),
        })
    }
}

fn time_until(now: Timestamp, due: Timestamp) -> Duration {
    let remaining: SignedDuration = due.duration_since(now);
    remaining.try_into().unwrap_or_default()
}
