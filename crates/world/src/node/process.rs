//! Processes of containers, and what they print.
//!
//! Each has a thread that starts it and waits for its end. The process dies with that thread (see
//! [`super::launch`]), so nothing is left of a node that is killed.

mod command;
mod log;
mod terminal;

use std::{
    fs::{self, OpenOptions},
    io::{self, Read, Write},
    os::{
        fd::OwnedFd,
        unix::{fs::OpenOptionsExt, process::ExitStatusExt},
    },
    path::{Path, PathBuf},
    process::{Child, Command},
    sync::Arc,
    thread,
    time::Duration,
};

use neap_kit::clock::Clock;
use nix::{
    errno::Errno,
    sys::{
        signal::{Signal, kill},
        wait::{Id, WaitPidFlag, waitid},
    },
    unistd::Pid,
};
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::{
    family,
    launch::{END, Joined, Launch},
};

pub use self::{
    command::{Attached, Exit, Streams},
    log::{Line, Lines, Log},
    terminal::Terminal,
};

/// How long what a process has printed is read after its end, while somebody else could still
/// print: one that it left behind.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Starts processes.
#[derive(Debug, Clone)]
pub struct Starter {
    /// The program that launches them: `neap` itself.
    pub launcher: PathBuf,
    /// The time.
    pub clock: Clock,
}

/// A process that was started.
#[derive(Debug, Clone)]
pub struct Running {
    /// None once it has ended, so that nobody else is meant by a number that was given anew.
    pid: Arc<Mutex<Option<Pid>>>,
    launch: Arc<Launch>,
    over: CancellationToken,
    /// Changes when it has printed something, and closes with its log.
    printed: watch::Receiver<u64>,
}

impl Running {
    fn new(launch: Launch, printed: watch::Receiver<u64>) -> Self {
        Self {
            pid: Arc::default(),
            launch: Arc::new(launch),
            over: CancellationToken::new(),
            printed,
        }
    }

    /// The number of its launcher, unless it has ended.
    pub fn id(&self) -> Option<u32> {
        (*self.pid.lock()).map(|pid| pid.as_raw().unsigned_abs())
    }

    /// Whether it has rooms of its own.
    pub fn has_rooms(&self) -> bool {
        self.launch.rooms.is_some()
    }

    /// Sends it a signal, unless it has ended. Whoever is killed takes along what it started.
    pub fn signal(&self, signal: Signal) {
        // Without a pid namespace the launcher does that, if it is asked.
        let signal = match signal {
            Signal::SIGKILL if !self.has_rooms() => END,
            signal => signal,
        };
        if let Some(pid) = *self.pid.lock() {
            // It may be ending this very moment.
            let _ = kill(pid, signal);
        }
    }

    /// Resolves once it has ended.
    pub async fn over(&self) {
        self.over.cancelled().await;
    }

    /// Changes when it has printed something, and closes when it will print no more.
    pub fn printed(&self) -> watch::Receiver<u64> {
        self.printed.clone()
    }

    /// How to run a command where it runs; nothing once it has ended.
    pub fn beside(&self, command: Vec<String>, terminal: bool) -> Option<Launch> {
        // It keeps its number while this is held.
        let pid = self.pid.lock();
        let launcher = (*pid)?.as_raw().unsigned_abs();
        let began = family::told(launcher)?.began;
        let rooms = self.launch.rooms.as_ref();
        let joins = Joined {
            launcher,
            began,
            as_root: rooms.is_some_and(|rooms| rooms.as_root),
        };
        let mut environment = self.launch.environment.clone();
        if terminal {
            let kind = environment.entry("TERM".to_owned());
            kind.or_insert_with(|| "xterm".to_owned());
        }
        Some(Launch {
            command,
            environment,
            folder: self.launch.folder.clone(),
            parent: std::process::id(),
            rooms: None,
            joins: self.has_rooms().then_some(joins),
            terminal,
            reports: false,
        })
    }
}

/// What comes of a process. It ends if this is dropped.
#[derive(Debug)]
pub struct Started {
    /// To end it.
    pub running: Running,
    /// Its exit code, once it has ended; that of a signal is 128 and its number.
    pub ended: oneshot::Receiver<i32>,
    /// What it prints; must be run for that to be kept.
    pub lines: Lines,
    /// Nobody would note its end.
    alone: Alone,
}

/// Ends a process that nobody goes with any more.
#[derive(Debug)]
struct Alone(Running);

impl Drop for Alone {
    fn drop(&mut self) {
        self.0.signal(Signal::SIGKILL);
    }
}

impl Started {
    /// Keeps what it prints until it has ended, and says with which exit code.
    pub async fn live(self, clock: Clock) -> i32 {
        let _alone = self.alone;
        let mut ended = self.ended;
        let keeping = self.lines.keep();
        tokio::pin!(keeping);
        tokio::select! {
            code = &mut ended => {
                clock.within(LAST_WORDS, keeping).await;
                code.unwrap_or(255)
            }
            // It may have closed what it prints to, and go on.
            () = &mut keeping => ended.await.unwrap_or(255),
        }
    }
}

impl Starter {
    /// Starts what `launch` says, with its description in `folder` and what it prints in `log`; or
    /// says why the command cannot be started.
    pub async fn start(
        &self,
        launch: Launch,
        folder: &Path,
        log: &Log,
    ) -> io::Result<Result<Started, String>> {
        let (starter, folder, log) = (self.clone(), folder.to_owned(), log.clone());
        let started = move || starter.start_now(launch, &folder, &log);
        tokio::task::spawn_blocking(started).await?
    }

    fn start_now(
        &self,
        launch: Launch,
        folder: &Path,
        log: &Log,
    ) -> io::Result<Result<Started, String>> {
        fs::create_dir_all(folder)?;
        let launch = Launch {
            reports: true,
            ..launch
        };
        let mut command = self.described(&launch, &folder.join("launch.json"))?;
        let (mut told, report) = io::pipe()?;
        command.stdin(report);
        let (out, out_end) = io::pipe()?;
        let (err, err_end) = io::pipe()?;
        command.stdout(out_end).stderr(err_end);
        let (lines, printed) = Lines::new(OwnedFd::from(out), OwnedFd::from(err), log, self.clock)?;
        let running = Running::new(launch, printed);
        let ended = mind(command, running.clone(), None)?;
        let started = Started {
            alone: Alone(running.clone()),
            running,
            ended,
            lines,
        };
        let mut why = String::new();
        told.read_to_string(&mut why)?;
        Ok(if why.is_empty() {
            Ok(started)
        } else {
            Err(why)
        })
    }

    /// The launcher with a description of what it is to launch, which nobody else may read: there
    /// are secrets in environments.
    fn described(&self, launch: &Launch, description: &Path) -> io::Result<Command> {
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(description)?;
        file.write_all(&serde_json::to_vec(launch)?)?;
        let mut command = Command::new(&self.launcher);
        command.arg("launch").arg(description);
        // Ctrl-C at the terminal is meant for us: containers are asked to end in another way.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        Ok(command)
    }
}

/// Starts `command` on a thread that lasts as long as it does, and then removes `file`.
fn mind(
    mut command: Command,
    running: Running,
    file: Option<PathBuf>,
) -> io::Result<oneshot::Receiver<i32>> {
    let (tell_end, ended) = oneshot::channel();
    let (tell_start, started) = std::sync::mpsc::sync_channel(1);
    let thread = thread::Builder::new().name("container".into());
    thread.spawn(move || {
        let child = command.spawn();
        // The pipes that the process writes to must have no other end.
        drop(command);
        match child {
            Ok(child) => {
                let pid = Pid::from_raw(child.id().cast_signed());
                *running.pid.lock() = Some(pid);
                let _ = tell_start.send(Ok(()));
                let _ = tell_end.send(wait(child, pid, &running));
            }
            Err(error) => drop(tell_start.send(Err(error))),
        }
        running.over.cancel();
        if let Some(file) = file {
            // Removed with the folder otherwise.
            let _ = fs::remove_file(file);
        }
    })?;
    started.recv().map_err(io::Error::other)??;
    Ok(ended)
}

fn wait(mut child: Child, pid: Pid, running: &Running) -> i32 {
    // It keeps its number until it was waited for, so that nobody else gets its signals. Whoever
    // forgets the number too early cannot end the process any more.
    let exited = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
    while let Err(Errno::EINTR) = waitid(Id::Pid(pid), exited) {}
    *running.pid.lock() = None;
    match child.wait() {
        Ok(status) => status
            .code()
            .unwrap_or_else(|| 128 + status.signal().unwrap_or(0)),
        Err(_) => 255,
    }
}
