//! Whether a host is called at all: pure.

use std::time::Duration;

use crate::clock::Uptime;

/// When calls to a host are refused without being sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CircuitPolicy {
    /// The number of consecutive failures after which the circuit opens.
    pub failures: u32,
    /// The time for which it opens first; it doubles each time that the probe fails.
    pub first_open: Duration,
    /// The longest time for which it opens.
    pub max_open: Duration,
}

impl Default for CircuitPolicy {
    fn default() -> Self {
        Self {
            failures: 10,
            first_open: Duration::from_secs(5),
            max_open: Duration::from_mins(1),
        }
    }
}

/// The circuit of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Circuit {
    /// Calls are sent.
    Closed { failures: u32 },
    /// Calls are refused until then.
    Open { until: Uptime, times: u32 },
    /// One call is under way, and decides.
    Probing { times: u32 },
}

impl Circuit {
    pub(super) const CLOSED: Self = Self::Closed { failures: 0 };

    /// Whether a call may be sent; if not, how long to wait.
    pub(super) fn admit(&mut self, policy: &CircuitPolicy, now: Uptime) -> Result<(), Duration> {
        match *self {
            Self::Closed { .. } => Ok(()),
            Self::Open { until, times } if now >= until => {
                *self = Self::Probing { times };
                Ok(())
            }
            Self::Open { until, .. } => Err(until.saturating_sub(now)),
            // The probe has its own deadline; ask again when it is likely to have ended.
            Self::Probing { .. } => Err(policy.first_open),
        }
    }

    pub(super) fn succeeded(&mut self) {
        *self = Self::CLOSED;
    }

    pub(super) fn failed(&mut self, policy: &CircuitPolicy, now: Uptime) {
        *self = match *self {
            Self::Closed { failures } if failures + 1 < policy.failures => Self::Closed {
                failures: failures + 1,
            },
            Self::Closed { .. } => Self::opened(policy, now, 1),
            Self::Probing { times } => Self::opened(policy, now, times.saturating_add(1)),
            // A call that was sent before it opened.
            open @ Self::Open { .. } => open,
        };
    }

    /// The caller gave up before there was a result.
    pub(super) fn abandoned(&mut self, now: Uptime) {
        if let Self::Probing { times } = *self {
            *self = Self::Open { until: now, times };
        }
    }

    fn opened(policy: &CircuitPolicy, now: Uptime, times: u32) -> Self {
        let doublings = times.saturating_sub(1).min(31);
        let open = policy.first_open.saturating_mul(1 << doublings);
        Self::Open {
            until: now.saturating_add(open.min(policy.max_open)),
            times,
        }
    }
}
