//! A process that runs beside the measurement.

use std::{
    fs::File,
    io::{Read, Seek},
    net::{SocketAddr, TcpListener},
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use neap_kit::{client::Client, clock::Clock};
use tokio::time::sleep;

use crate::stopwatch::Stopwatch;

/// Time to wait for a process to answer.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// The largest answer that is read.
const MAX_ANSWER: usize = 1 << 20;

/// An address at which nothing listens.
pub(crate) fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

/// A process; killed when dropped.
pub(crate) struct BackgroundProcess {
    child: Child,
    stderr: File,
    http: Client,
    address: SocketAddr,
}

impl BackgroundProcess {
    /// Starts a process that serves HTTP at `address`.
    pub(crate) fn start(command: &mut Command, address: SocketAddr) -> Result<Self> {
        let stderr = tempfile::tempfile()?;
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr.try_clone()?)
            .spawn()
            .with_context(|| format!("cannot run {}", command.get_program().display()))?;
        Ok(Self {
            child,
            stderr,
            http: Client::builder("bench", Clock::system()).build()?,
            address,
        })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until `path` answers with 200.
    pub(crate) async fn ready(&mut self, path: &str, timeout: Duration) -> Result<()> {
        let watch = Stopwatch::start();
        loop {
            let answer = self.http.get(format!("http://{}{path}", self.address));
            if let Ok(answer) = answer.fetch(MAX_ANSWER).await
                && answer.status == http::StatusCode::OK
            {
                return Ok(());
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("it ended ({status}): {}", self.complaints()?);
            }
            if watch.elapsed() > timeout.max(START_TIMEOUT) {
                bail!("{path} is not answered: {}", self.complaints()?);
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// The sum of the metrics whose line begins with `prefix`.
    pub(crate) async fn metric(&self, prefix: &str) -> Result<f64> {
        let answer = self.http.get(format!("http://{}/metrics", self.address));
        let answer = answer.fetch(MAX_ANSWER).await?.success()?;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        let lines = text.lines().filter(|line| line.starts_with(prefix));
        let values = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        Ok(values.sum())
    }

    /// Its stderr so far.
    pub(super) fn complaints(&mut self) -> Result<String> {
        let mut text = String::new();
        self.stderr.rewind()?;
        self.stderr.read_to_string(&mut text)?;
        let start = text.len().saturating_sub(2000);
        Ok(text.get(start..).unwrap_or_default().to_owned())
    }
}

impl Drop for BackgroundProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
