//! Carries an operation out.

use std::{future::Future, time::Duration};

use jiff::{SignedDuration, Timestamp};
use tokio_util::sync::CancellationToken;

use super::{
    Attempt, Cause, Journal, JournalError, Kept, Next, Outcome, Script, Step, Task, decide,
};
use crate::{clock::Clock, controller::Backoff, planted, why::Code};

/// What an attempt that did not fail came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// The step is done.
    Done,
    /// What is waited for is not so yet; in words.
    NotYet(String),
}

/// Why an attempt failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Why.
    pub cause: Cause,
    /// Whether another attempt may succeed.
    pub may_pass: bool,
}

/// Does the steps of a script. Each may be done again, and must then find that it is done.
pub trait Work: Send + Sync {
    /// One attempt at the step that `task` names. What it asks of others it asks with the key and
    /// the fence of the task, if they can use them.
    fn attempt(&self, task: &Task) -> impl Future<Output = Result<Progress, Failure>> + Send;
}

/// How an operation stands that nothing is to be done for at the moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It is over.
    Over(Outcome),
    /// What is next is due after this time.
    Waits(Duration),
    /// It was stopped, and whoever goes on later does the step again.
    Stopped,
}

/// One operation and those who carry it out.
#[derive(Debug)]
pub struct Runner<'a, J, W> {
    /// Which operation of the journal.
    pub id: &'a str,
    /// What is to be done.
    pub script: &'a Script,
    /// Where the timeline is kept.
    pub journal: &'a J,
    /// Who does the steps.
    pub work: &'a W,
    /// Where time comes from.
    pub clock: Clock,
}

impl<J: Journal, W: Work> Runner<'_, J, W> {
    /// Goes on with the operation until it ends, or until `stop`, when the step under way is left
    /// for whoever goes on later. `None` if it was stopped.
    pub async fn run(&self, stop: &CancellationToken) -> Result<Option<Outcome>, JournalError> {
        loop {
            match self.go_on(stop).await? {
                Standing::Over(outcome) => return Ok(Some(outcome)),
                Standing::Stopped => return Ok(None),
                Standing::Waits(time) => tokio::select! {
                    () = stop.cancelled() => return Ok(None),
                    () = self.clock.sleep(time) => {}
                },
            }
        }
    }

    /// Goes on with the operation until there is nothing to be done for a while.
    pub async fn go_on(&self, stop: &CancellationToken) -> Result<Standing, JournalError> {
        let mut conflicts = 0;
        loop {
            let kept = self.journal.load(self.id).await?;
            match self.advance(kept, stop).await {
                Ok(Some(standing)) => return Ok(standing),
                Ok(None) => conflicts = 0,
                // Somebody asked for it to be cancelled, or goes on elsewhere. If it stays so, asking
                // again at once would keep everybody else from being answered.
                Err(JournalError::Conflict) => {
                    planted!(ConflictsAtOnce => continue);
                    conflicts += 1;
                    let wait = Backoff::default().wait(&self.id, conflicts);
                    tokio::select! {
                        () = stop.cancelled() => return Ok(Standing::Stopped),
                        () = self.clock.sleep(wait) => {}
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Does what is next; how the operation stands if nothing is to be done now.
    async fn advance(
        &self,
        kept: Kept,
        stop: &CancellationToken,
    ) -> Result<Option<Standing>, JournalError> {
        let Kept {
            mut timeline,
            version: seen,
            identity,
        } = kept;
        let now = self.clock.now();
        match decide(self.script, &timeline, now) {
            Next::End(outcome) => {
                if !timeline.is_over() {
                    timeline.outcome = Some(outcome.clone());
                    self.journal.save(self.id, &timeline, &seen).await?;
                }
                Ok(Some(Standing::Over(outcome)))
            }
            Next::Wait(due) => Ok(Some(Standing::Waits(until(now, due)))),
            Next::Attempt(index) => {
                let step = &self.script.steps[index];
                timeline.begin(index, step, now);
                let seen = self.journal.save(self.id, &timeline, &seen).await?;
                let task = Task::new(&identity, step.name, timeline.attempts());
                let Some(attempt) = self.attempt(step, &task, stop).await else {
                    return Ok(Some(Standing::Stopped));
                };
                timeline.note(step, attempt, self.clock.now());
                self.journal.save(self.id, &timeline, &seen).await?;
                Ok(None)
            }
        }
    }

    /// What an attempt came to; nothing if it was broken off.
    async fn attempt(&self, step: &Step, task: &Task, stop: &CancellationToken) -> Option<Attempt> {
        let attempt = self.clock.within(step.limit(), self.work.attempt(task));
        let ended = tokio::select! {
            () = stop.cancelled() => return None,
            ended = attempt => ended,
        };
        Some(match ended {
            Some(Ok(Progress::Done)) => Attempt::Done,
            Some(Ok(Progress::NotYet(what))) => Attempt::NotYet(Cause::new(what)),
            Some(Err(failure)) if failure.may_pass => Attempt::Failed(failure.cause),
            Some(Err(failure)) => Attempt::Hopeless(failure.cause),
            None => Attempt::Failed(Cause::coded(
                Code("NT-KIT-003"),
                format!("it took longer than {:?}", step.limit()),
            )),
        })
    }
}

fn until(now: Timestamp, due: Timestamp) -> Duration {
    let left: SignedDuration = due.duration_since(now);
    left.try_into().unwrap_or_default()
}
