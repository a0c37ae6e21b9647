//! One attempt at a step, as its handler receives it.

use crate::planted;

/// One attempt at a step.
///
/// Other systems do not know the journal. Two values make requests to them safe: an idempotency key, so
/// that a repeated request takes effect once, and a fence, so that the request of a process that was
/// suspended is refused after another process has taken over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepAttempt {
    /// The name of the step.
    pub step: String,
    /// The identity of the operation: the same for all its steps, and unique among operations.
    pub operation: String,
    /// The idempotency key: the same for every attempt at this step, and unique among steps.
    pub key: String,
    /// Grows with every attempt of the operation, in any process: a system that has received a higher
    /// fence refuses lower ones.
    pub fence: u64,
}

impl StepAttempt {
    pub(super) fn new(operation: &str, step: &str, occurrence: usize, fence: u64) -> Self {
        let key = if planted!(KeyOfAttempt) {
            format!("{operation}/{step}/{fence}")
        } else if occurrence == 0 {
            format!("{operation}/{step}")
        } else {
            format!("{operation}/{step}#{occurrence}")
        };
        Self {
            step: step.to_owned(),
            operation: operation.to_owned(),
            key,
            fence,
        }
    }
}
