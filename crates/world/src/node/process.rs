//! Processes of containers, and what they print.
//!
//! Each has a thread that starts it and waits for its end. The process dies with that thread (see
//! [`super::launch`]), so nothing is left of a node that is killed.

mod log;

use std::{
    collections::BTreeMap,
    fs, io,
    os::{fd::OwnedFd, unix::process::ExitStatusExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
    thread,
};

use neap_kit::clock::Clock;
use nix::{
    sys::{
        signal::{Signal, kill},
        wait::{Id, WaitPidFlag, waitid},
    },
    unistd::Pid,
};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::launch::Launch;

pub use self::log::{Line, Lines};

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
    environment: Arc<BTreeMap<String, String>>,
    has_rooms: bool,
}

impl Running {
    /// The number of its launcher, unless it has ended.
    pub fn id(&self) -> Option<u32> {
        (*self.pid.lock()).map(|pid| pid.as_raw().unsigned_abs())
    }

    /// Its environment, for commands that join it.
    pub fn environment(&self) -> &BTreeMap<String, String> {
        &self.environment
    }

    /// Whether it has rooms of its own.
    pub fn has_rooms(&self) -> bool {
        self.has_rooms
    }

    /// Sends it a signal, unless it has ended.
    pub fn signal(&self, signal: Signal) {
        if let Some(pid) = *self.pid.lock() {
            // It may be ending this very moment.
            let _ = kill(pid, signal);
        }
    }
}

/// What comes of a process.
#[derive(Debug)]
pub struct Started {
    /// To end it.
    pub running: Running,
    /// Its exit code, once it has ended; that of a signal is 128 and its number.
    pub ended: oneshot::Receiver<i32>,
    /// What it prints; must be run for that to be kept.
    pub lines: Lines,
}

impl Starter {
    /// Starts what `launch` says, with its description in `folder` and what it prints in `log`.
    pub fn start(&self, launch: &Launch, folder: &Path, log: &Path) -> io::Result<Started> {
        fs::create_dir_all(folder)?;
        let description = folder.join("launch.json");
        fs::write(&description, serde_json::to_vec(launch)?)?;
        let mut command = Command::new(&self.launcher);
        command.arg("launch").arg(description);
        command.stdin(Stdio::null());
        let (out, out_end) = io::pipe()?;
        let (err, err_end) = io::pipe()?;
        command.stdout(out_end).stderr(err_end);
        let lines = Lines::new(OwnedFd::from(out), OwnedFd::from(err), log, self.clock)?;
        let running = Running {
            pid: Arc::default(),
            environment: Arc::new(launch.environment.clone()),
            has_rooms: launch.rooms.is_some(),
        };
        let ended = mind(command, running.clone())?;
        Ok(Started {
            running,
            ended,
            lines,
        })
    }
}

/// Starts `command` on a thread that lasts as long as it does.
fn mind(mut command: Command, running: Running) -> io::Result<oneshot::Receiver<i32>> {
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
    })?;
    started.recv().map_err(io::Error::other)??;
    Ok(ended)
}

fn wait(mut child: Child, pid: Pid, running: &Running) -> i32 {
    // It keeps its number until it was waited for, so that nobody else gets its signals.
    let _ = waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT);
    *running.pid.lock() = None;
    match child.wait() {
        Ok(status) => status
            .code()
            .unwrap_or_else(|| 128 + status.signal().unwrap_or(0)),
        Err(_) => 255,
    }
}
