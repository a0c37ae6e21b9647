//! A proxy that runs as a separate process.

use std::{net::SocketAddr, process::Command, time::Duration};

use anyhow::{Context, Result, bail};
use tokio::time::sleep;

use super::clients::HttpClient;
use crate::{logged_process::LoggedProcess, process, stopwatch::Stopwatch};

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
