//! A command beside a container, with its streams in somebody's hand.

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

use super::{COMMAND_THREAD, Running, Starter, Terminal, mind};
use crate::node::launch::Launch;

/// Tells descriptions apart that are there at the same time.
static COMMANDS: AtomicU64 = AtomicU64::new(0);

/// Which streams somebody wants to have. A terminal has one for all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Streams {
    /// To be written to.
    pub stdin: bool,
    /// To be read.
    pub stdout: bool,
    /// To be read.
    pub stderr: bool,
}

/// A command that runs, by its ends.
pub struct Attached {
    /// What it reads; nothing more comes once this is dropped.
    pub stdin: Option<Pin<Box<dyn AsyncWrite + Send>>>,
    /// What it prints.
    pub stdout: Option<Pin<Box<dyn AsyncRead + Send>>>,
    /// What it complains about.
    pub stderr: Option<Pin<Box<dyn AsyncRead + Send>>>,
    /// Its terminal, if it has one.
    pub terminal: Option<Terminal>,
    /// Its end.
    pub exit: Exit,
}

/// The end of a command. Whoever drops it wants the command to end.
#[derive(Debug)]
pub struct Exit {
    running: Running,
    host: Running,
    ended: oneshot::Receiver<i32>,
}

impl Exit {
    /// The exit code, once it has ended, at the latest when the container has.
    pub async fn code(mut self) -> i32 {
        let host = self.host.clone();
        tokio::select! {
            biased;
            code = &mut self.ended => return code.unwrap_or(255),
            () = host.over() => self.running.signal(Signal::SIGKILL),
        }
        (&mut self.ended).await.unwrap_or(255)
    }
}

impl Drop for Exit {
    fn drop(&mut self) {
        self.running.signal(Signal::SIGKILL);
    }
}

impl Starter {
    /// Runs a command where `host` runs, with its description in `folder`; nothing if that has
    /// ended.
    pub async fn command(
        &self,
        host: &Running,
        command: Vec<String>,
        folder: &Path,
        streams: Streams,
        terminal: bool,
    ) -> io::Result<Option<Attached>> {
        let Some(launch) = host.beside(command, terminal) else {
            return Ok(None);
        };
        let (starter, host, folder) = (self.clone(), host.clone(), folder.join("commands"));
        let started = move || starter.command_now(launch, host, &folder, streams);
        tokio::task::spawn_blocking(started).await?.map(Some)
    }

    fn command_now(
        &self,
        launch: Launch,
        host: Running,
        folder: &Path,
        streams: Streams,
    ) -> io::Result<Attached> {
        fs::create_dir_all(folder)?;
        let number = COMMANDS.fetch_add(1, Ordering::Relaxed);
        let description: PathBuf = folder.join(format!("{number}.json"));
        let mut command = self.described(&launch, &description)?;
        let ends = if launch.terminal {
            Ends::of_terminal(&mut command, streams)?
        } else {
            Ends::of_pipes(&mut command, streams)?
        };
        // Nobody follows what it prints but whoever holds its streams.
        let running = Running::new(launch, watch::channel(0).1);
        let ended = mind(COMMAND_THREAD, command, running.clone(), Some(description))?;
        let exit = Exit {
            running,
            host,
            ended,
        };
        Ok(Attached {
            stdin: ends.stdin,
            stdout: ends.stdout,
            stderr: ends.stderr,
            terminal: ends.terminal,
            exit,
        })
    }
}

/// Our ends of the streams.
#[derive(Default)]
struct Ends {
    stdin: Option<Pin<Box<dyn AsyncWrite + Send>>>,
    stdout: Option<Pin<Box<dyn AsyncRead + Send>>>,
    stderr: Option<Pin<Box<dyn AsyncRead + Send>>>,
    terminal: Option<Terminal>,
}

impl Ends {
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

impl std::fmt::Debug for Attached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attached")
            .field("exit", &self.exit)
            .finish_non_exhaustive()
    }
}
