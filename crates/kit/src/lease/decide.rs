//! What a candidate does next, from what it has seen.

use std::time::Duration;

use super::{Record, Timings};
use crate::clock::Uptime;

/// A Lease as one candidate sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sight {
    /// What it said when it was last read.
    pub record: Record,
    /// The version that was read, which a write must name.
    pub version: String,
    /// When this candidate first saw it so, by its own clock.
    pub since: Uptime,
}

impl Sight {
    /// What is known after the Lease was read again: a Lease that did not change was seen before.
    pub fn read(earlier: Option<Self>, record: Record, version: String, now: Uptime) -> Self {
        match earlier {
            Some(earlier) if earlier.version == version => earlier,
            _ => Self {
                record,
                version,
                since: now,
            },
        }
    }

    /// When another than the holder may take it.
    pub(super) fn expires(&self) -> Uptime {
        self.since.saturating_add(self.record.duration)
    }
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// There is no Lease: make one.
    Create,
    /// It was let go of, or has not changed for its duration: take it, in the state that was seen.
    Acquire,
    /// It is ours: renew it, in the state that was seen.
    Renew,
    /// It is ours and new enough, or another's: look again at this moment, or when it changes.
    Wait(Uptime),
}

/// What candidate `me` does with the Lease as it sees it.
///
/// `renewed` is when the last renewal that succeeded was *begun*: by then at the latest, others
/// began to count.
pub fn decide(
    me: &str,
    timings: &Timings,
    sight: Option<&Sight>,
    renewed: Option<Uptime>,
    now: Uptime,
) -> Decision {
    let Some(sight) = sight else {
        return Decision::Create;
    };
    match (&sight.record.holder, renewed) {
        (None, _) => Decision::Acquire,
        // A name that is ours without our having taken it in this life is that of a predecessor.
        (Some(holder), Some(renewed)) if holder == me => due(renewed, timings.retry, now),
        _ if sight.expires() <= now => Decision::Acquire,
        _ => Decision::Wait(sight.expires()),
    }
}

fn due(renewed: Uptime, retry: Duration, now: Uptime) -> Decision {
    let next = renewed.saturating_add(retry);
    if next <= now {
        Decision::Renew
    } else {
        Decision::Wait(next)
    }
}
