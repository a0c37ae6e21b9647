//! A `neap up` that is measured.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail};

use crate::{process, stopwatch::Stopwatch};

/// A server in memory, on a free port; stopped when this value goes.
pub(super) struct Up {
    child: Child,
    ready_after: Duration,
}

impl Up {
    /// Starts it and waits until it says that it is ready.
    pub(super) fn start(neap: &Path) -> Result<Self> {
        let watch = Stopwatch::start();
        let mut child = Command::new(neap)
            .args(["up", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot run {}", neap.display()))?;
        let stdout = child.stdout.take().context("neap up has no output")?;
        for line in BufReader::new(stdout).lines() {
            if line?.starts_with("Ready in ") {
                let ready_after = watch.elapsed();
                return Ok(Self { child, ready_after });
            }
        }
        bail!("neap up ended before it was ready ({})", child.wait()?);
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn ready_after(&self) -> Duration {
        self.ready_after
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        // Asked rather than killed, so that it removes its private folder.
        let id = self.child.id().to_string();
        if process::run(Command::new("kill").arg(&id)).is_err() {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}
