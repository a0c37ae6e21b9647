//! Who or what asks for a wake.

use std::fmt;

/// Who or what asks for a wake. Shown in the status, so the words are part of the API.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Cause {
    /// A resolver has somebody who asks for the service.
    Request,
    /// A person.
    Person,
    /// Another ElastiService that needs it.
    Dependency(String),
    /// It is not the time to sleep.
    Window,
    /// No resolver is ready to answer for it.
    NoResolver,
    /// The ElastiService is deleted.
    Deleted,
    /// Sleep is switched off where it is.
    Off,
}

impl Cause {
    /// In one word, for numbers.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Person => "person",
            Self::Dependency(_) => "dependency",
            Self::Window => "window",
            Self::NoResolver => "no_resolver",
            Self::Deleted => "deleted",
            Self::Off => "off",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request => f.write_str("request"),
            Self::Person => f.write_str("person"),
            Self::Dependency(name) => write!(f, "needed by {name}"),
            Self::Window => f.write_str("outside of enabledPeriod"),
            Self::NoResolver => f.write_str("no resolver is ready"),
            Self::Deleted => f.write_str("deleted"),
            Self::Off => f.write_str("switched off"),
        }
    }
}
