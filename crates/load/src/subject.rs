//! A server that figures are taken of: ours, or the real control plane beside it.
//!
//! Both are started, spoken to and ended in the same words, so that no figure can favour one.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Result, ensure};
use http::Method;

use crate::{client::Client, server::Server, stopwatch::Stopwatch};

/// What is measured.
#[derive(Debug, Clone)]
pub enum Subject {
    /// `neap up`, of this program.
    Neap(PathBuf),
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
}

impl Subject {
    /// Starts it and returns once it says over the wire that it is ready.
    pub async fn start(&self, keeping: Keeping<'_>) -> Result<Running> {
        let watch = Stopwatch::start();
        let process = match self {
            Self::Neap(neap) => {
                let folder = match keeping {
                    Keeping::Memory => None,
                    Keeping::Folder(folder) => Some(folder),
                };
                let server = Server::launch(neap, folder)?;
                Process::Neap(tokio::task::spawn_blocking(|| server.ready()).await??)
            }
        };
        let client = process.client()?;
        let mut connection = client.connect().await?;
        let ready = connection.send(Method::GET, "/readyz", "").await?;
        ensure!(ready.status == 200, "started, and is not ready");
        Ok(Running {
            process,
            client,
            ready_after: watch.elapsed(),
        })
    }
}

impl Process {
    fn client(&self) -> Result<Client> {
        match self {
            Self::Neap(server) => server.client(),
        }
    }
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
        }
    }

    /// Asks it to stop, and waits.
    pub async fn stop(self) -> Result<()> {
        match self.process {
            Process::Neap(server) => {
                let (status, complaints) =
                    tokio::task::spawn_blocking(|| server.stop()).await??;
                ensure!(status.success(), "it ended with {status}: {complaints}");
                Ok(())
            }
        }
    }
}
