//! A write, as it is told of.

use std::fmt;

use futures::future::BoxFuture;

use super::Error;
use crate::key::Key;

/// What is done to an object, and in whose name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// Who writes.
    pub manager: String,
    /// What is done: create, apply, merge, replace, post or delete.
    pub verb: &'static str,
    /// The object's version and kind.
    pub kind: String,
    /// Which object.
    pub key: Key,
    /// Which part of it, if it is not the whole.
    pub part: Option<String>,
}

impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            verb, kind, key, ..
        } = self;
        match &self.part {
            Some(part) => write!(f, "{verb} {part} of {kind} {key}"),
            None => write!(f, "{verb} {kind} {key}"),
        }
    }
}

/// Is told of every write that was begun, after it was answered. The hand waits for it, so that
/// what is written does not run ahead of what is noted.
pub trait Witness: fmt::Debug + Send + Sync {
    /// `write` came to this.
    fn saw<'a>(&'a self, write: &'a Write, outcome: Result<(), &'a Error>) -> BoxFuture<'a, ()>;
}

/// What came of a write, in one word.
pub(super) fn word(outcome: Result<(), &Error>) -> &'static str {
    match outcome {
        Ok(()) => "written",
        Err(Error::NotLeading(_)) => "not_leading",
        Err(Error::Replaced(_)) => "replaced",
        Err(Error::Refused { .. }) => "refused",
        Err(Error::Late { .. }) => "late",
    }
}
