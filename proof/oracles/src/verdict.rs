//! The findings of the oracles.

use std::fmt;

use crate::{history, snapshot, watch};

/// A violation of the guarantees of the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Violation {
    Watch(watch::WatchViolation),
    Snapshot(snapshot::SnapshotViolation),
    History(history::HistoryViolation),
}

/// How much was judged, and the violations.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Verdict {
    pub streams: usize,
    pub events: usize,
    pub pages: usize,
    pub operations: usize,
    /// Objects whose history was judged.
    pub keys: usize,
    /// Objects that unobserved clients wrote to, whose history was not judged.
    pub foreign: usize,
    pub violations: Vec<Violation>,
}

impl Verdict {
    /// Panics if there is a violation.
    pub fn or_panic(self) -> Self {
        assert!(self.violations.is_empty(), "{self}");
        self
    }
}

/// Violations that are printed.
const MAX_SHOWN_VIOLATIONS: usize = 8;

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} violations in {} streams with {} events, {} pages, {} operations on {} objects",
            self.violations.len(),
            self.streams,
            self.events,
            self.pages,
            self.operations,
            self.keys,
        )?;
        for violation in self.violations.iter().take(MAX_SHOWN_VIOLATIONS) {
            writeln!(f, "- {violation}")?;
        }
        let more = self.violations.len().saturating_sub(MAX_SHOWN_VIOLATIONS);
        if more > 0 {
            writeln!(f, "- and {more} more")?;
        }
        Ok(())
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Watch(violation) => violation.fmt(f),
            Self::Snapshot(violation) => violation.fmt(f),
            Self::History(violation) => violation.fmt(f),
        }
    }
}
