//! Probes: whether a container has started, is alive, and is ready.
//!
//! [`ProbeCounter`] counts results against the thresholds; [`check`] probes once. The node
//! schedules the probes.

mod check;
mod grpc;
#[cfg(test)]
mod tests;
mod tls;

use std::time::Duration;

use k8s_openapi::api::core::v1::Probe;

pub(super) use self::check::{ProbeCheck, check};

/// The result of a probe against its thresholds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProbeOutcome {
    /// The success threshold is reached.
    Success,
    /// The failure threshold is reached.
    Failure,
    /// No threshold is reached.
    Undecided,
}

/// Counts consecutive results of one probe.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProbeCounter {
    successes_wanted: u32,
    failures_allowed: u32,
    row: (bool, u32),
}

impl ProbeCounter {
    pub(super) fn new(probe: &Probe) -> Self {
        let at_least_one =
            |count: Option<i32>, default: i32| count.unwrap_or(default).max(1).unsigned_abs();
        Self {
            successes_wanted: at_least_one(probe.success_threshold, 1),
            failures_allowed: at_least_one(probe.failure_threshold, 3),
            row: (true, 0),
        }
    }

    /// Records a result.
    pub(super) fn record(&mut self, success: bool) -> ProbeOutcome {
        let (former, count) = self.row;
        let count = if former == success {
            count.saturating_add(1)
        } else {
            1
        };
        self.row = (success, count);
        match success {
            true if count >= self.successes_wanted => ProbeOutcome::Success,
            false if count >= self.failures_allowed => ProbeOutcome::Failure,
            _ => ProbeOutcome::Undecided,
        }
    }
}

/// The delay between the start and the first probe.
pub(super) fn initial_delay(probe: &Probe) -> Duration {
    seconds(probe.initial_delay_seconds, 0)
}

/// The interval between probes.
pub(super) fn period(probe: &Probe) -> Duration {
    seconds(probe.period_seconds, 10).max(Duration::from_secs(1))
}

/// The timeout of a probe.
pub(super) fn timeout(probe: &Probe) -> Duration {
    seconds(probe.timeout_seconds, 1).max(Duration::from_secs(1))
}

fn seconds(value: Option<i32>, default: i32) -> Duration {
    Duration::from_secs(value.unwrap_or(default).max(0).unsigned_abs().into())
}
