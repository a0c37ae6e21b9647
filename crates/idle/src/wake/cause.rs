//! What causes a wake here. All other causes are decisions of the ElastiService controller.

use std::fmt;

/// The text of [`WakeCause::Request`].
pub(crate) const REQUEST: &str = "request";

/// The cause of a wake of a service that the ElastiService `name` depends on.
pub(crate) fn needed_by(name: &str) -> String {
    format!("needed by {name}")
}

/// What causes a wake. Its text is in the status, so it is part of the API.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum WakeCause {
    /// A resolver has a request for the service.
    Request,
    /// The ElastiService of this name depends on it.
    Dependency(String),
}

impl WakeCause {
    /// The label of metrics.
    pub(super) fn label(&self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Dependency(_) => "dependency",
        }
    }
}

impl fmt::Display for WakeCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request => f.write_str(REQUEST),
            Self::Dependency(name) => f.write_str(&needed_by(name)),
        }
    }
}
