//! A command in a container, with its streams.

use std::{
    fs, io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    pin::Pin,
    process::{Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
};

use nix::sys::signal::Signal;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::unix::pipe::{Receiver, Sender},
    sync::{oneshot, watch},
};

use super::{COMMAND_THREAD, ProcessStarter, RunningProcess, Terminal, spawn_and_wait};
use crate::node::launch::Launch;

/// Numbers the description files of concurrent commands.
static COMMANDS: AtomicU64 = AtomicU64::new(0);

/// The streams to attach. A terminal has one for all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Streams {
    /// Standard input.
    pub stdin: bool,
    /// Standard output.
    pub stdout: bool,
    /// Standard error.
    pub stderr: bool,
}

/// A running command with its streams.
pub struct AttachedCommand {
    /// Its standard input, closed when this is dropped.
    pub stdin: Option<Pin<Box<dyn AsyncWrite + Send>>>,
    /// Its standard output.
    pub stdout: Option<Pin<Box<dyn AsyncRead + Send>>>,
    /// Its standard error.
    pub stderr: Option<Pin<Box<dyn AsyncRead + Send>>>,
    /// Its terminal, if it has one.
    pub terminal: Option<Terminal>,
    /// Its end.
    pub exit: CommandExit,
}

/// The end of a command. Dropping it kills the command.
#[derive(Debug)]
pub struct CommandExit {
    running: RunningProcess,
    host: RunningProcess,
    ended: oneshot::Receiver<i32>,
}

impl CommandExit {
    /// The exit code; the command is killed when the container ends.
    pub async fn code(mut self) -> i32 {
        let host = self.host.clone();
        tokio::select! {
            biased;
            code = &mut self.ended => return code.unwrap_or(255),
            () = host.wait_ended() => self.running.signal(Signal::SIGKILL),
        }
        (&mut self.ended).await.unwrap_or(255)
    }
}

impl Drop for CommandExit {
    fn drop(&mut self) {
        self.running.signal(Signal::SIGKILL);
    }
}

impl ProcessStarter {
    /// Runs a command in the container of `host`, with its description in `folder`; none if that
    /// has ended.
    pub async fn command(
        &self,
        host: &RunningProcess,
        command: Vec<String>,
        folder: &Path,
        streams: Streams,
        terminal: bool,
    ) -> io::Result<Option<AttachedCommand>> {
        let Some(launch) = host.exec_launch(command, terminal) else {
            return Ok(None);
        };
        let (starter, host, folder) = (self.clone(), host.clone(), folder.join("commands"));
        let started = move || starter.command_now(launch, host, &folder, streams);
        tokio::task::spawn_blocking(started).await?.map(Some)
    }

    fn command_now(
        &self,
        launch: Launch,
        host: RunningProcess,
        folder: &Path,
        streams: Streams,
    ) -> io::Result<AttachedCommand> {
        fs::create_dir_all(folder)?;
        let number = COMMANDS.fetch_add(1, Ordering::Relaxed);
        let description: PathBuf = folder.join(format!("{number}.json"));
        let mut command = self.launcher_command(&launch, &description)?;
        let ends = if launch.terminal {
            StreamEnds::of_terminal(&mut command, streams)?
        } else {
            StreamEnds::of_pipes(&mut command, streams)?
        };
        // Only the holder of its streams reads its output.
        let running = RunningProcess::new(launch, watch::channel(0).1);
        let ended = spawn_and_wait(COMMAND_THREAD, command, running.clone(), Some(description))?;
        let exit = CommandExit {
            running,
            host,
            ended,
        };
        Ok(AttachedCommand {
            stdin: ends.stdin,
            stdout: ends.stdout,
            stderr: ends.stderr,
            terminal: ends.terminal,
            exit,
        })
    }
}

/// The node's ends of the streams.
#[derive(Default)]
struct StreamEnds {
    stdin: Option<Pin<Box<dyn AsyncWrite + Send>>>,
    stdout: Option<Pin<Box<dyn AsyncRead + Send>>>,
    stderr: Option<Pin<Box<dyn AsyncRead + Send>>>,
    terminal: Option<Terminal>,
}

impl StreamEnds {
    fn of_terminal(command: &mut Command, streams: Streams) -> io::Result<Self> {
        let (near, far) = Terminal::open()?;
        command.stdin(far.try_clone()?);
        command.stdout(far.try_clone()?);
        command.stderr(far);
        Ok(Self {
            stdin: streams.stdin.then(|| Box::pin(near.clone()) as _),
            stdout: streams.stdout.then(|| Box::pin(near.clone()) as _),
            stderr: None,
            terminal: Some(near),
        })
    }

    fn of_pipes(command: &mut Command, streams: Streams) -> io::Result<Self> {
        let mut ends = Self::default();
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if streams.stdin {
            let (theirs, ours) = io::pipe()?;
            command.stdin(theirs);
            ends.stdin = Some(Box::pin(Sender::from_owned_fd(OwnedFd::from(ours))?));
        }
        if streams.stdout {
            let (ours, theirs) = io::pipe()?;
            command.stdout(theirs);
            ends.stdout = Some(Box::pin(Receiver::from_owned_fd(OwnedFd::from(ours))?));
        }
        if streams.stderr {
            let (ours, theirs) = io::pipe()?;
            command.stderr(theirs);
            ends.stderr = Some(Box::pin(Receiver::from_owned_fd(OwnedFd::from(ours))?));
        }
        Ok(ends)
    }
}

impl std::fmt::Debug for AttachedCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AttachedCommand")
            .field("exit", &self.exit)
            .finish_non_exhaustive()
    }
}
