//! The guarantees of one watch stream.
//!
//! They are etcd's, said for this API, where one commit changes one object:
//!
//! - *ordered*: revisions never go back;
//! - *unique*: no revision comes twice;
//! - *atomic*: an event shows the whole state that its revision wrote, and nothing of another;
//! - *reliable*: between the start and the last thing seen, no selected change is missing;
//! - *resumable*: a stream begun at a revision delivers exactly what came after it, or says that
//!   the place expired, which it may only say of a place that was compacted;
//! - *bookmarkable*: after a bookmark nothing comes that is not newer than it.
//!
//! To these we add *faithful*: every event is of a commit that the stream selects, and of the right
//! kind: entering a selection is an addition, leaving it is a removal.

mod check;
mod line;
#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc};

use crate::{Chronicle, Filter};

pub use line::{Change, Line, Seen};
pub(crate) use line::{path, revision};

/// How a stream began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// With the first change after this revision.
    After(u64),
    /// With the state at a revision that the stream does not tell.
    State,
    /// With a state, and a bookmark that tells its revision.
    MarkedState,
    /// With the first change after some revision that nobody was told.
    Now,
}

/// What a watch promises.
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

/// A broken promise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub guarantee: Guarantee,
    /// On which stream.
    pub stream: Arc<str>,
    /// What is wrong, in words.
    pub what: &'static str,
    /// What came first, or should have come.
    pub first: Option<Seen>,
    /// What came then.
    pub then: Option<Seen>,
}

/// Remembers what one stream delivered, and judges it.
#[derive(Debug, Clone)]
pub struct Oracle {
    name: Arc<str>,
    resource: String,
    filter: Filter,
    start: Start,
    lines: Vec<Line>,
    through: u64,
    ended: bool,
}

impl Oracle {
    /// For a stream that has delivered nothing yet.
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

    /// What the stream is called.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Takes in one line of the stream, without its end.
    pub fn line(&mut self, text: &[u8]) {
        self.lines.push(Line::parse(text));
    }

    /// Says that the stream ended, or that nobody reads it any more.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// Says that the stream had time to deliver everything up to `revision`, and was read; one
    /// that has ended had not.
    pub fn had_time_for(&mut self, revision: u64) {
        if !self.ended {
            self.through = self.through.max(revision);
        }
    }

    /// The place at which a client that saw this stream would resume.
    pub fn place(&self) -> Option<u64> {
        let seen = self.lines.iter().rev().find_map(Line::place);
        seen.or(match self.start {
            Start::After(revision) => Some(revision),
            _ => None,
        })
    }

    /// How many events were delivered.
    pub fn events(&self) -> usize {
        let events = self.lines.iter();
        events.filter(|line| matches!(line, Line::Event(_))).count()
    }

    /// Holds the stream against what really happened.
    pub fn check(&self, chronicle: &Chronicle) -> Vec<Violation> {
        check::Check::new(self, chronicle).run()
    }
}

impl fmt::Display for Violation {
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
