//! The processes of a control plane and their flags.

use std::{
    fs::{self, File},
    net::TcpListener,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result, bail};

use super::{
    ReferenceOptions,
    identity::{ACCOUNTS, AUTHORITY, KUBECONFIG, SERVING, TOKENS},
};

const ETCD: &str = "etcd";
const APISERVER: &str = "kube-apiserver";
pub(super) const CONTROLLERS: &str = "kube-controller-manager";
/// Lines of a log that are shown when its process has ended.
const MAX_LOG_LINES: usize = 20;

/// The ports of each part.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ports {
    pub(super) api: u16,
    etcd: u16,
    peer: u16,
    controllers: u16,
}

impl Ports {
    /// Free ports. All are bound until the last is known, so that none is chosen twice.
    pub(super) fn free() -> Result<Self> {
        let held: Vec<TcpListener> = (0..4)
            .map(|_| TcpListener::bind("127.0.0.1:0"))
            .collect::<Result<_, _>>()?;
        let port = |index: usize| Ok::<u16, std::io::Error>(held[index].local_addr()?.port());
        Ok(Self {
            api: port(0)?,
            etcd: port(1)?,
            peer: port(2)?,
            controllers: port(3)?,
        })
    }
}

/// What the processes are started from.
#[derive(Debug)]
pub(super) struct ProcessStarter<'a> {
    plan: &'a ReferenceOptions,
    folder: &'a Path,
    ports: Ports,
}

impl<'a> ProcessStarter<'a> {
    /// Links the program under its names.
    pub(super) fn new(plan: &'a ReferenceOptions, folder: &'a Path, ports: Ports) -> Result<Self> {
        let program = plan
            .program
            .canonicalize()
            .with_context(|| format!("there is no {}", plan.program.display()))?;
        for name in [ETCD, APISERVER, CONTROLLERS] {
            let link = folder.join(name);
            if link.symlink_metadata().is_ok() {
                fs::remove_file(&link)?;
            }
            symlink(&program, link)?;
        }
        Ok(Self {
            plan,
            folder,
            ports,
        })
    }

    pub(super) fn etcd(&self) -> Result<ControlPlaneProcess> {
        let clients = format!("http://127.0.0.1:{}", self.ports.etcd);
        let peers = format!("http://127.0.0.1:{}", self.ports.peer);
        let mut command = self.command(ETCD);
        command
            // Not named after the program, whose link is in the same folder.
            .arg(format!("--data-dir={}", self.file("etcd-data")))
            .arg(format!("--listen-client-urls={clients}"))
            .arg(format!("--advertise-client-urls={clients}"))
            .arg(format!("--listen-peer-urls={peers}"))
            .arg(format!("--initial-advertise-peer-urls={peers}"))
            .arg(format!("--initial-cluster=default={peers}"))
            .arg("--log-level=error");
        if !self.plan.durable {
            command.arg("--unsafe-no-fsync");
        }
        self.spawn(ETCD, &mut command)
    }

    pub(super) fn apiserver(&self) -> Result<ControlPlaneProcess> {
        let mut command = self.command(APISERVER);
        command
            .arg(format!(
                "--etcd-servers=http://127.0.0.1:{}",
                self.ports.etcd
            ))
            .arg(format!("--secure-port={}", self.ports.api))
            .arg(format!("--token-auth-file={}", self.file(TOKENS)))
            .arg(format!("--client-ca-file={}", self.file(AUTHORITY)))
            .arg(format!("--tls-cert-file={}", self.file(SERVING[0])))
            .arg(format!("--tls-private-key-file={}", self.file(SERVING[1])))
            .arg(format!(
                "--service-account-signing-key-file={}",
                self.file(ACCOUNTS[0])
            ))
            .arg(format!(
                "--service-account-key-file={}",
                self.file(ACCOUNTS[1])
            ))
            .args([
                "--service-account-issuer=https://kubernetes.default.svc",
                "--bind-address=127.0.0.1",
                "--authorization-mode=RBAC",
                "--service-cluster-ip-range=10.0.0.0/24",
                "--allow-privileged",
                "--endpoint-reconciler-type=none",
            ])
            .args(&self.plan.apiserver_flags);
        self.spawn(APISERVER, &mut command)
    }

    pub(super) fn controllers(&self, controllers: &str) -> Result<ControlPlaneProcess> {
        let kubeconfig = self.file(KUBECONFIG);
        let mut command = self.command(CONTROLLERS);
        command
            .arg(format!("--kubeconfig={kubeconfig}"))
            .arg(format!("--authentication-kubeconfig={kubeconfig}"))
            .arg(format!("--authorization-kubeconfig={kubeconfig}"))
            .arg(format!("--controllers={controllers}"))
            .arg(format!("--secure-port={}", self.ports.controllers))
            .arg(format!("--root-ca-file={}", self.file(AUTHORITY)))
            .arg(format!(
                "--service-account-private-key-file={}",
                self.file(ACCOUNTS[0])
            ))
            .args([
                "--leader-elect=false",
                "--bind-address=127.0.0.1",
                // Its default limits are meant for shared clusters.
                "--kube-api-qps=1000",
                "--kube-api-burst=1000",
            ]);
        self.spawn(CONTROLLERS, &mut command)
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(self.folder.join(name));
        command.current_dir(self.folder);
        command
    }

    fn file(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    fn spawn(&self, name: &'static str, command: &mut Command) -> Result<ControlPlaneProcess> {
        let log = self.folder.join(format!("{name}.log"));
        let file = File::create(&log)?;
        let child = command
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .with_context(|| format!("cannot run {name}"))?;
        Ok(ControlPlaneProcess { name, child, log })
    }
}

/// A running process; killed when dropped.
#[derive(Debug)]
pub(super) struct ControlPlaneProcess {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl ControlPlaneProcess {
    pub(super) fn name_and_id(&self) -> (&'static str, u32) {
        (self.name, self.child.id())
    }

    /// Fails with the end of its log if it has ended.
    pub(super) fn must_run(&mut self) -> Result<()> {
        let Some(status) = self.child.try_wait()? else {
            return Ok(());
        };
        let log = fs::read_to_string(&self.log)?;
        let lines: Vec<&str> = log.lines().collect();
        let last = &lines[lines.len().saturating_sub(MAX_LOG_LINES)..];
        bail!("{} ended ({status}): {}", self.name, last.join("\n"))
    }
}

impl Drop for ControlPlaneProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
