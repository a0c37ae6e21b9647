//! Who asks for a wake. What else wakes a service the operator decides as it looks after it.

use std::fmt;

/// Who asks for a wake. Shown in the status, so the words are part of the API.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Cause {
    /// A resolver has somebody who asks for the service.
    Request,
    /// Another ElastiService that needs it.
    Dependency(String),
}

impl Cause {
    /// In one word, for numbers.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Dependency(_) => "dependency",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request => f.write_str("request"),
            Self::Dependency(name) => write!(f, "needed by {name}"),
        }
    }
}
