//! The measured server: ours, or the real control plane.
//!
//! Both are started, used and ended in the same way, so that no figure can favour one.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Result, ensure};
use http::Method;

use crate::{
    client::Client,
    reference::{self, Reference},
    server::Server,
    stopwatch::Stopwatch,
};

#[derive(Debug, Clone)]
pub enum Subject {
    /// `neap up`, of this program.
    Neap(PathBuf),
    /// The real control plane, with the parts that a figure needs.
    Reference(Box<reference::ReferenceOptions>),
}

/// Where a server stores its objects.
#[derive(Debug, Clone, Copy)]
pub enum Storage<'a> {
    /// Nowhere, or on a disk that it does not wait for.
    Memory,
    /// In this folder; what is acknowledged has reached the disk.
    Folder(&'a Path),
}

/// A running server.
#[derive(Debug)]
pub struct RunningServer {
    process: ServerProcess,
    client: Client,
    ready_after: Duration,
}

#[derive(Debug)]
enum ServerProcess {
    Neap(Server),
    /// Killed when dropped.
    Reference(Box<Reference>),
}

impl Subject {
    /// etcd and kube-apiserver, of this program.
    pub fn reference(program: &Path) -> Self {
        Self::Reference(Box::new(reference::ReferenceOptions::new(program)))
    }

    /// The same with the controller that deletes namespaces, which `neap` does by itself.
    #[must_use]
    pub fn ending_namespaces(mut self) -> Self {
        if let Self::Reference(plan) = &mut self {
            plan.controllers = Some("namespace-controller".to_owned());
        }
        self
    }

    /// Starts it and waits until it reports over the network that it is ready.
    pub async fn start(&self, storage: Storage<'_>) -> Result<RunningServer> {
        match self {
            Self::Neap(neap) => start_neap(neap, storage).await,
            Self::Reference(plan) => start_reference(plan, storage).await,
        }
    }
}

async fn start_neap(neap: &Path, storage: Storage<'_>) -> Result<RunningServer> {
    let watch = Stopwatch::start();
    let folder = match storage {
        Storage::Memory => None,
        Storage::Folder(folder) => Some(folder),
    };
    let server = Server::launch(neap, folder)?;
    let server = tokio::task::spawn_blocking(|| server.ready()).await??;
    let client = server.client()?;
    let mut connection = client.connect().await?;
    let ready = connection.send(Method::GET, "/readyz", "").await?;
    ensure!(ready.status == 200, "started, and is not ready");
    Ok(RunningServer {
        process: ServerProcess::Neap(server),
        client,
        ready_after: watch.elapsed(),
    })
}

async fn start_reference(
    plan: &reference::ReferenceOptions,
    storage: Storage<'_>,
) -> Result<RunningServer> {
    let mut plan = plan.clone();
    if let Storage::Folder(folder) = storage {
        plan.folder = Some(folder.to_owned());
        plan.durable = true;
    }
    let reference = plan.start().await?;
    Ok(RunningServer {
        client: reference.client()?,
        ready_after: reference.ready_after(),
        process: ServerProcess::Reference(Box::new(reference)),
    })
}

impl RunningServer {
    /// A client with the rights of an administrator.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The time from the start of the process to its first answer that it is ready.
    pub fn ready_after(&self) -> Duration {
        self.ready_after
    }

    /// Resident memory of all its processes together.
    pub fn resident_bytes(&self) -> Result<u64> {
        match &self.process {
            ServerProcess::Neap(server) => server.resident_bytes(),
            ServerProcess::Reference(reference) => reference.resident_bytes(),
        }
    }

    /// Ends it, and waits.
    pub async fn stop(self) -> Result<()> {
        match self.process {
            ServerProcess::Neap(server) => {
                let (status, complaints) = tokio::task::spawn_blocking(|| server.stop()).await??;
                ensure!(status.success(), "it ended with {status}: {complaints}");
                Ok(())
            }
            ServerProcess::Reference(reference) => {
                drop(reference);
                Ok(())
            }
        }
    }
}
