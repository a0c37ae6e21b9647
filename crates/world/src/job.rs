//! Runs the pods of a Job until enough of them succeeded, or too many failed.
//!
//! A pod that ended is counted once, whatever happens to it or to us meanwhile: it has a finalizer
//! until the Job's status names it, and is named there until the finalizer is off; only then is it
//! a number. A Job that is over says so in two steps: that it is decided, and, when none of its
//! pods runs any more, that it is complete or has failed.

mod count;
mod decide;
mod indexes;
mod pods;
mod policy;
mod run;
#[cfg(test)]
mod tests;
mod verdict;

pub use self::run::service;
pub(crate) use self::verdict::finished_at;
