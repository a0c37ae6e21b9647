//! Runs an operation.

use std::{collections::BTreeSet, future::Future, time::Duration};

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::{
    AttemptResult, Cause, Journal, JournalError, NextStep, OperationOutcome, Step, StepAttempt,
    StepKind, StepList, StepRecord, StepState, StoredTimeline, Timeline, TimelineVersion, decide,
};
use crate::{
    clock::Clock,
    controller::Backoff,
    planted,
    telemetry::{StepEnded, Telemetry},
    why::Code,
};

/// How often the polls of a condition are recorded, at most.
const POLL_RECORD_INTERVAL: Duration = Duration::from_mins(1);
/// The time in which a handler finds out more about a failure.
const FAILURE_HOOK_TIMEOUT: Duration = Duration::from_mins(2);
/// The maximum length of what it found out, in bytes.
const MAX_MESSAGE: usize = 4096;

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
    /// attempt, if those systems support them. An attempt at a condition only reads.
    fn attempt(
        &self,
        attempt: &StepAttempt,
    ) -> impl Future<Output = Result<Progress, Failure>> + Send;

    /// Refreshes what may be outdated, as credentials, before a retry of a retrying step.
    fn refresh(&self, attempt: &StepAttempt) -> impl Future<Output = Result<(), Failure>> + Send {
        let _ = attempt;
        std::future::ready(Ok(()))
    }

    /// Finds out more about the failure of a step, once, before the operation ends.
    fn on_failure(&self, step: &str, cause: &Cause) -> impl Future<Output = Option<String>> + Send {
        let _ = (step, cause);
        std::future::ready(None)
    }

    /// What the operation achieved, for users.
    fn result(&self) -> Option<String> {
        None
    }
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

/// The steps of one operation that ran in this process.
#[derive(Debug, Default)]
pub struct Session(Mutex<BTreeSet<usize>>);

/// An operation, and what is needed to run it.
#[derive(Debug)]
pub struct Runner<'a, J, W> {
    id: &'a str,
    step_list: &'a StepList,
    journal: &'a J,
    handler: &'a W,
    clock: Clock,
    session: SessionRef<'a>,
    interrupt: CancellationToken,
    telemetry: Option<&'a Telemetry>,
}

/// A session that is borrowed from the process, or as long as the runner.
#[derive(Debug)]
enum SessionRef<'a> {
    Borrowed(&'a Session),
    Owned(Session),
}

impl std::ops::Deref for SessionRef<'_> {
    type Target = Session;

    fn deref(&self) -> &Session {
        match self {
            Self::Borrowed(session) => session,
            Self::Owned(session) => session,
        }
    }
}

impl<'a, J: Journal, W: StepHandler> Runner<'a, J, W> {
    /// Runs the operation `id` of `journal`.
    pub fn new(
        id: &'a str,
        step_list: &'a StepList,
        journal: &'a J,
        handler: &'a W,
        clock: Clock,
    ) -> Self {
        Self {
            id,
            step_list,
            journal,
            handler,
            clock,
            session: SessionRef::Owned(Session::default()),
            interrupt: CancellationToken::new(),
            telemetry: None,
        }
    }

    /// The same runner, which continues what earlier runners of this process did.
    pub fn in_session(mut self, session: &'a Session) -> Self {
        self.session = SessionRef::Borrowed(session);
        self
    }

    /// The same runner, which ends the running attempt at `interrupt` and reads the timeline again:
    /// for operations that are cancelled.
    pub fn interrupted_by(mut self, interrupt: CancellationToken) -> Self {
        self.interrupt = interrupt;
        self
    }

    /// The same runner, which counts and logs steps.
    pub fn with_telemetry(mut self, telemetry: &'a Telemetry) -> Self {
        self.telemetry = Some(telemetry);
        self
    }

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
                RunState::Waiting(time) => {
                    let interrupted = self.interrupted();
                    tokio::select! {
                        () = stop.cancelled() => return Ok(None),
                        () = interrupted => {}
                        () = self.clock.sleep(time) => {}
                    }
                }
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
        let ran = self.session.0.lock().clone();
        match decide(self.step_list, &timeline, &ran, now) {
            NextStep::End(outcome) => {
                if !timeline.is_finished() {
                    self.end(&mut timeline, &outcome).await;
                    self.journal.save(self.id, &timeline, &seen).await?;
                }
                Ok(Some(RunState::Finished(outcome)))
            }
            NextStep::Wait(due) => Ok(Some(RunState::Waiting(time_until(now, due)))),
            NextStep::Skip(index) => {
                self.skip_from(index, &mut timeline, now);
                self.journal.save(self.id, &timeline, &seen).await?;
                Ok(None)
            }
            NextStep::Attempt(index) => {
                let identity = &identity;
                self.make_attempt(index, timeline, seen, identity, stop)
                    .await
            }
        }
    }

    /// Records how the operation ends, with what the handler has to say about it.
    async fn end(&self, timeline: &mut Timeline, outcome: &OperationOutcome) {
        timeline.outcome = Some(outcome.clone());
        let message = match outcome {
            OperationOutcome::Succeeded => self.handler.result(),
            OperationOutcome::Failed { step, cause } => {
                let found = self.handler.on_failure(step, cause);
                self.clock
                    .within(FAILURE_HOOK_TIMEOUT, found)
                    .await
                    .flatten()
            }
            OperationOutcome::Cancelled { .. } => None,
        };
        timeline.message = message.map(|mut text| {
            let mut end = MAX_MESSAGE.min(text.len());
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            text.truncate(end);
            text
        });
    }

    /// Skips what is skipped after the step that has ended, in the write that records its end.
    fn skip_after(&self, index: usize, timeline: &mut Timeline, now: Timestamp) {
        let mut ran = self.session.0.lock().clone();
        ran.insert(index);
        if let NextStep::Skip(next) = decide(self.step_list, timeline, &ran, now) {
            self.skip_from(next, timeline, now);
        }
    }

    /// Skips the step and those after it that are skipped as well, in one write.
    fn skip_from(&self, index: usize, timeline: &mut Timeline, now: Timestamp) {
        for (at, step) in self.step_list.steps.iter().enumerate().skip(index) {
            let StepKind::Skipped { reason } = step.kind else {
                return;
            };
            timeline.skip(step, self.step_list.occurrence(at), reason, now);
        }
    }

    async fn make_attempt(
        &self,
        index: usize,
        mut timeline: Timeline,
        mut seen: TimelineVersion,
        identity: &str,
        stop: &CancellationToken,
    ) -> Result<Option<RunState>, JournalError> {
        let step = &self.step_list.steps[index];
        let occurrence = self.step_list.occurrence(index);
        let recorded = timeline.position(step.name, occurrence);
        let is_poll = matches!(step.kind, StepKind::Condition { .. }) && recorded.is_some();
        if !is_poll {
            timeline.begin(step, occurrence, self.clock.now());
            seen = self.journal.save(self.id, &timeline, &seen).await?;
        }
        let step_attempt = StepAttempt::new(identity, step.name, occurrence, timeline.attempts());
        let result = match self.attempt(step, &step_attempt, &timeline, stop).await {
            Interruptible::Ended(result) => result,
            Interruptible::Interrupted => return Ok(None),
            Interruptible::Stopped => return Ok(Some(RunState::Stopped)),
        };
        let now = self.clock.now();
        let before = timeline.clone();
        timeline.record_attempt(step, occurrence, result, now);
        let at = timeline.position(step.name, occurrence);
        let record = at.and_then(|at| timeline.steps.get(at));
        if let Some(record) = record
            && record.state == StepState::Waiting
            && is_poll
            && let Some(polled) = recorded.and_then(|at| before.steps[at].polled)
            && now < polled.checked_add(POLL_RECORD_INTERVAL).unwrap_or(now)
        {
            // A poll that changed nothing: it is in the journal soon enough.
            let due = record.due.unwrap_or(now);
            return Ok(Some(RunState::Waiting(time_until(now, due))));
        }
        let ended = record.filter(|record| record.ended.is_some()).cloned();
        if ended.is_some() {
            self.skip_after(index, &mut timeline, now);
        }
        self.journal.save(self.id, &timeline, &seen).await?;
        if let Some(record) = ended {
            self.session.0.lock().insert(index);
            self.report(&record);
        }
        Ok(None)
    }

    fn report(&self, record: &StepRecord) {
        let Some(telemetry) = self.telemetry else {
            return;
        };
        let took = record.ended.unwrap_or(record.began) - record.began;
        telemetry.emit(&StepEnded {
            work: self.step_list.kind,
            step: &record.name,
            operation: self.id,
            result: match record.state {
                StepState::Succeeded => "succeeded",
                StepState::TimedOut => "timed_out",
                _ => "failed",
            },
            attempts: record.attempts,
            cause: record.cause.as_ref().map(|cause| &*cause.message),
            took: Duration::try_from(took).unwrap_or_default(),
        });
    }

    /// Makes an attempt and returns its result, unless something ends it before.
    async fn attempt(
        &self,
        step: &Step,
        attempt: &StepAttempt,
        timeline: &Timeline,
        stop: &CancellationToken,
    ) -> Interruptible {
        let now = self.clock.now();
        let left = timeline
            .deadline
            .map_or(Duration::MAX, |deadline| time_until(now, deadline));
        let timeout = step.timeout().min(left);
        let retries = matches!(step.kind, StepKind::Retrying { .. })
            && timeline
                .steps
                .iter()
                .any(|record| record.name == step.name && !record.failures.is_empty());
        let making = async {
            if retries {
                self.handler.refresh(attempt).await?;
            }
            self.handler.attempt(attempt).await
        };
        let making = self.clock.within(timeout, making);
        let interrupted = self.interrupted();
        let ended = tokio::select! {
            () = stop.cancelled() => return Interruptible::Stopped,
            () = interrupted => return Interruptible::Interrupted,
            ended = making => ended,
        };
        Interruptible::Ended(match ended {
            Some(Ok(Progress::Done)) => AttemptResult::Done,
            Some(Ok(Progress::NotYet(what))) => AttemptResult::NotYet(Cause::new(what)),
            Some(Err(failure)) if failure.retryable => AttemptResult::Failed(failure.cause),
            Some(Err(failure)) => AttemptResult::FailedPermanently(failure.cause),
            None => AttemptResult::Failed(Cause::coded(
                Code("NT-KIT-003"),
                format!("it took longer than {timeout:?}"),
            )),
        })
    }

    /// Resolves at an interrupt. One that came before is in the timeline that was read.
    fn interrupted(&self) -> impl Future<Output = ()> + use<J, W> {
        let came_before = self.interrupt.is_cancelled();
        let interrupt = self.interrupt.clone();
        async move {
            if came_before {
                std::future::pending::<()>().await;
            }
            interrupt.cancelled().await;
        }
    }
}

/// How an attempt ended.
enum Interruptible {
    Ended(AttemptResult),
    Interrupted,
    Stopped,
}

fn time_until(now: Timestamp, due: Timestamp) -> Duration {
    let remaining: SignedDuration = due.duration_since(now);
    remaining.try_into().unwrap_or_default()
}
