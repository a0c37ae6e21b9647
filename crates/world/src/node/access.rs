//! The way to containers that run here, for whoever may ask: what they print, commands beside them,
//! and what they use.
//!
//! Plain values; who may use them and how they travel is the business of an API server.

mod log;
mod usage;

use crate::node::process::Streams;

pub use self::log::{LogOptions, read};
pub(super) use self::usage::Meter;
pub use self::usage::Usage;

/// Why a container cannot be reached, in words for whoever asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another node has it, or none.
    #[error("pod {0:?} does not run on this node")]
    Elsewhere(String),
    /// It has no such container.
    #[error("container {container} is not valid for pod {pod}")]
    NoContainer {
        /// Which was asked for.
        container: String,
        /// Of which pod.
        pod: String,
    },
    /// It was never started.
    #[error("container {container:?} in pod {pod:?} is waiting to start: {reason}")]
    NotStarted {
        /// Which was asked for.
        container: String,
        /// Of which pod.
        pod: String,
        /// What it waits for, in one word.
        reason: String,
    },
    /// It was started only once.
    #[error("previous terminated container {container:?} in pod {pod:?} not found")]
    NoPrevious {
        /// Which was asked for.
        container: String,
        /// Of which pod.
        pod: String,
    },
    /// It does not run now.
    #[error("container {container:?} in pod {pod:?} is not running")]
    NotRunning {
        /// Which was asked for.
        container: String,
        /// Of which pod.
        pod: String,
    },
    /// Nobody listens there.
    #[error("{address} of pod {pod:?} cannot be reached: {source}")]
    NotReached {
        /// Where.
        address: std::net::SocketAddr,
        /// Of which pod.
        pod: String,
        /// Why.
        source: std::io::Error,
    },
    /// The machine does not let us.
    #[error(transparent)]
    Machine(#[from] std::io::Error),
}

/// A command to be run beside a container.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exec {
    /// Which container.
    pub container: String,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Which streams are wanted.
    pub streams: Streams,
    /// Whether they are a terminal.
    pub terminal: bool,
}
