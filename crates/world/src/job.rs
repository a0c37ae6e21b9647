//! Runs the pods of a Job until enough of them have succeeded or too many have failed.
//!
//! A pod that ended is counted once, whatever happens to it or to the controller meanwhile: it has
//! a finalizer until the Job's status lists its uid, and is listed there until the finalizer is
//! removed; only then is it added to a count. A Job ends in two steps: a first condition says that
//! its result is decided, a second one that it is complete or has failed, once none of its pods
//! runs.

mod controller;
mod count;
mod decide;
mod failure_policy;
mod indexes;
mod pods;
mod result;
#[cfg(test)]
mod tests;

pub use self::controller::component;
pub(crate) use self::result::finished_at;
