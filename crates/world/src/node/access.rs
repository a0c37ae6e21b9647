//! Access to running containers: logs, exec, ports, and usage.
//!
//! Plain values; authorization and transport are up to the API server.

mod log;
mod usage;

use crate::node::process::Streams;

pub use self::log::{LogOptions, read};
pub use self::usage::Usage;
pub(super) use self::usage::UsageMeter;

/// Why a container cannot be reached, in words for the user.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The pod runs on another node, or on none.
    #[error("pod {0:?} does not run on this node")]
    Elsewhere(String),
    /// The pod has no such container.
    #[error("container {container} is not valid for pod {pod}")]
    NoContainer {
        /// The requested container.
        container: String,
        /// Its pod.
        pod: String,
    },
    /// The container was never started.
    #[error("container {container:?} in pod {pod:?} is waiting to start: {reason}")]
    NotStarted {
        /// The requested container.
        container: String,
        /// Its pod.
        pod: String,
        /// The reason of its waiting state.
        reason: String,
    },
    /// The container was started only once.
    #[error("previous terminated container {container:?} in pod {pod:?} not found")]
    NoPrevious {
        /// The requested container.
        container: String,
        /// Its pod.
        pod: String,
    },
    /// The container does not run now.
    #[error("container {container:?} in pod {pod:?} is not running")]
    NotRunning {
        /// The requested container.
        container: String,
        /// Its pod.
        pod: String,
    },
    /// No process listens on the port.
    #[error("{address} of pod {pod:?} cannot be reached: {source}")]
    NotReached {
        /// The address.
        address: std::net::SocketAddr,
        /// Its pod.
        pod: String,
        /// The cause.
        source: std::io::Error,
    },
    /// A system call failed.
    #[error(transparent)]
    Machine(#[from] std::io::Error),
}

/// A command to run inside a container.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exec {
    /// The container.
    pub container: String,
    /// Program and arguments.
    pub command: Vec<String>,
    /// The streams to attach.
    pub streams: Streams,
    /// Whether to allocate a terminal.
    pub terminal: bool,
}
