//! Leader election over a Lease, by the protocol of client-go.
//!
//! The Lease object names the leader. A candidate takes over when that object has not changed for the
//! lease duration *as measured by the candidate's own clock*, so clocks that disagree do no harm. The
//! leader renews the Lease, and stops writing before another candidate may take over.
//!
//! [`decide`] is pure and returns what to do; [`Elector`] does it; [`Leadership`] tells the other
//! components of the process whether they may start a write now.
//!
//! Invariants:
//! - a write starts only while [`Leadership::check`] allows it, and that ends before the lease expires
//!   for any other candidate, also for a process that was suspended in between and resumes;
//! - the Lease is written only in the version in which it was read.

mod decide;
mod elector;
mod leadership;
mod record;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use self::{
    decide::{Decision, ObservedLease, decide},
    elector::{ElectionOptions, Elector, Error},
    leadership::{Leadership, NotLeading, Term},
    record::LeaseRecord,
};

/// The timings of an election; the defaults are those of client-go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseTimings {
    /// How long the Lease must be unchanged before another candidate may take it.
    pub lease_duration: Duration,
    /// How long after the start of its last renewal a leader may start writes.
    pub renew_deadline: Duration,
    /// The time between renewals, and before a retry after a failure.
    pub retry_period: Duration,
}

impl Default for LeaseTimings {
    fn default() -> Self {
        Self {
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}
