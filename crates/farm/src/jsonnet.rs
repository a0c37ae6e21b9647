//! Jsonnet of users: evaluated with nothing but the files of one ConfigMap.
//!
//! An evaluation may loop or grow without an end, and cannot be stopped from inside. So it happens in a
//! process of its own, `neap farm jsonnet`, which limits its own memory and time before it reads anything,
//! and which is killed when it takes too long.

mod evaluate;
mod message;
mod process;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use futures::future::BoxFuture;
use serde_json::Value;

pub use self::{
    evaluate::{EvaluationRequest, EvaluationResponse, evaluate},
    process::{EvaluatorProcess, MAX_MEMORY_BYTES, MAX_SECONDS, serve},
};

/// Evaluates Jsonnet: a file, with the others that it may import.
pub trait Evaluate: Send + Sync + std::fmt::Debug {
    /// The value of `main`. The evaluation is bounded in time and memory, and reads nothing but `files`.
    fn evaluate<'a>(
        &'a self,
        files: &'a BTreeMap<String, String>,
        main: &'a str,
        variables: &'a BTreeMap<String, String>,
    ) -> BoxFuture<'a, Result<Value, EvaluationError>>;
}

/// Why a file has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvaluationError {
    /// The file is not valid, or fails.
    #[error("{0}")]
    Failed(String),
    /// It takes too long or too much memory.
    #[error("it needs more than {0}")]
    Exceeded(&'static str),
    /// The evaluator cannot be started, or ended for another reason than the file.
    #[error("it cannot be evaluated here: {0}")]
    Unavailable(String),
    /// It was not evaluated in time, as on a busy machine: elsewhere, a file that takes too long exceeds the bound
    /// of its processor time before.
    #[error("its evaluation has not ended after {0}")]
    TimedOut(&'static str),
}

impl EvaluationError {
    /// Whether another attempt with the same file may succeed.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::TimedOut(_))
    }
}
