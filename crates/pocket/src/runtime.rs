//! The interface of a pod runtime, which an embedder may add.
//!
//! The server stores pods; whether anything runs them is up to the embedder. Without a runtime the
//! endpoints that need one are absent from discovery.

use std::{fmt, pin::Pin};

use bytes::Bytes;
use futures::stream::BoxStream;
use jiff::Timestamp;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::{
    environment::BoxFuture,
    status::{ApiError, Result},
};

/// The options of a log request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// The container.
    pub container: String,
    /// Continue as lines are printed.
    pub follow: bool,
    /// The instance before the last restart.
    pub previous: bool,
    /// Only this many lines from the end.
    pub tail_lines: Option<u64>,
    /// Only what was printed since.
    pub since: Option<Timestamp>,
    /// Each line begins with its time.
    pub timestamps: bool,
    /// At most this many bytes.
    pub limit_bytes: Option<u64>,
}

/// The options of an exec request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExecOptions {
    /// The container.
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

/// A command that runs in a container. It must end when this is dropped.
pub struct Execution {
    /// Standard input, if requested; dropping it closes it.
    pub stdin: Option<Pin<Box<dyn AsyncWrite + Send>>>,
    /// Standard output, if requested.
    pub stdout: Option<Pin<Box<dyn AsyncRead + Send>>>,
    /// Standard error, if requested.
    pub stderr: Option<Pin<Box<dyn AsyncRead + Send>>>,
    /// Resizes its terminal: columns and rows.
    pub resize: Option<Box<dyn Fn(u16, u16) + Send + Sync>>,
    /// Its exit code, once it has ended.
    pub exit: BoxFuture<i32>,
}

impl fmt::Debug for Execution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Execution").finish_non_exhaustive()
    }
}

/// A connection to a port of a pod.
pub type Socket = Pin<Box<dyn ReadWrite>>;

pub trait ReadWrite: AsyncRead + AsyncWrite + Send {}

impl<T: AsyncRead + AsyncWrite + Send> ReadWrite for T {}

/// Usage of one pod or node, as `metrics.k8s.io` reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usage {
    /// Container name; empty for a node.
    pub container: String,
    /// CPU in millionths of a core.
    pub cpu_micros: u64,
    /// Memory in bytes.
    pub memory_bytes: u64,
}

/// Runs pods.
pub trait PodRuntime: Send + Sync + 'static {
    /// The output of a container of `pod`.
    fn log(&self, pod: Value, options: LogOptions) -> BoxFuture<Result<BoxStream<'static, Bytes>>>;

    /// Starts a command in a container.
    fn exec(&self, pod: Value, options: ExecOptions) -> BoxFuture<Result<Execution>>;

    /// Connects to a port of `pod`.
    fn connect(&self, pod: Value, port: u16) -> BoxFuture<Result<Socket>>;

    /// The current usage of the containers of `pod`.
    fn usage(&self, pod: Value) -> BoxFuture<Result<Vec<Usage>>>;

    /// The current usage of a node.
    fn node_usage(&self, node: Value) -> BoxFuture<Result<Usage>>;
}

/// The container of `pod` that `asked` names; it may be empty if there is only one.
pub(crate) fn container(pod: &Value, asked: &str) -> Result<String> {
    let names = |kind: &str| -> Vec<String> {
        let containers = pod["spec"][kind].as_array().into_iter().flatten();
        let names = containers.filter_map(|container| container["name"].as_str());
        names.map(str::to_owned).collect()
    };
    let pod_name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let (plain, init) = (names("containers"), names("initContainers"));
    if asked.is_empty() {
        if let [only] = &plain[..] {
            return Ok(only.clone());
        }
        let init = match &init[..] {
            [] => String::new(),
            names => format!(" or one of the init containers: [{}]", names.join(" ")),
        };
        return Err(ApiError::bad_request(format!(
            "a container name must be specified for pod {pod_name}, choose one of: [{}]{init}",
            plain.join(" ")
        )));
    }
    if plain.iter().chain(&init).any(|name| name == asked) {
        return Ok(asked.to_owned());
    }
    Err(ApiError::bad_request(format!(
        "container {asked} is not valid for pod {pod_name}"
    )))
}

/// Whether `pod` has a node.
pub(crate) fn is_scheduled(pod: &Value) -> bool {
    pod["spec"]["nodeName"]
        .as_str()
        .is_some_and(|node| !node.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_container_is_named_unless_there_is_one_only() {
        let pod = |names: &[&str]| {
            let containers: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
            json!({"metadata": {"name": "p"}, "spec": {"containers": containers, "initContainers": [{"name": "i"}]}})
        };
        assert_eq!(container(&pod(&["a"]), "").unwrap(), "a");
        assert_eq!(container(&pod(&["a", "b"]), "i").unwrap(), "i");
        let unclear = container(&pod(&["a", "b"]), "").unwrap_err();
        let expected = "a container name must be specified for pod p, choose one of: [a b] or one of the init containers: [i]";
        assert_eq!(unclear.message, expected);
        let unknown = container(&pod(&["a"]), "c").unwrap_err();
        assert_eq!(unknown.message, "container c is not valid for pod p");
    }
}
