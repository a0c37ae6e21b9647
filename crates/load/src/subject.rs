//! A server that figures are taken of: ours, or the real control plane beside it.
//!
//! Both are started, spoken to and ended in the same words, so that no figure can favour one.

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

/// What is measured.
#[derive(Debug, Clone)]
pub enum Subject {
    /// `neap up`, of this program.
    Neap(PathBuf),
    /// The real control plane, with as much of it as a figure needs.
    Reference(Box<reference::Plan>),
}

/// Where a server keeps its objects.
#[derive(Debug, Clone, Copy)]
pub enum Keeping<'a> {
    /// Nowhere, or on a disk that it does not wait for.
    Memory,
    /// In this folder; what is acknowledged has reached the disk.
    Folder(&'a Path),
}

/// A server that answers.
#[derive(Debug)]
pub struct Running {
    process: Process,
    client: Client,
    ready_after: Duration,
}

#[derive(Debug)]
enum Process {
    Neap(Server),
    /// Killed when this value goes.
    Reference(Box<Reference>),
}

impl Subject {
    /// etcd and kube-apiserver, of this program.
    pub fn reference(program: &Path) -> Self {
        Self::Reference(Box::new(reference::Plan::new(program)))
    }

    /// The same with what ends namespaces, which `neap` does by itself.
    #[must_use]
    pub fn ending_namespaces(mut self) -> Self {
        if let Self::Reference(plan) = &mut self {
            plan.controllers = Some("namespace-controller".to_owned());
        }
        self
    }

    /// Starts it and returns once it says over the wire that it is ready.
    pub async fn start(&self, keeping: Keeping<'_>) -> Result<Running> {
        match self {
            Self::Neap(neap) => start_neap(neap, keeping).await,
            Self::Reference(plan) => start_reference(plan, keeping).await,
        }
    }
}

async fn start_neap(neap: &Path, keeping: Keeping<'_>) -> Result<Running> {
    let watch = Stopwatch::start();
    let folder = match keeping {
        Keeping::Memory => None,
        Keeping::Folder(folder) => Some(folder),
    };
    let server = Server::launch(neap, folder)?;
    let server = tokio::task::spawn_blocking(|| server.ready()).await??;
    let client = server.client()?;
    let mut connection = client.connect().await?;
    let ready = connection.send(Method::GET, "/readyz", "").await?;
    ensure!(ready.status == 200, "started, and is not ready");
    Ok(Running {
        process: Process::Neap(server),
        client,
        ready_after: watch.elapsed(),
    })
}

async fn start_reference(plan: &reference::Plan, keeping: Keeping<'_>) -> Result<Running> {
    let mut plan = plan.clone();
    if let Keeping::Folder(folder) = keeping {
        plan.folder = Some(folder.to_owned());
        plan.durable = true;
    }
    let reference = plan.start().await?;
    Ok(Running {
        client: reference.client()?,
        ready_after: reference.ready_after(),
        process: Process::Reference(Box::new(reference)),
    })
}

impl Running {
    /// A client that is let in as an administrator.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// From the start of the process to its first answer that it is ready.
    pub fn ready_after(&self) -> Duration {
        self.ready_after
    }

    /// Memory that it holds now, all its processes together.
    pub fn resident_bytes(&self) -> Result<u64> {
        match &self.process {
            Process::Neap(server) => server.resident_bytes(),
            Process::Reference(reference) => reference.resident_bytes(),
        }
    }

    /// Ends it, and waits.
    pub async fn stop(self) -> Result<()> {
        match self.process {
            Process::Neap(server) => {
                let (status, complaints) = tokio::task::spawn_blocking(|| server.stop()).await??;
                ensure!(status.success(), "it ended with {status}: {complaints}");
                Ok(())
            }
            Process::Reference(reference) => {
                drop(reference);
                Ok(())
            }
        }
    }
}
