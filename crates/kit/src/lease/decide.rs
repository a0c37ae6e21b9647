//! What a candidate does next, given the Lease that it observed.

use std::time::Duration;

use super::{LeaseRecord, LeaseTimings};
use crate::clock::Uptime;

/// A Lease as one candidate observed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedLease {
    /// Its content when it was last read.
    pub record: LeaseRecord,
    /// The resource version that was read; a write must name it.
    pub version: String,
    /// When this candidate first observed that version, by its own clock.
    pub since: Uptime,
}

impl ObservedLease {
    /// The observation after another read: an unchanged version keeps its time.
    pub fn read(earlier: Option<Self>, record: LeaseRecord, version: String, now: Uptime) -> Self {
        match earlier {
            Some(earlier) if earlier.version == version => earlier,
            _ => Self {
                record,
                version,
                since: now,
            },
        }
    }

    /// When a candidate other than the holder may take it.
    pub(super) fn expires(&self) -> Uptime {
        self.since.saturating_add(self.record.lease_duration)
    }
}

/// What a candidate does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// There is no Lease: create it.
    Create,
    /// It was released or has expired: take it, in the version that was observed.
    Acquire,
    /// It is ours: renew it, in the version that was observed.
    Renew,
    /// It is ours and not due for renewal, or another candidate's: decide again at this moment, or
    /// when it changes.
    Wait(Uptime),
}

/// What candidate `me` does with the Lease that it observed.
///
/// `renewed` is when the last successful renewal was *started*: no other candidate began to measure
/// the lease duration before that.
pub fn decide(
    me: &str,
    timings: &LeaseTimings,
    observed: Option<&ObservedLease>,
    renewed: Option<Uptime>,
    now: Uptime,
) -> Decision {
    let Some(observed) = observed else {
        return Decision::Create;
    };
    match (&observed.record.holder, renewed) {
        (None, _) => Decision::Acquire,
        // Our name without an acquisition by this process is that of an earlier process.
        (Some(holder), Some(renewed)) if holder == me => {
            renew_when_due(renewed, timings.retry_period, now)
        }
        _ if observed.expires() <= now => Decision::Acquire,
        _ => Decision::Wait(observed.expires()),
    }
}

fn renew_when_due(renewed: Uptime, retry_period: Duration, now: Uptime) -> Decision {
    let next = renewed.saturating_add(retry_period);
    if next <= now {
        Decision::Renew
    } else {
        Decision::Wait(next)
    }
}
