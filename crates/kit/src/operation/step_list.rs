//! The steps of an operation.

use std::time::Duration;

/// The steps of a kind of operation, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepList {
    /// The kind of work, as users call it.
    pub kind: &'static str,
    /// The steps, run one after the other.
    pub steps: Vec<Step>,
}

/// A step of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The name of the step, unique in its list.
    pub name: &'static str,
    /// How it is retried.
    pub kind: StepKind,
}

/// How a step is retried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepKind {
    /// Attempted once: a failure ends the operation.
    Action {
        /// The time after which the attempt has failed.
        timeout: Duration,
    },
    /// Polled until a condition holds.
    Condition {
        /// The time between two attempts.
        poll_interval: Duration,
        /// The time after which the step has failed if the condition does not hold.
        timeout: Duration,
    },
    /// Attempted again after retryable failures.
    Retrying {
        /// The number and delays of retries.
        retry: RetryPolicy,
        /// The time after which an attempt has failed.
        timeout: Duration,
    },
}

/// How often and when a failed attempt is retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The maximum number of attempts.
    pub attempts: u32,
    /// The delay after the first attempt; it doubles with each further one.
    pub first: Duration,
    /// The longest delay.
    pub max: Duration,
}

impl RetryPolicy {
    /// The delay after this number of attempts.
    pub fn wait(&self, attempts: u32) -> Duration {
        let doublings = attempts.saturating_sub(1).min(31);
        self.first.saturating_mul(1 << doublings).min(self.max)
    }
}

impl Step {
    /// A step that is attempted once.
    pub fn action(name: &'static str, timeout: Duration) -> Self {
        Self {
            name,
            kind: StepKind::Action { timeout },
        }
    }

    /// A step that waits until a condition holds.
    pub fn condition(name: &'static str, poll_interval: Duration, timeout: Duration) -> Self {
        Self {
            name,
            kind: StepKind::Condition {
                poll_interval,
                timeout,
            },
        }
    }

    /// A step that is retried.
    pub fn retrying(name: &'static str, retry: RetryPolicy, timeout: Duration) -> Self {
        Self {
            name,
            kind: StepKind::Retrying { retry, timeout },
        }
    }

    /// The timeout of one attempt.
    pub fn timeout(&self) -> Duration {
        match self.kind {
            StepKind::Action { timeout }
            | StepKind::Condition { timeout, .. }
            | StepKind::Retrying { timeout, .. } => timeout,
        }
    }
}
