//! The state of the build queue, over gRPC: workers, drains and operations.
//!
//! There is no watch, so the operator asks once a second while it drains. [`BuildQueue`] is what it needs;
//! [`GrpcBuildQueue`] speaks to a scheduler.

mod client;
pub mod messages;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use futures::future::BoxFuture;
use neap_kit::why::{Code, Coded};

pub use self::client::{Connection, ConnectionError, Dial, GrpcBuildQueue};
use crate::platform::QueueName;

/// Why the scheduler could not be asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// It cannot be reached, or does not answer in time.
    #[error("the scheduler at {address} does not answer: {cause}")]
    Unreachable {
        /// The address.
        address: String,
        /// The cause.
        cause: String,
    },
    /// It refuses.
    #[error("the scheduler at {address} refuses: {message}")]
    Refused {
        /// The address.
        address: String,
        /// Its message.
        message: String,
        /// Whether it does not know the queue, because no worker has ever registered.
        unknown_queue: bool,
    },
}

impl Coded for Error {
    fn code(&self) -> Code {
        match self {
            Self::Unreachable { .. } => Code("NT-FARM-0004"),
            Self::Refused { .. } => Code("NT-FARM-0005"),
        }
    }
}

/// A worker of the scheduler: one thread of a pod.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorkerFacts {
    /// Its id.
    pub id: BTreeMap<String, String>,
    /// Whether it runs an action.
    pub executing: bool,
    /// Whether it is drained.
    pub drained: bool,
}

/// What the scheduler says about the queue of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueueFacts {
    /// Whether the scheduler does not know the queue: no worker has registered since it started.
    pub unknown: bool,
    /// The patterns of its drains: those that it had before and after the workers were read.
    pub drains: Vec<BTreeMap<String, String>>,
    /// Its workers.
    pub workers: Vec<WorkerFacts>,
    /// The number of actions that wait or run.
    pub operations: u32,
}

/// A queue with its numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueueState {
    /// Its name.
    pub name: QueueName,
    /// Its workers: one for each action that a pod can run at a time.
    pub workers: u32,
    /// Actions that wait.
    pub queued: u32,
    /// Actions that run.
    pub executing: u32,
    /// Its drains.
    pub drains: u32,
}

/// What the operator asks of a scheduler, which is named by its address.
pub trait BuildQueue: Send + Sync + std::fmt::Debug {
    /// The drains of a queue and its workers.
    fn queue<'a>(
        &'a self,
        scheduler: &'a str,
        queue: &'a QueueName,
    ) -> BoxFuture<'a, Result<QueueFacts, Error>>;

    /// All queues.
    fn queues<'a>(&'a self, scheduler: &'a str) -> BoxFuture<'a, Result<Vec<QueueState>, Error>>;

    /// The workers of a queue.
    fn workers<'a>(
        &'a self,
        scheduler: &'a str,
        queue: &'a QueueName,
    ) -> BoxFuture<'a, Result<Vec<WorkerFacts>, Error>>;

    /// Drains the workers that match, or ends it.
    fn set_drain<'a>(
        &'a self,
        scheduler: &'a str,
        queue: &'a QueueName,
        pattern: &'a BTreeMap<String, String>,
        drained: bool,
    ) -> BoxFuture<'a, Result<(), Error>>;
}
