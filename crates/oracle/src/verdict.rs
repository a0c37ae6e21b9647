//! What the judges found.

use std::fmt;

use crate::{history, snapshot, watch};

/// Something that a server must never do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Violation {
    /// On a watch.
    Watch(watch::Violation),
    /// In a list.
    Snapshot(snapshot::Violation),
    /// In the history of an object.
    History(history::Violation),
}

/// How much was judged, and what is wrong.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Verdict {
    /// Streams that were judged.
    pub streams: usize,
    /// Events on them.
    pub events: usize,
    /// Pages of lists.
    pub pages: usize,
    /// Recorded operations.
    pub operations: usize,
    /// Objects whose history was judged.
    pub keys: usize,
    /// Objects that somebody else wrote to, whose history was not judged.
    pub foreign: usize,
    /// What is wrong.
    pub violations: Vec<Violation>,
}

impl Verdict {
    /// Ends the test if anything is wrong.
    pub fn or_panic(self) -> Self {
        assert!(self.violations.is_empty(), "{self}");
        self
    }
}

/// More than anybody reads.
const SHOWN: usize = 8;

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
        for violation in self.violations.iter().take(SHOWN) {
            writeln!(f, "- {violation}")?;
        }
        let more = self.violations.len().saturating_sub(SHOWN);
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
