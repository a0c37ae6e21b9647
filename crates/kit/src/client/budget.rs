//! How many retries a host may be sent: pure.

use std::time::Duration;

use crate::clock::Uptime;

/// Bounds retries by a share of the calls, so that a host in trouble does not get several times its
/// usual load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BudgetPolicy {
    /// The retries that each call adds to the budget.
    pub per_call: f64,
    /// The retries that each second adds: for hosts that are called rarely.
    pub per_second: f64,
    /// The most that can be saved up; a new host starts with it.
    pub reserve: f64,
}

impl Default for BudgetPolicy {
    fn default() -> Self {
        Self {
            per_call: 0.2,
            per_second: 1.0,
            reserve: 20.0,
        }
    }
}

/// The retries that are left for a host.
#[derive(Debug, Clone, Copy)]
pub(super) struct RetryBudget {
    retries: f64,
    as_of: Uptime,
}

impl RetryBudget {
    pub(super) fn new(policy: &BudgetPolicy, now: Uptime) -> Self {
        Self {
            retries: policy.reserve,
            as_of: now,
        }
    }

    /// Counts a call.
    pub(super) fn deposit(&mut self, policy: &BudgetPolicy, now: Uptime) {
        self.refill(policy, now);
        self.retries = (self.retries + policy.per_call).min(policy.reserve);
    }

    /// Takes a retry, if one is left.
    pub(super) fn withdraw(&mut self, policy: &BudgetPolicy, now: Uptime) -> bool {
        self.refill(policy, now);
        let left = self.retries >= 1.0;
        if left {
            self.retries -= 1.0;
        }
        left
    }

    fn refill(&mut self, policy: &BudgetPolicy, now: Uptime) {
        let passed: Duration = now.saturating_sub(self.as_of);
        self.as_of = now;
        let added = passed.as_secs_f64() * policy.per_second;
        self.retries = (self.retries + added).min(policy.reserve);
    }
}
