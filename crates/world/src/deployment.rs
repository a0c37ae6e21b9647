//! Keeps a Deployment's pods at its template, by ReplicaSets: one for each template it has had.
//!
//! The set of the present template grows while the others shrink, within the room that the strategy
//! leaves; sets of former templates are kept, empty, as the revisions one can go back to. A
//! Deployment that is paused, or whose wished number has changed, only spreads its pods over the
//! sets it has.

mod annotation;
mod condition;
mod decide;
mod history;
mod roll;
mod run;
mod scale;
mod sets;
mod size;
mod status;
#[cfg(test)]
mod tests;

pub use self::run::service;
