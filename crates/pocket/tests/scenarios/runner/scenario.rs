//! A scenario file as a value.
//!
//! Invariant: a parsed scenario can fail. A request without an expected answer, an answer that
//! expects nothing and a variable that is captured and never looked at are errors of the file.

mod blocks;
mod lint;
mod read;

use std::{fmt, time::Duration};

use serde_json::Value;

use super::Failure;

/// Marks a file that tests what only this server promises.
pub(crate) const POCKET_ONLY: &str = "<!-- pocket only:";

/// One file.
#[derive(Debug)]
pub(crate) struct Scenario {
    /// Room and topic, such as `wire/discovery`.
    pub(crate) name: String,
    /// Only this server is asked.
    pub(crate) pocket_only: bool,
    pub(crate) blocks: Vec<Block>,
}

/// One block, or one pair of request and answer.
#[derive(Debug)]
pub(crate) struct Block {
    /// The line of its fence.
    pub(crate) line: usize,
    /// The heading it stands under.
    pub(crate) heading: String,
    pub(crate) step: Step,
}

#[derive(Debug)]
pub(crate) enum Step {
    Ask(Request, Answer),
    Later(Request, Answer),
    Watch(String, Request),
    Events(String, Vec<EventPattern>),
    Wait(Duration),
}

/// A request as written: variables are filled in when it is sent.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
    /// The body stands in base64.
    pub(crate) encoded: bool,
}

/// What must come back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    /// The reason of the refusal.
    pub(crate) reason: Option<String>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<Value>,
}

/// One thing expected of a stream.
#[derive(Debug)]
pub(crate) enum EventPattern {
    Event(String, Value),
    /// The server ends the stream.
    End,
    /// Nothing comes for a while.
    Quiet,
}

impl EventPattern {
    pub(crate) fn is_bookmark(&self) -> bool {
        matches!(self, Self::Event(kind, _) if kind == "BOOKMARK")
    }
}

impl fmt::Display for EventPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event(kind, pattern) => write!(f, "{kind} {pattern}"),
            Self::End => f.write_str("the end of the stream"),
            Self::Quiet => f.write_str("silence"),
        }
    }
}

impl Scenario {
    /// Reads a file's text.
    pub(crate) fn parse(name: &str, text: &str) -> Result<Self, Failure> {
        let located = |line: usize, failure: Failure| {
            Failure::new(format!("tests/scenarios/{name}.md:{line}: {failure}"))
        };
        let fences = blocks::fences(text).map_err(|(line, failure)| located(line, failure))?;
        let blocks = read::steps(fences).map_err(|(line, failure)| located(line, failure))?;
        lint::captures_are_used(&blocks).map_err(|failure| located(1, failure))?;
        if blocks.is_empty() {
            return Err(located(1, Failure::new("the file has no blocks")));
        }
        Ok(Self {
            name: name.into(),
            pocket_only: text.contains(POCKET_ONLY),
            blocks,
        })
    }
}
