//! Long-running work as ordered steps, with a timeline that survives a crash.
//!
//! A [`StepList`] defines the steps, a [`Timeline`] records their progress, and [`decide`] returns
//! what is next. A [`Runner`] does it: the timeline is saved in a [`Journal`] before and after each
//! attempt, so another process continues at the step that was running. A step may therefore run again
//! after it succeeded, and must be idempotent. Steps do not depend on the process that runs them.
//! Journals are kept in memory, or as [`Operation`] objects that users can read and cancel.
//!
//! Invariants:
//! - a step starts only after all steps before it have succeeded;
//! - a finished timeline does not change;
//! - a step that is done runs again only if it says so: in another process, because its result was in
//!   the memory of the first;
//! - a condition that is polled for an hour costs at most one write a minute;
//! - attempts are counted before they are made, so that one that kills the process counts.

mod api;
mod component;
mod decide;
mod journal;
mod operation_objects;
mod runner;
mod status_mapping;
mod step_attempt;
mod step_list;
#[cfg(test)]
mod tests;
mod timeline;

pub use self::{
    api::{Operation, OperationSpec, OperationStatus, Phase, StepStatus, Target},
    component::component,
    decide::{NextStep, decide},
    journal::{InMemoryJournal, Journal, JournalError, StoredTimeline, TimelineVersion},
    operation_objects::OperationObjects,
    runner::{Failure, Progress, RunState, Runner, Session, StepHandler},
    step_attempt::StepAttempt,
    step_list::{OnTimeout, RetryPolicy, Step, StepKind, StepList},
    timeline::{
        AttemptResult, Cause, FailedAttempt, OperationOutcome, StepRecord, StepState, Timeline,
    },
};
