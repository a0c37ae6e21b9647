//! Why a decision or a verdict is as it is.

use std::fmt;

use jiff::Timestamp;

/// A reason in the form of a Kubernetes condition: one word for programs, one sentence for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// A CamelCase word, part of the API.
    pub name: &'static str,
    /// A sentence for people.
    pub message: String,
    /// The time of the last request, if the source of the reason knows it.
    pub last_request_at: Option<Timestamp>,
}

impl Reason {
    /// A reason that says nothing about the last request.
    pub fn new(name: &'static str, message: impl Into<String>) -> Self {
        Self {
            name,
            message: message.into(),
            last_request_at: None,
        }
    }

    /// The same reason, with the time of the last request.
    #[must_use]
    pub fn with_last_request_at(mut self, time: Timestamp) -> Self {
        self.last_request_at = Some(time);
        self
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
