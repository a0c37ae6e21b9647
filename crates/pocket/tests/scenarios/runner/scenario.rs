//! A scenario file as a value.
//!
//! Invariant: a parsed scenario can fail. A request without an expected response, a response that
//! expects nothing and a variable that is captured and never used are errors of the file.

mod blocks;
mod lint;
mod read;

use std::{fmt, time::Duration};

use serde_json::Value;

use super::Failure;

/// Marks a file that tests what only this server guarantees.
pub(crate) const POCKET_ONLY: &str = "<!-- pocket only:";

/// One file.
#[derive(Debug)]
pub(crate) struct Scenario {
    /// Folder and topic, such as `wire/discovery`.
    pub(crate) name: String,
    /// The file only runs against this server.
    pub(crate) pocket_only: bool,
    pub(crate) blocks: Vec<Block>,
}

/// One block, or one pair of request and response.
#[derive(Debug)]
pub(crate) struct Block {
    /// The line of its fence.
    pub(crate) line: usize,
    /// The heading above it.
    pub(crate) heading: String,
    pub(crate) step: Step,
}

#[derive(Debug)]
pub(crate) enum Step {
    Ask(Request, ExpectedResponse),
    Later(Request, ExpectedResponse),
    Watch(String, Request),
    Events(String, Vec<EventPattern>),
    Wait(Duration),
}

/// A request as written: variables are replaced when it is sent.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
    /// The body is in base64.
    pub(crate) encoded: bool,
}

/// The expected response.
#[derive(Debug)]
pub(crate) struct ExpectedResponse {
    pub(crate) code: u16,
    /// The reason of the expected error.
    pub(crate) reason: Option<String>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<Value>,
}

/// One expectation on a stream.
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
    /// Parses a file's text.
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
