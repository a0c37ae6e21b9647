//! What whoever does a step is told.

use crate::planted;

/// One attempt at a step.
///
/// Systems outside know nothing of journals. What makes them safe to ask again, and safe from those
/// who were stopped and go on when another has taken over, is said with each request: a key by which
/// they know what they have done, and a number by which they know who came later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// The step's name.
    pub step: String,
    /// Which operation it is of: the same for all its steps, and unlike that of any other.
    pub operation: String,
    /// The same for every attempt at this step, and unlike that of any other step: asked twice with
    /// one key, others do it once.
    pub key: String,
    /// Grows with every attempt of the operation, whoever makes it: whoever was asked with a higher
    /// one refuses those that are lower.
    pub fence: u64,
}

impl Task {
    pub(super) fn new(operation: &str, step: &str, fence: u64) -> Self {
        let key = if planted!(KeyOfAttempt) {
            format!("{operation}/{step}/{fence}")
        } else {
            format!("{operation}/{step}")
        };
        Self {
            step: step.to_owned(),
            operation: operation.to_owned(),
            key,
            fence,
        }
    }
}
