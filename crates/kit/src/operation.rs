//! Long work as ordered steps with a timeline that survives a crash.
//!
//! A [`Script`] says what the steps are, a [`Timeline`] what became of them so far, and [`decide`]
//! what is next. A [`Runner`] does it: before and after each attempt the timeline is in a
//! [`Journal`], so whoever takes over goes on at the step that was under way. A step may therefore
//! be run again after it succeeded unnoticed, and must bear it. Steps know nothing of who runs them.
//! Journals are kept in memory, or as [`Operation`] objects that everybody can look at and cancel.
//!
//! Invariants:
//! - a step begins only after all before it have succeeded;
//! - a timeline that has ended does not change;
//! - attempts are counted before they are made, so that one that kills the process counts.

mod api;
mod decide;
mod journal;
mod objects;
mod runner;
mod script;
mod service;
mod story;
mod task;
#[cfg(test)]
mod tests;
mod timeline;

pub use self::{
    api::{Operation, OperationSpec, OperationStatus, Phase, StepStatus, Target},
    decide::{Next, decide},
    journal::{InMemory, Journal, JournalError, Kept, Version},
    objects::Objects,
    runner::{Failure, Progress, Runner, Standing, Work},
    script::{How, Retry, Script, Step},
    service::service,
    task::Task,
    timeline::{Attempt, Cause, Entry, Outcome, State, Timeline},
};
