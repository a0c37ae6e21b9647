//! The guarantees of a watch stream.
//!
//! They are etcd's, applied to this API, where one commit changes one object:
//!
//! - *ordered*: revisions never decrease;
//! - *unique*: no revision comes twice;
//! - *atomic*: an event shows the whole state that its revision wrote, and nothing of another;
//! - *reliable*: between the start and the last event, no selected change is missing;
//! - *resumable*: a stream started at a revision delivers exactly what came after it, or reports
//!   that the revision has expired, which is allowed only if it was compacted;
//! - *bookmarkable*: after a bookmark, only newer events come.
//!
//! We add *faithful*: every event belongs to a commit that the stream selects, and has the right
//! type: entering a selection is an addition, leaving it is a removal.

mod check;
mod line;
#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc};

use crate::{CommitLog, Filter};

pub use line::{Change, WatchEvent, WatchLine};
pub(crate) use line::{path, revision};

/// How a stream starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// With the first change after this revision.
    After(u64),
    /// With the state at a revision that the stream does not report.
    State,
    /// With a state, and a bookmark with its revision.
    MarkedState,
    /// With the first change after an unknown revision.
    Now,
}

/// A guarantee of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "they are explained together, above")]
pub enum Guarantee {
    Ordered,
    Unique,
    Atomic,
    Reliable,
    Resumable,
    Bookmarkable,
    Faithful,
}

/// A violated guarantee.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchViolation {
    pub guarantee: Guarantee,
    pub stream: Arc<str>,
    pub what: &'static str,
    /// The first event, or the one that should have come.
    pub first: Option<WatchEvent>,
    /// The event that came then.
    pub then: Option<WatchEvent>,
}

/// Records what one stream delivers, and judges it.
#[derive(Debug, Clone)]
pub struct WatchOracle {
    name: Arc<str>,
    resource: String,
    filter: Filter,
    start: Start,
    lines: Vec<WatchLine>,
    through: u64,
    ended: bool,
}

impl WatchOracle {
    pub fn new(name: &str, resource: &str, filter: Filter, start: Start) -> Self {
        Self {
            name: name.into(),
            resource: resource.into(),
            filter,
            start,
            lines: Vec::new(),
            through: 0,
            ended: false,
        }
    }

    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Adds one line of the stream, without its line break.
    pub fn line(&mut self, text: &[u8]) {
        self.lines.push(WatchLine::parse(text));
    }

    /// Records that the stream ended, or that the client no longer reads it.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// Declares that the stream had time to deliver everything up to `revision`, and was read;
    /// ignored if it has ended.
    pub fn had_time_for(&mut self, revision: u64) {
        if !self.ended {
            self.through = self.through.max(revision);
        }
    }

    /// The revision from which a client of this stream would resume.
    pub fn resume_revision(&self) -> Option<u64> {
        let seen = self.lines.iter().rev().find_map(WatchLine::resume_revision);
        seen.or(match self.start {
            Start::After(revision) => Some(revision),
            _ => None,
        })
    }

    /// The number of events that were delivered.
    pub fn events(&self) -> usize {
        let events = self.lines.iter();
        events
            .filter(|line| matches!(line, WatchLine::Event(_)))
            .count()
    }

    /// Compares the stream with the commit log.
    pub fn check(&self, commit_log: &CommitLog) -> Vec<WatchViolation> {
        check::Check::new(self, commit_log).run()
    }
}

impl fmt::Display for WatchViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let guarantee = format!("{:?}", self.guarantee).to_lowercase();
        write!(f, "not {guarantee}: {}", self.what)?;
        if let Some(first) = &self.first {
            write!(f, "; first {first}")?;
        }
        if let Some(then) = &self.then {
            write!(f, "; then {then}")?;
        }
        write!(f, "; on {}", self.stream)
    }
}
