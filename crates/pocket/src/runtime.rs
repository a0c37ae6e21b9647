//! What an embedder may add: something that runs pods.
//!
//! The server stores pods; whether anything runs them is the embedder's business. Without a
//! runtime the endpoints that need one are absent from discovery.

use bytes::Bytes;
use futures::stream::BoxStream;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::{environment::BoxFuture, status::Result};

/// The options of a log request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// The container, empty when the pod has only one.
    pub container: String,
    /// Go on as lines come.
    pub follow: bool,
    /// The instance before the last restart.
    pub previous: bool,
    /// Only this many lines from the end.
    pub tail_lines: Option<u64>,
    /// Only the last seconds.
    pub since_seconds: Option<u64>,
    /// Each line begins with its time.
    pub timestamps: bool,
    /// At most this many bytes.
    pub limit_bytes: Option<u64>,
}

/// The options of an exec request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExecOptions {
    /// The container, empty when the pod has only one.
    pub container: String,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Whether standard input is sent.
    pub stdin: bool,
    /// Whether standard output is wanted.
    pub stdout: bool,
    /// Whether standard error is wanted.
    pub stderr: bool,
    /// Whether the program gets a terminal.
    pub tty: bool,
}

/// A connection that was taken over from HTTP.
pub trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

/// Use of one pod or node, as `metrics.k8s.io` reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usage {
    /// Container name; empty for a node.
    pub container: String,
    /// Processor time in millionths of a core.
    pub cpu_micros: u64,
    /// Memory in bytes.
    pub memory_bytes: u64,
}

/// Runs pods, or knows who does.
pub trait PodRuntime: Send + Sync + 'static {
    /// The output of a container of `pod`.
    fn log(&self, pod: Value, options: LogOptions) -> BoxFuture<Result<BoxStream<'static, Bytes>>>;

    /// Whether `exec` may be asked for; refused before the connection is taken over.
    fn may_exec(&self, pod: Value, options: ExecOptions) -> BoxFuture<Result<()>>;

    /// Runs a command in a container. `connection` carries the WebSocket subprotocol
    /// `v5.channel.k8s.io` after the upgrade.
    fn exec(
        &self,
        pod: Value,
        options: ExecOptions,
        connection: Box<dyn Connection>,
    ) -> BoxFuture<()>;

    /// What the containers of `pod` use now.
    fn usage(&self, pod: Value) -> BoxFuture<Result<Vec<Usage>>>;
}
