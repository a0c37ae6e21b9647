//! What an operation consists of.

use std::time::Duration;

/// The steps of a kind of operation, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// What kind of work it is, in the words of its users.
    pub kind: &'static str,
    /// What is done, one after the other.
    pub steps: Vec<Step>,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What it does; unlike every other of its script.
    pub name: &'static str,
    /// How it is gone about.
    pub how: How,
}

/// How a step is gone about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum How {
    /// Done once: a failure ends the operation.
    Action {
        /// It has failed after this time.
        limit: Duration,
    },
    /// Asked again until it is so.
    Condition {
        /// The time between two questions.
        poll: Duration,
        /// It has failed if it is not so after this time.
        limit: Duration,
    },
    /// Done again after failures that may pass.
    Retrying {
        /// How often and when.
        retry: Retry,
        /// One attempt has failed after this time.
        limit: Duration,
    },
}

/// When a failed attempt is made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// So many attempts are made in all.
    pub attempts: u32,
    /// The wait after the first; each later one is twice as long.
    pub first: Duration,
    /// No wait is longer.
    pub most: Duration,
}

impl Retry {
    /// The wait after so many attempts.
    pub fn wait(&self, attempts: u32) -> Duration {
        let doublings = attempts.saturating_sub(1).min(31);
        self.first.saturating_mul(1 << doublings).min(self.most)
    }
}

impl Step {
    /// A step that is done once.
    pub fn action(name: &'static str, limit: Duration) -> Self {
        Self {
            name,
            how: How::Action { limit },
        }
    }

    /// A step that waits for something.
    pub fn condition(name: &'static str, poll: Duration, limit: Duration) -> Self {
        Self {
            name,
            how: How::Condition { poll, limit },
        }
    }

    /// A step that is tried again.
    pub fn retrying(name: &'static str, retry: Retry, limit: Duration) -> Self {
        Self {
            name,
            how: How::Retrying { retry, limit },
        }
    }

    /// How long one attempt may take.
    pub fn limit(&self) -> Duration {
        match self.how {
            How::Action { limit } | How::Condition { limit, .. } | How::Retrying { limit, .. } => {
                limit
            }
        }
    }
}
