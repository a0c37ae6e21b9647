//! A proxy that runs as a separate process.

use std::{
    fs::File,
    io::{Read, Seek},
    net::{SocketAddr, TcpListener},
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use tokio::time::sleep;

use super::clients::HttpClient;
use crate::{process, stopwatch::Stopwatch};

/// Time for a proxy to answer after its start.
const START_TIMEOUT: Duration = Duration::from_mins(1);

/// One of the compared proxies; killed when dropped.
#[derive(Debug)]
pub(super) struct Proxy {
    pub(super) name: &'static str,
    pub(super) http: SocketAddr,
    /// Where it forwards TCP, if it does.
    pub(super) tcp: Option<Tcp>,
    running: LoggedProcess,
}

/// Addresses at which a proxy forwards TCP to the ports of a pod.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tcp {
    pub(super) echo: SocketAddr,
    pub(super) source: SocketAddr,
}

impl Proxy {
    /// Starts it, and waits until it answers.
    pub(super) async fn start(
        name: &'static str,
        command: &mut Command,
        http: SocketAddr,
        tcp: Option<Tcp>,
    ) -> Result<Self> {
        let running =
            LoggedProcess::start(command).with_context(|| format!("cannot run {name}"))?;
        Self::of(name, running, http, tcp).await
    }

    /// Wraps a running proxy, once it answers.
    pub(super) async fn of(
        name: &'static str,
        mut running: LoggedProcess,
        http: SocketAddr,
        tcp: Option<Tcp>,
    ) -> Result<Self> {
        let watch = Stopwatch::start();
        loop {
            let Err(error) = request(http).await else {
                break;
            };
            if running.has_ended() || watch.elapsed() > START_TIMEOUT {
                bail!(
                    "{name} does not answer: {error:#}\n{}",
                    running.last_output()?
                );
            }
            sleep(Duration::from_millis(50)).await;
        }
        Ok(Self {
            name,
            http,
            tcp,
            running,
        })
    }

    /// Its CPU time in seconds.
    pub(super) fn cpu_seconds(&self) -> Result<f64> {
        process::cpu_seconds_with_children(self.running.id())
    }
}

async fn request(address: SocketAddr) -> Result<()> {
    HttpClient::connect(address).await?.request().await
}

/// A process whose output is stored; killed when dropped.
#[derive(Debug)]
pub(super) struct LoggedProcess {
    child: Child,
    /// A file, because it is not read while the process runs and a pipe would fill up.
    output: File,
}

impl LoggedProcess {
    pub(super) fn start(command: &mut Command) -> Result<Self> {
        let output = tempfile::tempfile()?;
        let child = command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output.try_clone()?)
            .spawn()?;
        Ok(Self { child, output })
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// The end of its output.
    pub(super) fn last_output(&mut self) -> Result<String> {
        let mut text = Vec::new();
        self.output.rewind()?;
        self.output.read_to_end(&mut text)?;
        let from = text.len().saturating_sub(4 << 10);
        Ok(String::from_utf8_lossy(&text[from..]).into_owned())
    }
}

impl Drop for LoggedProcess {
    fn drop(&mut self) {
        // SIGTERM first, so that a process that has started others ends them.
        let id = self.child.id().to_string();
        let _ = Command::new("kill").arg(id).status();
        for _ in 0..50 {
            if self.has_ended() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A free local address.
pub(super) fn free() -> Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}
