//! A candidate as a process that can be paused, resumed, terminated and killed.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
};

use anyhow::{Context, Result};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, ChildStdout, Command},
    task::JoinSet,
};

use super::{TimingsPreset, history::WriteAttempt, observer::HistoryObserver};

/// The candidate program, and the server that it connects to.
#[derive(Debug, Clone)]
pub(super) struct Program {
    pub(super) load: PathBuf,
    pub(super) kubeconfig: PathBuf,
    pub(super) pace: TimingsPreset,
}

/// A candidate; killed when dropped.
#[derive(Debug)]
pub(super) struct CandidateProcess {
    pub(super) identity: String,
    child: Child,
    reported: JoinSet<Result<()>>,
}

impl Program {
    pub(super) fn start(
        &self,
        identity: &str,
        observer: &Arc<HistoryObserver>,
    ) -> Result<CandidateProcess> {
        let mut child = command(&self.load, &self.kubeconfig)
            .args(["--identity", identity, "--pace", self.pace.word()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("cannot run a contestant")?;
        let stdout = child.stdout.take().context("it has no output")?;
        let mut reported = JoinSet::new();
        reported.spawn(listen(stdout, observer.clone()));
        Ok(CandidateProcess {
            identity: identity.to_owned(),
            child,
            reported,
        })
    }
}

fn command(load: &Path, kubeconfig: &Path) -> Command {
    let mut command = Command::new(load);
    command
        .arg("contestant")
        .arg("--kubeconfig")
        .arg(kubeconfig);
    command
}

async fn listen(stdout: ChildStdout, observer: Arc<HistoryObserver>) -> Result<()> {
    let mut lines = BufReader::new(stdout).lines();
    while let Some(line) = lines.next_line().await? {
        // A killed process may leave half a line.
        if let Ok(attempt) = WriteAttempt::read(&line) {
            observer.add(|history| history.attempts.push(attempt));
        }
    }
    Ok(())
}

impl CandidateProcess {
    /// Pauses it where it is, as an overloaded machine would.
    pub(super) fn stop(&self) -> Result<()> {
        self.send(Signal::SIGSTOP)
    }

    pub(super) fn wake(&self) -> Result<()> {
        self.send(Signal::SIGCONT)
    }

    pub(super) fn ask_to_end(&self) -> Result<()> {
        self.send(Signal::SIGTERM)
    }

    pub(super) fn kill(&self) -> Result<()> {
        self.send(Signal::SIGKILL)
    }

    /// Waits until it has ended and all its output has been read.
    pub(super) async fn ended(mut self) -> Result<()> {
        self.child.wait().await?;
        while let Some(listened) = self.reported.join_next().await {
            listened??;
        }
        Ok(())
    }

    fn send(&self, signal: Signal) -> Result<()> {
        let id = self.child.id().context("a contestant ended by itself")?;
        let id = Pid::from_raw(i32::try_from(id)?);
        kill(id, signal).with_context(|| format!("{} is gone", self.identity))
    }
}
