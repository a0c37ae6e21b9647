//! Probes: whether a container has started, lives, and may be given work.
//!
//! [`Tally`] counts results and says when they mean something; [`check`] asks once. Who asks when
//! is the node's business.

mod check;
mod grpc;
#[cfg(test)]
mod tests;
mod tls;

use std::time::Duration;

use k8s_openapi::api::core::v1::Probe;

pub(super) use self::check::{Asked, check};

/// What a row of results comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finding {
    /// Often enough well.
    Well,
    /// Often enough ill.
    Ill,
    /// Nothing new.
    Open,
}

/// Counts results of one probe.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tally {
    successes_wanted: u32,
    failures_allowed: u32,
    row: (bool, u32),
}

impl Tally {
    pub(super) fn new(probe: &Probe) -> Self {
        let at_least_one =
            |count: Option<i32>, usual: i32| count.unwrap_or(usual).max(1).unsigned_abs();
        Self {
            successes_wanted: at_least_one(probe.success_threshold, 1),
            failures_allowed: at_least_one(probe.failure_threshold, 3),
            row: (true, 0),
        }
    }

    /// Takes in a result.
    pub(super) fn note(&mut self, well: bool) -> Finding {
        let (former, count) = self.row;
        let count = if former == well {
            count.saturating_add(1)
        } else {
            1
        };
        self.row = (well, count);
        match well {
            true if count >= self.successes_wanted => Finding::Well,
            false if count >= self.failures_allowed => Finding::Ill,
            _ => Finding::Open,
        }
    }
}

/// How long after the start the first question comes.
pub(super) fn delay(probe: &Probe) -> Duration {
    seconds(probe.initial_delay_seconds, 0)
}

/// How often is asked.
pub(super) fn period(probe: &Probe) -> Duration {
    seconds(probe.period_seconds, 10).max(Duration::from_secs(1))
}

/// How long an answer may take.
pub(super) fn limit(probe: &Probe) -> Duration {
    seconds(probe.timeout_seconds, 1).max(Duration::from_secs(1))
}

fn seconds(asked: Option<i32>, usual: i32) -> Duration {
    Duration::from_secs(asked.unwrap_or(usual).max(0).unsigned_abs().into())
}
