//! Access to the containers of this node.

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Weak},
};

use bytes::Bytes;
use futures::stream::BoxStream;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::ResourceExt;
use neap_kit::key::Key;
use tokio::net::TcpStream;

use super::{reconcile::NodeReconciler, start::container};
use crate::node::{
    access::{Error, Exec, LogOptions, Usage, UsageMeter, read},
    process::{AttachedCommand, ContainerLog, RunningProcess},
};

/// Access to the containers of this node while it runs.
#[derive(Clone)]
pub struct Access {
    node: Weak<NodeReconciler>,
    meter: Arc<UsageMeter>,
}

impl Access {
    pub(super) fn new(node: &Arc<NodeReconciler>) -> Self {
        Self {
            node: Arc::downgrade(node),
            meter: Arc::new(UsageMeter::new(node.clock)),
        }
    }

    /// The log of a container of `pod`; a follower ends with the container.
    pub async fn log(
        &self,
        pod: &Pod,
        options: LogOptions,
    ) -> Result<BoxStream<'static, Bytes>, Error> {
        let (node, name) = (self.node_of(pod)?, options.container.clone());
        named(pod, &name)?;
        let log = ContainerLog::of(&folder(&node, pod, &name));
        let (log, printed) = if options.previous {
            (log.previous(), None)
        } else {
            let running = running(&node, pod, &name);
            let printed = running.filter(|_| options.follow);
            (log, printed.map(|running| running.printed()))
        };
        let previous = options.previous;
        let opened = tokio::task::spawn_blocking(move || read(&log, &options, printed)).await;
        opened.map_err(std::io::Error::from)?.map_err(|error| {
            let (pod_name, container) = (pod.name_any(), name.clone());
            match error.kind() {
                std::io::ErrorKind::NotFound if previous => Error::NoPrevious {
                    container,
                    pod: pod_name,
                },
                std::io::ErrorKind::NotFound => Error::NotStarted {
                    reason: waits_for(pod, &name),
                    container,
                    pod: pod_name,
                },
                _ => Error::Machine(error),
            }
        })
    }

    /// Runs a command in a container of `pod`.
    pub async fn exec(&self, pod: &Pod, exec: Exec) -> Result<AttachedCommand, Error> {
        let (node, name) = (self.node_of(pod)?, &exec.container);
        named(pod, name)?;
        let not_running = || Error::NotRunning {
            container: name.clone(),
            pod: pod.name_any(),
        };
        let host = running(&node, pod, name).ok_or_else(not_running)?;
        let folder = folder(&node, pod, name);
        let (command, streams) = (exec.command.clone(), exec.streams);
        let started = node
            .starter
            .command(&host, command, &folder, streams, exec.terminal)
            .await?;
        started.ok_or_else(not_running)
    }

    /// Connects to a port of `pod`, at its own address.
    pub async fn connect(&self, pod: &Pod, port: u16) -> Result<TcpStream, Error> {
        let node = self.node_of(pod)?;
        let address = node.address(pod);
        let connected = TcpStream::connect((address, port)).await;
        connected.map_err(|source| Error::NotReached {
            address: SocketAddr::from((address, port)),
            pod: pod.name_any(),
            source,
        })
    }

    /// The usage of each running container of `pod`.
    pub async fn usage(&self, pod: &Pod) -> Result<Vec<Usage>, Error> {
        let node = self.node_of(pod)?;
        let spec = pod.spec.clone().unwrap_or_default();
        let init = spec.init_containers.into_iter().flatten();
        let names = init.chain(spec.containers).map(|container| container.name);
        let running: Vec<(String, RunningProcess)> = names
            .filter_map(|name| Some((name.clone(), running(&node, pod, &name)?)))
            .collect();
        let meter = self.meter.clone();
        let measured = move || {
            let all = running.iter();
            all.filter_map(|(name, running)| meter.of(name, running))
                .collect()
        };
        let measured = tokio::task::spawn_blocking(measured).await;
        Ok(measured.map_err(std::io::Error::from)?)
    }

    /// The usage of the machine, if `name` is that of this node.
    pub async fn node_usage(&self, name: &str) -> Result<Usage, Error> {
        let node = self.node.upgrade().filter(|node| node.options.name == name);
        node.ok_or_else(|| Error::Elsewhere(name.to_owned()))?;
        let meter = self.meter.clone();
        let measured = tokio::task::spawn_blocking(move || meter.of_machine()).await;
        Ok(measured.map_err(std::io::Error::from)?)
    }

    fn node_of(&self, pod: &Pod) -> Result<Arc<NodeReconciler>, Error> {
        let here = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
        let node = self.node.upgrade();
        let node = node.filter(|node| here == Some(&node.options.name));
        node.ok_or_else(|| Error::Elsewhere(pod.name_any()))
    }
}

fn named(pod: &Pod, name: &str) -> Result<(), Error> {
    let unknown = || Error::NoContainer {
        container: name.to_owned(),
        pod: pod.name_any(),
    };
    container(pod, name).map(drop).ok_or_else(unknown)
}

fn folder(node: &NodeReconciler, pod: &Pod, container: &str) -> PathBuf {
    node.folder(pod).join("containers").join(container)
}

fn running(node: &NodeReconciler, pod: &Pod, container: &str) -> Option<RunningProcess> {
    let uid = pod.uid().unwrap_or_default();
    node.pod_states.running(&Key::of(pod), &uid, container)
}

/// Why a container has not started, by its status.
fn waits_for(pod: &Pod, container: &str) -> String {
    let statuses = pod.status.iter().flat_map(|status| {
        let init = status.init_container_statuses.iter().flatten();
        init.chain(status.container_statuses.iter().flatten())
    });
    let mut found = statuses.filter(|status| status.name == container);
    let reason = |status: &ContainerStatus| status.state.as_ref()?.waiting.as_ref()?.reason.clone();
    let reason = found.next().and_then(reason);
    reason.unwrap_or_else(|| "ContainerCreating".to_owned())
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access").finish_non_exhaustive()
    }
}
