//! Gives the API server access to the containers of the node: logs, exec, ports and usage.

use bytes::Bytes;
use futures::stream::BoxStream;
use k8s_openapi::api::core::v1::Pod;
use neap_pocket::{
    environment::BoxFuture,
    runtime::{self, ExecOptions, Execution, LogOptions, PodRuntime, Socket},
    status::{ApiError, Result},
};
use neap_world::node::{Access, access, process::Streams};
use parking_lot::RwLock;
use serde_json::Value;

/// The node of this process, once it runs.
#[derive(Debug, Default)]
pub(crate) struct NodeRuntime(RwLock<Option<Access>>);

impl NodeRuntime {
    /// Sets the node. The API server starts before it, because the node is its client.
    pub(crate) fn set_node(&self, access: Access) {
        *self.0.write() = Some(access);
    }

    fn access(&self) -> Result<Access> {
        let access = self.0.read().clone();
        access.ok_or_else(|| ApiError::bad_request("no node is running yet"))
    }
}

impl PodRuntime for NodeRuntime {
    fn log(&self, pod: Value, options: LogOptions) -> BoxFuture<Result<BoxStream<'static, Bytes>>> {
        let access = self.access();
        Box::pin(async move {
            let options = access::LogOptions {
                container: options.container,
                follow: options.follow,
                previous: options.previous,
                tail: options.tail_lines,
                since: options.since,
                timestamps: options.timestamps,
                limit: options.limit_bytes,
            };
            access?.log(&typed(pod)?, options).await.map_err(refusal)
        })
    }

    fn exec(&self, pod: Value, options: ExecOptions) -> BoxFuture<Result<Execution>> {
        let access = self.access();
        Box::pin(async move {
            let exec = access::Exec {
                container: options.container,
                command: options.command,
                streams: Streams {
                    stdin: options.stdin,
                    stdout: options.stdout,
                    stderr: options.stderr,
                },
                terminal: options.tty,
            };
            let attached = access?.exec(&typed(pod)?, exec).await.map_err(refusal)?;
            let resize = attached.terminal.map(|terminal| {
                let resize = move |columns, rows| drop(terminal.resize(columns, rows));
                Box::new(resize) as Box<dyn Fn(u16, u16) + Send + Sync>
            });
            Ok(Execution {
                stdin: attached.stdin,
                stdout: attached.stdout,
                stderr: attached.stderr,
                resize,
                exit: Box::pin(attached.exit.code()),
            })
        })
    }

    fn connect(&self, pod: Value, port: u16) -> BoxFuture<Result<Socket>> {
        let access = self.access();
        Box::pin(async move {
            let connected = access?.connect(&typed(pod)?, port).await;
            connected
                .map(|stream| Box::pin(stream) as Socket)
                .map_err(refusal)
        })
    }

    fn usage(&self, pod: Value) -> BoxFuture<Result<Vec<runtime::Usage>>> {
        let access = self.access();
        Box::pin(async move {
            let used = access?.usage(&typed(pod)?).await.map_err(refusal)?;
            Ok(used.into_iter().map(usage).collect())
        })
    }

    fn node_usage(&self, node: Value) -> BoxFuture<Result<runtime::Usage>> {
        let access = self.access();
        Box::pin(async move {
            let name = node["metadata"]["name"].as_str().unwrap_or_default();
            let used = access?.node_usage(name).await;
            used.map(usage).map_err(refusal)
        })
    }
}

fn typed(pod: Value) -> Result<Pod> {
    serde_json::from_value(pod).map_err(|error| ApiError::internal(error.to_string()))
}

fn usage(of: access::Usage) -> runtime::Usage {
    runtime::Usage {
        container: of.container,
        cpu_micros: of.cpu_micros,
        memory_bytes: of.memory_bytes,
    }
}

/// Maps the errors of the node as a kube-apiserver maps those of a kubelet: a refusal becomes a bad
/// request.
fn refusal(error: access::Error) -> ApiError {
    match error {
        access::Error::Machine(error) => ApiError::internal(error.to_string()),
        error => ApiError::bad_request(error.to_string()),
    }
}
