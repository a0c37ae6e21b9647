//! The payload controller: from the Jobs and ProwJobs of a release to its verdict.
//!
//! The verdict is a function of recorded facts. All of them are in the ReleasePayload itself: the override
//! in its spec, the results of Jobs and runs in its status. So the verdict can be explained, and computed
//! again later ([`crate::replay`]).
//!
//! Invariants:
//! - a payload is never accepted and rejected at the same time;
//! - a payload is accepted only if its image was created;
//! - the result of a run that has ended does not change any more;
//! - with unchanged facts nothing is written.

pub mod decide;
pub mod facts;
mod phase;
pub mod run_token;
#[cfg(test)]
pub(crate) mod samples;

pub use phase::Phase;
