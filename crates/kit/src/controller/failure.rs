//! How a reconcile fails, and what follows from it.

use std::{error::Error as StdError, fmt, time::Duration};

use crate::{
    apply,
    why::{Code, Coded, chain},
};

/// What the controller does after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureClass {
    /// An object is not as it was read. That is no failure: the change enqueues the key again.
    Conflict,
    /// Retried with growing delays.
    Retryable,
    /// Retried after this time at the earliest, because the other side said so.
    RetryAfter(Duration),
    /// A retry does not help before something has changed: the key waits for a change or the resync.
    Permanent,
}

/// The error of an area's reconcile. Each failure is logged with its code and causes and counted, and the
/// key is requeued as the class says. A failed call to a system outside the cluster is such an error, and
/// not `Ok(Outcome::RequeueAfter(..))`, which would look like success.
pub trait ReconcileError: StdError + Coded + Send + 'static {
    /// What the controller does after this error.
    fn class(&self) -> FailureClass {
        FailureClass::Retryable
    }
}

/// A lost race is resolved by the next reconcile; everything else may pass.
impl ReconcileError for apply::Error {
    fn class(&self) -> FailureClass {
        match self {
            Self::Conflict(_) => FailureClass::Conflict,
            Self::NotLeading(_) | Self::Refused { .. } | Self::Timeout { .. } => {
                FailureClass::Retryable
            }
        }
    }
}

tokio::task_local! {
    static PREVIOUS_FAILURES: u32;
}

/// How often the key that this task reconciles has failed since it last succeeded; zero outside of a
/// reconcile. A status may show it, and a decision may give up after some attempts.
pub fn previous_failures() -> u32 {
    PREVIOUS_FAILURES
        .try_with(|failures| *failures)
        .unwrap_or(0)
}

/// Runs a reconcile whose key has failed this often.
pub(super) fn with_failures<F: Future>(
    failures: u32,
    reconcile: F,
) -> impl Future<Output = F::Output> {
    PREVIOUS_FAILURES.scope(failures, reconcile)
}

/// A failure of any error type, as the queue and the telemetry need it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReconcileFailure {
    pub(crate) class: FailureClass,
    pub(crate) code: Option<Code>,
    pub(crate) message: String,
}

impl ReconcileFailure {
    /// The failure that an error stands for.
    pub fn of(error: &impl ReconcileError) -> Self {
        Self {
            class: error.class(),
            code: Some(error.code()),
            message: chain(error),
        }
    }

    /// A failure of an error that says nothing but its text.
    pub(super) fn retryable(error: &impl fmt::Display) -> Self {
        Self {
            class: FailureClass::Retryable,
            code: None,
            message: error.to_string(),
        }
    }
}
