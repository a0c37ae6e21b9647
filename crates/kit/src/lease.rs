//! Leader election over a Lease, by the protocol of client-go.
//!
//! Who leads is written in one object. A candidate takes over when that object has not changed for
//! the lease's duration *as the candidate itself has seen it*, so clocks that disagree do no harm.
//! The leader renews it, and stops writing well before anybody may take over.
//!
//! [`decide`] is pure and says what to do; [`Elector`] carries it out; [`Leadership`] is what
//! others hold: whether they may begin a write right now.
//!
//! Invariants:
//! - a write is begun only while [`Leadership::check`] says so, and that ends before the lease can
//!   expire for anybody else, also for a process that was stopped in between and goes on;
//! - the Lease is written only in the state in which it was read.

mod decide;
mod elector;
mod leadership;
mod record;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use self::{
    decide::{Decision, Sight, decide},
    elector::{Elector, Error, Options},
    leadership::{Leadership, NotLeading, Term},
    record::Record,
};

/// How long things last; the defaults are those of client-go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timings {
    /// How long the Lease must stay unchanged before another may take it.
    pub duration: Duration,
    /// How long after its last renewal began a leader may begin writes.
    pub deadline: Duration,
    /// How often a leader renews, and anybody tries again after a failure.
    pub retry: Duration,
}

impl Default for Timings {
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(15),
            deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }
}
