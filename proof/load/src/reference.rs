//! The real control plane, started and ended from outside, to compare ours with.
//!
//! It is one program (`cargo xtask` builds it from `tests/reference/kubernetes`) that becomes etcd,
//! kube-apiserver or kube-controller-manager by the name it is called by. Everything it needs is
//! created in one folder; all its processes end with the value that started them.

mod identity;
mod processes;
mod tokens;

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use http::Method;
use tempfile::TempDir;

pub use self::tokens::Token;
use self::{
    identity::IdentityFiles,
    processes::{ControlPlaneProcess, Ports},
};
use crate::{
    client::Client, kubeconfig::Kubeconfig, process::resident_bytes, stopwatch::Stopwatch,
};

/// Time for the control plane to become ready.
const READY_TIMEOUT: Duration = Duration::from_secs(90);
/// Interval of the readiness polls.
const READY_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Ports that are free when they are chosen may be taken when they are used.
const START_ATTEMPTS: usize = 3;

/// How to start a control plane.
#[derive(Debug, Clone)]
pub struct ReferenceOptions {
    /// The program with the many names.
    pub program: PathBuf,
    /// The folder of its files; existing files are reused. A temporary folder if none is named.
    pub folder: Option<PathBuf>,
    /// Whether etcd waits for the disk.
    pub durable: bool,
    /// The controllers to run, as for `--controllers`; none by default.
    pub controllers: Option<String>,
    /// Users besides the admin.
    pub tokens: Vec<Token>,
    /// Further flags of kube-apiserver.
    pub apiserver_flags: Vec<String>,
}

impl ReferenceOptions {
    /// An empty server without controllers that does not wait for the disk.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            folder: None,
            durable: false,
            controllers: None,
            tokens: Vec::new(),
            apiserver_flags: Vec::new(),
        }
    }

    /// Starts it and waits until it is ready.
    pub async fn start(&self) -> Result<Reference> {
        let mut last = None;
        for _ in 0..START_ATTEMPTS {
            match self.start_once().await {
                Ok(reference) => return Ok(reference),
                Err(error) if format!("{error:#}").contains("address already in use") => {
                    last = Some(error);
                }
                Err(error) => return Err(error),
            }
        }
        Err(last.context("never tried")?)
    }

    async fn start_once(&self) -> Result<Reference> {
        let (folder, temporary) = self.folder()?;
        let ports = Ports::free()?;
        let identity = IdentityFiles::open(&folder, &self.tokens)?;
        let base = format!("https://127.0.0.1:{}", ports.api);
        identity.write_kubeconfig(&base)?;
        let start = processes::ProcessStarter::new(self, &folder, ports)?;
        let watch = Stopwatch::start();
        let mut reference = Reference {
            processes: vec![start.etcd()?, start.apiserver()?],
            base,
            ready_after: Duration::ZERO,
            identity,
            folder: folder.clone(),
            _temporary: temporary,
        };
        reference.wait_until_ready(watch).await?;
        reference.ready_after = watch.elapsed();
        if let Some(controllers) = &self.controllers {
            // It ends first, because otherwise it logs nothing but that the others are gone.
            reference
                .processes
                .insert(0, start.controllers(controllers)?);
        }
        Ok(reference)
    }

    fn folder(&self) -> Result<(PathBuf, Option<TempDir>)> {
        let Some(folder) = &self.folder else {
            let temporary = tempfile::Builder::new().prefix("reference-").tempdir()?;
            return Ok((temporary.path().to_owned(), Some(temporary)));
        };
        fs::create_dir_all(folder)?;
        Ok((folder.canonicalize()?, None))
    }
}

/// A running control plane; killed when dropped.
#[derive(Debug)]
pub struct Reference {
    /// In the order in which they end.
    processes: Vec<ControlPlaneProcess>,
    base: String,
    ready_after: Duration,
    identity: IdentityFiles,
    folder: PathBuf,
    /// Removed after the processes that use it are gone.
    _temporary: Option<TempDir>,
}

impl Reference {
    /// The base URL of the API, as `https://127.0.0.1:PORT`.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// The certificate authority, in PEM.
    pub fn authority(&self) -> &str {
        self.identity.authority()
    }

    /// A file with the certificate authority.
    pub fn authority_file(&self) -> PathBuf {
        self.folder.join(identity::AUTHORITY)
    }

    /// The token of a member of `system:masters`.
    pub fn admin_token(&self) -> &'static str {
        tokens::ADMIN
    }

    /// The kubeconfig of the admin.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.join(identity::KUBECONFIG)
    }

    /// A client of the admin.
    pub fn client(&self) -> Result<Client> {
        Client::new(&Kubeconfig::read(&self.kubeconfig())?)
    }

    /// The time from the start of etcd until the API is ready.
    pub fn ready_after(&self) -> Duration {
        self.ready_after
    }

    /// The names and pids of its processes.
    pub fn processes(&self) -> impl Iterator<Item = (&'static str, u32)> {
        self.processes.iter().map(ControlPlaneProcess::name_and_id)
    }

    /// Resident memory of etcd and kube-apiserver.
    pub fn resident_bytes(&self) -> Result<u64> {
        let stores = self.processes();
        let stores = stores.filter(|(name, _)| *name != processes::CONTROLLERS);
        stores.map(|(_, id)| resident_bytes(id)).sum()
    }

    /// The folder of its state, its certificates and its logs (`NAME.log`).
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The log of one of its processes so far.
    pub fn log(&self, process: &str) -> Result<String> {
        let path = self.folder.join(format!("{process}.log"));
        fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
    }

    async fn wait_until_ready(&mut self, watch: Stopwatch) -> Result<()> {
        let client = self.client()?;
        while watch.elapsed() < READY_TIMEOUT {
            if is_ready(&client).await {
                return Ok(());
            }
            for process in &mut self.processes {
                process.must_run()?;
            }
            tokio::time::sleep(READY_POLL_INTERVAL).await;
        }
        let log = self.folder.display();
        bail!("kube-apiserver is not ready after {READY_TIMEOUT:?}; its log is in {log}")
    }
}

async fn is_ready(client: &Client) -> bool {
    let Ok(mut connection) = client.connect().await else {
        return false;
    };
    let answer = connection.send(Method::GET, "/readyz", "").await;
    answer.is_ok_and(|answer| answer.status == 200)
}
