//! A write, as observers receive it.

use std::{fmt, sync::Arc};

use futures::future::BoxFuture;

use super::{Error, Writer};
use crate::key::Key;

/// A write to an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// The field manager.
    pub manager: String,
    /// The operation: create, apply, merge, replace, post or delete.
    pub verb: &'static str,
    /// The API version and kind of the object.
    pub kind: String,
    /// The key of the object.
    pub key: Key,
    /// The subresource, if not the whole object is written.
    pub subresource: Option<String>,
    /// Why, for writes that carry out the decision of a user.
    pub reason: Option<Arc<str>>,
}

impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            verb, kind, key, ..
        } = self;
        match &self.subresource {
            Some(subresource) => write!(f, "{verb} {subresource} of {kind} {key}"),
            None => write!(f, "{verb} {kind} {key}"),
        }
    }
}

impl Writer {
    /// The same writer, whose writes have this reason in the audit.
    pub fn with_reason(mut self, reason: &str) -> Self {
        self.reason = Some(reason.into());
        self
    }
}

/// Receives every write that was sent, after its response. The writer waits for the observer, so that
/// writes do not run ahead of their records.
pub trait WriteObserver: fmt::Debug + Send + Sync {
    /// Called with a write and its outcome.
    fn on_write<'a>(
        &'a self,
        write: &'a Write,
        outcome: Result<(), &'a Error>,
    ) -> BoxFuture<'a, ()>;
}

/// The value of the `result` label of the metrics.
pub(super) fn result_label(outcome: Result<(), &Error>) -> &'static str {
    match outcome {
        Ok(()) => "written",
        Err(Error::NotLeading(_)) => "not_leading",
        Err(Error::Conflict(_)) => "replaced",
        Err(Error::Refused { .. }) => "refused",
        Err(Error::Timeout { .. }) => "late",
    }
}
