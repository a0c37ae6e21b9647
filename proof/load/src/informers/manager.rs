//! kube-controller-manager as a process.

use std::{
    fs::{self, File},
    net::TcpListener,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result, bail};

use super::controllers;

const NAME: &str = "kube-controller-manager";

/// The identity of its controllers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControllerIdentity {
    /// All as the admin.
    Admin,
    /// Each as its own service account, with the permissions of the bootstrap roles.
    ServiceAccounts,
}

/// A running kube-controller-manager; killed when dropped.
#[derive(Debug)]
pub(super) struct Manager {
    child: Child,
    log: PathBuf,
}

impl Manager {
    /// Starts it with the files in the data folder of `neap up`; its log goes there too.
    pub(super) fn start(program: &Path, data: &Path, identity: ControllerIdentity) -> Result<Self> {
        let help = Command::new(program).arg0(NAME).arg("--help").output()?;
        controllers::all_are_named(&String::from_utf8_lossy(&help.stdout))?;
        let log = data.join(format!("{NAME}.log"));
        let file = File::create(&log)?;
        let kubeconfig = data.join("kubeconfig").display().to_string();
        let authority = data.join("identity/ca.crt").display().to_string();
        let key = data
            .join("identity/service-accounts.pem")
            .display()
            .to_string();
        let mut command = Command::new(program);
        command
            .arg0(NAME)
            .arg(format!("--kubeconfig={kubeconfig}"))
            .arg(format!("--authentication-kubeconfig={kubeconfig}"))
            .arg(format!("--authorization-kubeconfig={kubeconfig}"))
            .arg(format!("--root-ca-file={authority}"))
            .arg(format!("--service-account-private-key-file={key}"))
            .arg(format!("--controllers={}", controllers::list()))
            .arg(format!("--secure-port={}", free_port()?))
            .args(flags(identity))
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file);
        let child = command
            .spawn()
            .with_context(|| format!("cannot run {NAME}"))?;
        Ok(Self { child, log })
    }

    /// Its log so far; an error if it has ended.
    pub(super) fn log(&mut self) -> Result<String> {
        let log = fs::read_to_string(&self.log)?;
        if let Some(status) = self.child.try_wait()? {
            bail!("{NAME} ended ({status}): {log}");
        }
        Ok(log)
    }
}

fn flags(identity: ControllerIdentity) -> impl Iterator<Item = &'static str> {
    let by_identity = (identity == ControllerIdentity::ServiceAccounts)
        .then_some("--use-service-account-credentials=true");
    [
        "--bind-address=127.0.0.1",
        "--leader-elect=false",
        // The configuration of who may read its metrics is meant for aggregated servers, and there
        // are none.
        "--authentication-skip-lookup=true",
        // Quotas of extended resources count devices, which is a kind that we do not serve.
        "--feature-gates=DRAExtendedResource=false",
        // Logs which kinds the garbage collector watches.
        "--v=2",
        "--kube-api-qps=1000",
        "--kube-api-burst=1000",
        "--concurrent-gc-syncs=5",
    ]
    .into_iter()
    .chain(by_identity)
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

impl Drop for Manager {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
