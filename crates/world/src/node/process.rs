//! Processes of containers, and their output.
//!
//! Each process has a thread that starts it and waits for its end. The process dies with that
//! thread (see [`super::launch`]), so none is left of a node that is killed.

mod command;
mod log;
mod terminal;

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
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
use tokio::{
    io::AsyncReadExt,
    net::unix::pipe,
    sync::{oneshot, watch},
};
use tokio_util::sync::CancellationToken;

use super::{
    launch::{END_SIGNAL, JoinedContainer, Launch},
    process_tree,
};

pub use self::{
    command::{AttachedCommand, CommandExit, Streams},
    log::{ContainerLog, LogLine, OutputLogger},
    terminal::Terminal,
};

/// The name of a thread that started a container and waits for its end.
pub const CONTAINER_THREAD: &str = "container";
/// The name of a thread that runs a command in a container: of an exec, a probe or a hook.
const COMMAND_THREAD: &str = "command";

/// The time for which output is read after the end of a process, since a process that it left
/// behind could still write.
const OUTPUT_DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// The timeout of a launch until the command runs. Most take some milliseconds.
const LAUNCH_TIMEOUT: Duration = Duration::from_mins(1);
/// The maximum size of a launch's error report.
const MAX_REPORT_BYTES: u64 = 16 << 10;

/// Starts processes.
#[derive(Debug, Clone)]
pub struct ProcessStarter {
    /// The program that launches them: `neap` itself.
    pub launcher: PathBuf,
    /// The clock.
    pub clock: Clock,
}

/// A handle to a process that was started.
#[derive(Debug, Clone)]
pub struct RunningProcess {
    /// None once it has ended, so that no signal goes to a process that reuses the pid.
    pid: Arc<Mutex<Option<Pid>>>,
    launch: Arc<Launch>,
    ended_token: CancellationToken,
    /// Changes when it has written output, and closes with its log.
    printed: watch::Receiver<u64>,
}

impl RunningProcess {
    fn new(launch: Launch, printed: watch::Receiver<u64>) -> Self {
        Self {
            pid: Arc::default(),
            launch: Arc::new(launch),
            ended_token: CancellationToken::new(),
            printed,
        }
    }

    /// The pid of its launcher, unless it has ended.
    pub fn id(&self) -> Option<u32> {
        (*self.pid.lock()).map(|pid| pid.as_raw().unsigned_abs())
    }

    /// Whether it has its own namespaces.
    pub fn has_namespaces(&self) -> bool {
        self.launch.namespaces.is_some()
    }

    /// Sends it a signal, unless it has ended. `SIGKILL` also ends everything that it started.
    pub fn signal(&self, signal: Signal) {
        // Without a pid namespace the launcher does that on a signal.
        let signal = match signal {
            Signal::SIGKILL if !self.has_namespaces() => END_SIGNAL,
            signal => signal,
        };
        if let Some(pid) = *self.pid.lock() {
            // The process may be ending at this moment.
            let _ = kill(pid, signal);
        }
    }

    /// Resolves once it has ended.
    pub async fn wait_ended(&self) {
        self.ended_token.cancelled().await;
    }

    /// Changes when it has written output, and closes when it will write no more.
    pub fn printed(&self) -> watch::Receiver<u64> {
        self.printed.clone()
    }

    /// The launch of a command in the same container; none once it has ended.
    pub fn exec_launch(&self, command: Vec<String>, terminal: bool) -> Option<Launch> {
        // The pid stays valid while this lock is held.
        let pid = self.pid.lock();
        let launcher = (*pid)?.as_raw().unsigned_abs();
        let began = process_tree::stat(launcher)?.started;
        let namespaces = self.launch.namespaces.as_ref();
        let joins = JoinedContainer {
            launcher,
            began,
            as_root: namespaces.is_some_and(|namespaces| namespaces.as_root),
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
            namespaces: None,
            joins: self.has_namespaces().then_some(joins),
            terminal,
            reports: false,
        })
    }
}

/// A process with its results. The process is killed if this is dropped.
#[derive(Debug)]
pub struct StartedProcess {
    /// The handle to end it.
    pub running: RunningProcess,
    /// Its exit code, once it has ended; for a signal it is 128 plus its number.
    pub ended: oneshot::Receiver<i32>,
    /// Its output; must be polled for the output to be logged.
    pub lines: OutputLogger,
    /// Without this value no task would observe its end.
    kill_on_drop: KillOnDrop,
}

/// Kills a process that no task waits for any more.
#[derive(Debug)]
struct KillOnDrop(RunningProcess);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.signal(Signal::SIGKILL);
    }
}

impl StartedProcess {
    /// Logs its output until it has ended, and returns its exit code.
    pub async fn run_to_end(self, clock: Clock) -> i32 {
        let _kill_on_drop = self.kill_on_drop;
        let mut ended = self.ended;
        let logging = self.lines.run();
        tokio::pin!(logging);
        tokio::select! {
            code = &mut ended => {
                clock.within(OUTPUT_DRAIN_TIMEOUT, logging).await;
                code.unwrap_or(255)
            }
            // It may have closed its output and continue.
            () = &mut logging => ended.await.unwrap_or(255),
        }
    }
}

impl ProcessStarter {
    /// Starts the process of `launch`, with its description in `folder` and its output in `log`; or
    /// returns why the command cannot be started.
    pub async fn start(
        &self,
        launch: Launch,
        folder: &Path,
        log: &ContainerLog,
    ) -> io::Result<Result<StartedProcess, String>> {
        let (starter, folder, log) = (self.clone(), folder.to_owned(), log.clone());
        let started = move || starter.start_now(launch, &folder, &log);
        let (started, report) = tokio::task::spawn_blocking(started).await??;
        self.wait_for_report(started, report).await
    }

    /// Waits for the report of a launch. A launch without a report in time is killed, and so is one
    /// that the caller no longer waits for.
    async fn wait_for_report(
        &self,
        started: StartedProcess,
        report: pipe::Receiver,
    ) -> io::Result<Result<StartedProcess, String>> {
        let (mut report, mut why) = (report.take(MAX_REPORT_BYTES), Vec::new());
        let read = report.read_to_end(&mut why);
        let Some(read) = self.clock.within(LAUNCH_TIMEOUT, read).await else {
            let late = format!(
                "it was not launched within {} seconds",
                LAUNCH_TIMEOUT.as_secs()
            );
            return Err(io::Error::new(io::ErrorKind::TimedOut, late));
        };
        read?;
        Ok(if why.is_empty() {
            Ok(started)
        } else {
            Err(String::from_utf8_lossy(&why).into_owned())
        })
    }

    fn start_now(
        &self,
        launch: Launch,
        folder: &Path,
        log: &ContainerLog,
    ) -> io::Result<(StartedProcess, pipe::Receiver)> {
        fs::create_dir_all(folder)?;
        let launch = Launch {
            reports: true,
            ..launch
        };
        let mut command = self.launcher_command(&launch, &folder.join("launch.json"))?;
        let (report, report_end) = io::pipe()?;
        let report = pipe::Receiver::from_owned_fd(OwnedFd::from(report))?;
        command.stdin(report_end);
        let (out, out_end) = io::pipe()?;
        let (err, err_end) = io::pipe()?;
        command.stdout(out_end).stderr(err_end);
        let (lines, printed) =
            OutputLogger::new(OwnedFd::from(out), OwnedFd::from(err), log, self.clock)?;
        let running = RunningProcess::new(launch, printed);
        let ended = spawn_and_wait(CONTAINER_THREAD, command, running.clone(), None)?;
        let started = StartedProcess {
            kill_on_drop: KillOnDrop(running.clone()),
            running,
            ended,
            lines,
        };
        Ok((started, report))
    }

    /// The launcher with the launch description, which only this user may read: environments
    /// contain secrets.
    fn launcher_command(&self, launch: &Launch, description: &Path) -> io::Result<Command> {
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(description)?;
        file.write_all(&serde_json::to_vec(launch)?)?;
        let mut command = Command::new(&self.launcher);
        command.arg("launch").arg(description);
        // Ctrl-C at the terminal is meant for the node, which stops containers itself.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        Ok(command)
    }
}

/// Starts `command` on a thread called `name` that waits for its end, and then removes `file`.
fn spawn_and_wait(
    name: &str,
    mut command: Command,
    running: RunningProcess,
    file: Option<PathBuf>,
) -> io::Result<oneshot::Receiver<i32>> {
    let (end_sender, ended) = oneshot::channel();
    let (start_sender, started) = std::sync::mpsc::sync_channel(1);
    let thread = thread::Builder::new().name(name.to_owned());
    thread.spawn(move || {
        let child = command.spawn();
        // The pipes that the process writes to must have no other open end.
        drop(command);
        match child {
            Ok(child) => {
                let pid = Pid::from_raw(child.id().cast_signed());
                *running.pid.lock() = Some(pid);
                let _ = start_sender.send(Ok(()));
                let _ = end_sender.send(wait(child, pid, &running));
            }
            Err(error) => drop(start_sender.send(Err(error))),
        }
        running.ended_token.cancel();
        if let Some(file) = file {
            // Removed with the folder otherwise.
            let _ = fs::remove_file(file);
        }
    })?;
    started.recv().map_err(io::Error::other)??;
    Ok(ended)
}

fn wait(mut child: Child, pid: Pid, running: &RunningProcess) -> i32 {
    // The pid stays reserved until the process is reaped, so that no other process gets its
    // signals. If the pid were cleared before the exit, the process could not be killed any more.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_launch_that_hangs_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let starter = ProcessStarter {
            // `yes` prints forever and keeps the report pipe open.
            launcher: "yes".into(),
            clock: Clock::system(),
        };
        let launch = Launch {
            command: vec!["true".into()],
            environment: [].into(),
            folder: None,
            parent: std::process::id(),
            namespaces: None,
            joins: None,
            terminal: false,
            reports: false,
        };
        let log = ContainerLog::of(folder.path());
        let (started, report) = starter.start_now(launch, folder.path(), &log).unwrap();
        let running = started.running.clone();
        assert!(running.id().is_some());
        let late = starter.wait_for_report(started, report).await.unwrap_err();
        assert_eq!(late.to_string(), "it was not launched within 60 seconds");
        tokio::time::resume();
        let over = tokio::time::timeout(Duration::from_mins(1), running.wait_ended());
        over.await.expect("it is ended");
    }
}
