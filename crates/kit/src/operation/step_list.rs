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
    /// The name of the step. A list may name a step more than once: its occurrences are told apart by
    /// their order.
    pub name: &'static str,
    /// How it is retried.
    pub kind: StepKind,
    /// Whether it runs again after every restart, because its result is only in memory.
    pub reruns: bool,
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
        /// The time after which the step ends if the condition does not hold.
        timeout: Duration,
        /// How it ends then.
        on_timeout: OnTimeout,
    },
    /// Attempted again after retryable failures. What may be outdated is refreshed between attempts.
    Retrying {
        /// The number and delays of retries.
        retry: RetryPolicy,
        /// The time after which an attempt has failed.
        timeout: Duration,
        /// The time after the first attempt after which no further one is made.
        give_up_after: Option<Duration>,
    },
    /// Not attempted at all.
    Skipped {
        /// Why.
        reason: &'static str,
    },
}

/// How a condition ends that did not hold in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnTimeout {
    /// The operation fails.
    Fail,
    /// The operation continues, and the step says that it did not hold.
    Warn,
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
    fn new(name: &'static str, kind: StepKind) -> Self {
        Self {
            name,
            kind,
            reruns: false,
        }
    }

    /// A step that is attempted once.
    pub fn action(name: &'static str, timeout: Duration) -> Self {
        Self::new(name, StepKind::Action { timeout })
    }

    /// A step that waits until a condition holds. Polls only read, so they are neither counted nor
    /// recorded one by one.
    pub fn condition(name: &'static str, poll_interval: Duration, timeout: Duration) -> Self {
        Self::new(
            name,
            StepKind::Condition {
                poll_interval,
                timeout,
                on_timeout: OnTimeout::Fail,
            },
        )
    }

    /// A step that is retried.
    pub fn retrying(name: &'static str, retry: RetryPolicy, timeout: Duration) -> Self {
        Self::new(
            name,
            StepKind::Retrying {
                retry,
                timeout,
                give_up_after: None,
            },
        )
    }

    /// A step that is in the list and not attempted.
    pub fn skipped(name: &'static str, reason: &'static str) -> Self {
        Self::new(name, StepKind::Skipped { reason })
    }

    /// The same condition, after which the operation continues in any case.
    pub fn warn_on_timeout(mut self) -> Self {
        if let StepKind::Condition { on_timeout, .. } = &mut self.kind {
            *on_timeout = OnTimeout::Warn;
        }
        self
    }

    /// The same step, which is not retried later than this after its first attempt.
    pub fn give_up_after(mut self, time: Duration) -> Self {
        if let StepKind::Retrying { give_up_after, .. } = &mut self.kind {
            *give_up_after = Some(time);
        }
        self
    }

    /// The same step, which runs again after every restart.
    pub fn reruns(mut self) -> Self {
        self.reruns = true;
        self
    }

    /// The timeout of one attempt.
    pub fn timeout(&self) -> Duration {
        match self.kind {
            StepKind::Action { timeout }
            | StepKind::Condition { timeout, .. }
            | StepKind::Retrying { timeout, .. } => timeout,
            StepKind::Skipped { .. } => Duration::ZERO,
        }
    }
}

impl StepList {
    /// How many steps of the same name are before the one with this index.
    pub fn occurrence(&self, index: usize) -> usize {
        let name = self.steps.get(index).map(|step| step.name);
        let before = self.steps.iter().take(index);
        before.filter(|step| Some(step.name) == name).count()
    }
}
