//! A contestant as a process that can be stopped, woken, asked to end and killed.

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

use super::{Pace, history::Attempt, sight::Seen};

/// The program, and the server it is to ask.
#[derive(Debug, Clone)]
pub(super) struct Program {
    pub(super) load: PathBuf,
    pub(super) kubeconfig: PathBuf,
    pub(super) pace: Pace,
}

/// One contestant; killed if this value goes.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) identity: String,
    child: Child,
    told: JoinSet<Result<()>>,
}

impl Program {
    pub(super) fn start(&self, identity: &str, seen: &Arc<Seen>) -> Result<Process> {
        let mut child = command(&self.load, &self.kubeconfig)
            .args(["--identity", identity, "--pace", self.pace.word()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("cannot run a contestant")?;
        let stdout = child.stdout.take().context("it has no output")?;
        let mut told = JoinSet::new();
        told.spawn(listen(stdout, seen.clone()));
        Ok(Process {
            identity: identity.to_owned(),
            child,
            told,
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

async fn listen(stdout: ChildStdout, seen: Arc<Seen>) -> Result<()> {
    let mut lines = BufReader::new(stdout).lines();
    while let Some(line) = lines.next_line().await? {
        // One that is killed may leave half a line.
        if let Ok(attempt) = Attempt::read(&line) {
            seen.add(|history| history.attempts.push(attempt));
        }
    }
    Ok(())
}

impl Process {
    /// Stops it where it is, as a machine that is overwhelmed would.
    pub(super) fn stop(&self) -> Result<()> {
        self.send(Signal::SIGSTOP)
    }

    /// Lets it go on.
    pub(super) fn wake(&self) -> Result<()> {
        self.send(Signal::SIGCONT)
    }

    /// Asks it to end in order.
    pub(super) fn ask_to_end(&self) -> Result<()> {
        self.send(Signal::SIGTERM)
    }

    /// Ends it at once.
    pub(super) fn kill(&self) -> Result<()> {
        self.send(Signal::SIGKILL)
    }

    /// Waits until it has ended, and all that it told has been heard.
    pub(super) async fn ended(mut self) -> Result<()> {
        self.child.wait().await?;
        while let Some(listened) = self.told.join_next().await {
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
