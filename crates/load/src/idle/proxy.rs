//! A proxy that runs as a process of its own.

use std::{
    fs::File,
    io::{Read, Seek},
    net::{SocketAddr, TcpListener},
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use tokio::time::sleep;

use super::clients::Client;
use crate::{process, stopwatch::Stopwatch};

/// What does not answer after this long never will.
const PATIENCE: Duration = Duration::from_mins(1);

/// One of those that are compared; killed if this value goes.
#[derive(Debug)]
pub(super) struct Proxy {
    pub(super) name: &'static str,
    /// Where it answers over HTTP.
    pub(super) http: SocketAddr,
    /// Where it carries bytes, if it does.
    pub(super) tcp: Option<Tcp>,
    running: Running,
}

/// Where a proxy leads to the ports of a pod that do not speak HTTP.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tcp {
    pub(super) echo: SocketAddr,
    pub(super) source: SocketAddr,
}

impl Proxy {
    /// Starts it, and returns once it answers.
    pub(super) async fn start(
        name: &'static str,
        command: &mut Command,
        http: SocketAddr,
        tcp: Option<Tcp>,
    ) -> Result<Self> {
        let running = Running::start(command).with_context(|| format!("cannot run {name}"))?;
        Self::of(name, running, http, tcp).await
    }

    /// One that runs already, once it answers.
    pub(super) async fn of(
        name: &'static str,
        mut running: Running,
        http: SocketAddr,
        tcp: Option<Tcp>,
    ) -> Result<Self> {
        let watch = Stopwatch::start();
        loop {
            let Err(error) = ask(http).await else {
                break;
            };
            if running.has_ended() || watch.elapsed() > PATIENCE {
                bail!(
                    "{name} does not answer: {error:#}\n{}",
                    running.complaints()?
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

    /// Seconds that it has worked.
    pub(super) fn worked(&self) -> Result<f64> {
        process::worked_by_all(self.running.id())
    }
}

async fn ask(address: SocketAddr) -> Result<()> {
    Client::connect(address).await?.ask().await
}

/// A process whose words are kept; killed if this value goes.
#[derive(Debug)]
pub(super) struct Running {
    child: Child,
    /// A file, because nobody reads it while the process runs and a pipe would fill up.
    words: File,
}

impl Running {
    pub(super) fn start(command: &mut Command) -> Result<Self> {
        let words = tempfile::tempfile()?;
        let child = command
            .stdin(Stdio::null())
            .stdout(words.try_clone()?)
            .stderr(words.try_clone()?)
            .spawn()?;
        Ok(Self { child, words })
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// The last of what it has written.
    pub(super) fn complaints(&mut self) -> Result<String> {
        let mut text = Vec::new();
        self.words.rewind()?;
        self.words.read_to_end(&mut text)?;
        let from = text.len().saturating_sub(4 << 10);
        Ok(String::from_utf8_lossy(&text[from..]).into_owned())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Asked first: one that has started others ends them.
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

/// An address of this machine where nobody listens.
pub(super) fn free() -> Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}
