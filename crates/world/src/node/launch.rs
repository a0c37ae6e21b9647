//! Starts a process of a container in its own namespaces.
//!
//! The binary re-executes itself to do this. The new process is no server: it enters user, mount,
//! pid, ipc and uts namespaces, which Linux allows without root, builds a root folder of bind
//! mounts with the container's volumes in place, and starts the command under a small init that
//! forwards signals and reaps zombies.
//!
//! Invariants:
//! - no process outlives the node that requested it, not even if the node is killed: each process
//!   here dies with its parent, and the last of them takes the pid namespace along. Without a pid
//!   namespace the launcher is signalled when its parent dies, and first kills all its descendants;
//! - the command gets the specified environment and nothing of the launcher's;
//! - a command that joins a container runs in its namespaces or not at all.

mod capabilities;
mod init;
mod namespaces;
mod report;
mod root;

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufReader},
    os::{
        fd::{AsRawFd, RawFd},
        unix::process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use neap_kit::why::chain;
use nix::{
    sys::signal::Signal,
    unistd::{close, fchdir},
};
use rustix::io::{FdFlags, fcntl_setfd};
use serde::{Deserialize, Serialize};

pub(super) use self::init::END_SIGNAL;
use self::{init::Descendants, report::StartReport};
use super::process_tree;

/// The exit code if the command could not be started.
const NOT_STARTED: u8 = 127;
/// The variable that passes the launch description to the inner process: the number of an open
/// file, because the text itself may be too long for a variable. The command does not see it.
const DESCRIPTION_FD_VAR: &str = "NEAP_LAUNCH";
/// The variable with the pid of the outer process.
const LAUNCHER_PID_VAR: &str = "NEAP_LAUNCHER";
/// The variable that marks the process that becomes the command.
const FINAL_STAGE_VAR: &str = "NEAP_LAUNCH_LAST";

/// The procfs of the machine, in whatever namespaces the process is: it is the working directory.
/// `/proc` itself may show only the processes of a container.
const PROC_DIR: &str = ".";
/// The entry of the process itself in it.
const PROC_SELF: &str = "self";

/// The description of a process to launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Its complete environment.
    pub environment: BTreeMap<String, String>,
    /// The working directory; the root folder if none is given.
    pub folder: Option<PathBuf>,
    /// The pid of the requesting process: if it is gone, nothing is started.
    pub parent: u32,
    /// Its namespaces; without them it runs as a plain process of the machine.
    #[serde(rename = "rooms")]
    pub namespaces: Option<ContainerNamespaces>,
    /// A container whose namespaces it joins instead of creating its own.
    pub joins: Option<JoinedContainer>,
    /// Whether its standard streams are a terminal that becomes its controlling terminal.
    #[serde(default)]
    pub terminal: bool,
    /// Whether its standard input is a pipe to which the launcher writes why the command could not
    /// be started, and which closes once it runs. The command itself gets an empty input.
    #[serde(default)]
    pub reports: bool,
}

/// A container, identified by its launcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinedContainer {
    /// The pid of the launcher.
    pub launcher: u32,
    /// Its start time in ticks since boot: a pid is reused, this is not.
    pub began: u64,
    /// Whether the container is root of the machine.
    #[serde(default)]
    pub as_root: bool,
}

/// The namespaces and the root of a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerNamespaces {
    /// An empty folder on which the root is mounted, visible only inside.
    pub root: PathBuf,
    /// The bind mounts.
    pub mounts: Vec<Mount>,
    /// Its user inside; outside it is the user of the launcher.
    pub user: u32,
    /// Its group inside.
    pub group: u32,
    /// Its host name.
    pub host_name: String,
    /// Whether `/proc` shows only its own processes. Not every machine allows that.
    #[serde(default)]
    pub own_proc: bool,
    /// Whether it is root of the machine, with only the usual capabilities of containers. Only root
    /// can grant that.
    #[serde(default)]
    pub as_root: bool,
}

/// A bind mount of a file or folder of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// The path on the machine.
    pub from: PathBuf,
    /// The part of it that is mounted, which may not lead out of it.
    #[serde(default)]
    pub part: Option<PathBuf>,
    /// The path inside.
    pub to: PathBuf,
    /// Whether it is mounted read-only.
    pub read_only: bool,
}

impl Mount {
    /// A mount that can be written to.
    pub fn new(from: PathBuf, to: PathBuf) -> Self {
        Self {
            from,
            part: None,
            to,
            read_only: false,
        }
    }
}

/// Why the command was not started.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The description cannot be read.
    #[error("the launch description cannot be read from {path}")]
    Description {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The requesting process is gone.
    #[error("the requesting process {0} is gone")]
    Orphaned(u32),
    /// The container to join has ended.
    #[error("the container has ended")]
    Over,
    /// The machine does not allow namespaces, or not these.
    #[error("namespaces are not permitted: {action}")]
    Namespaces {
        /// The attempted action.
        action: &'static str,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The root could not be built.
    #[error("{path} could not be mounted")]
    Root {
        /// The path that failed.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The command does not exist, or cannot be run.
    #[error("{program} could not be started")]
    Command {
        /// The program.
        program: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

/// Runs the process described in the file at `description`, and exits with its exit code.
pub fn run(description: &Path) -> Result<ExitCode, Error> {
    let mut report = None;
    let done = match std::env::var(DESCRIPTION_FD_VAR) {
        Ok(number) => inside(&number, &mut report),
        Err(_) => outside(description, &mut report),
    };
    if let (Err(error), Some(report)) = (&done, report) {
        report.send(&chain(error));
    }
    done
}

impl Launch {
    fn is_root(&self) -> bool {
        let own = self
            .namespaces
            .as_ref()
            .is_some_and(|namespaces| namespaces.as_root);
        own || self.joins.is_some_and(|container| container.as_root)
    }
}

/// The exit code of a failed launch.
pub fn not_started() -> ExitCode {
    NOT_STARTED.into()
}

fn outside(description: &Path, report: &mut Option<StartReport>) -> Result<ExitCode, Error> {
    let unreadable = |source| Error::Description {
        path: description.to_owned(),
        source,
    };
    // It stays open: the inner processes may not find the file by its path.
    let file = File::open(description).map_err(unreadable)?;
    fcntl_setfd(&file, FdFlags::empty()).map_err(|error| unreadable(error.into()))?;
    let launch: Launch = read(&file).map_err(unreadable)?;
    *report = StartReport::of(&launch)?;
    let machine = at(process_tree::PROC, File::open(process_tree::PROC))?;
    // In a pid namespace all processes die with its first process; without one the launcher has to
    // kill them.
    let (at_end, descendants) = if launch.namespaces.is_some() {
        (Signal::SIGKILL, Descendants::DieWithNamespace)
    } else {
        init::become_subreaper();
        (END_SIGNAL, Descendants::KillEach)
    };
    init::die_with(launch.parent, at_end)?;
    match (&launch.namespaces, launch.joins) {
        (Some(namespaces), _) => {
            namespaces::enter(namespaces)?;
            root::build(&namespaces.root, &namespaces.mounts)?;
            capabilities::keep_mount_capability(namespaces)?;
        }
        (None, Some(container)) => namespaces::join(container)?,
        (None, None) => {}
    }
    at(
        process_tree::PROC,
        fchdir(&machine).map_err(io::Error::from),
    )?;
    // Entering namespaces may change credentials, which clears the parent death signal.
    init::die_with(launch.parent, at_end)?;
    let mut command = reexec(&file.as_raw_fd().to_string());
    command.env(LAUNCHER_PID_VAR, init::own_pid());
    init::supervise(command, descendants, report)
}

fn read(file: &File) -> io::Result<Launch> {
    serde_json::from_reader(BufReader::new(file)).map_err(io::Error::other)
}

/// This program again, with the launch description.
fn reexec(number: &str) -> Command {
    let mut command = Command::new(Path::new(PROC_SELF).join("exe"));
    command.arg0("neap").args(["launch", "inside"]);
    command.env_clear().env(DESCRIPTION_FD_VAR, number);
    command
}

/// Inside the namespaces: the first process there, or the one that becomes the command.
fn inside(number: &str, report: &mut Option<StartReport>) -> Result<ExitCode, Error> {
    let is_last = std::env::var_os(FINAL_STAGE_VAR).is_some();
    if !is_last {
        init::die_with_launcher(&std::env::var(LAUNCHER_PID_VAR).unwrap_or_default())?;
    }
    // Opened anew, so that each process reads from the start.
    let path = Path::new(PROC_SELF).join("fd").join(number);
    let read = File::open(&path).and_then(|file| read(&file));
    let launch = read.map_err(|source| Error::Description { path, source })?;
    *report = StartReport::of(&launch)?;
    if let Some(namespaces) = launch.namespaces.as_ref().filter(|_| !is_last) {
        namespaces::show_own_processes(namespaces)?;
        capabilities::drop_mount_capability();
        let mut last = reexec(number);
        last.env(FINAL_STAGE_VAR, "1");
        return init::supervise(last, Descendants::DieWithNamespace, report);
    }
    if launch.terminal {
        init::own_terminal();
    }
    if launch.is_root() {
        capabilities::drop_capabilities()?;
    }
    // No file of the launcher is left to the command.
    let _ = number.parse().map(close::<RawFd>);
    let mut command = command(&launch);
    // The supervising process has blocked the signals it waits for, and its children inherit that.
    init::unblock_signals();
    // The parent death signal is kept across exec.
    let source = command.exec();
    Err(Error::Command {
        program: command.get_program().to_string_lossy().into_owned(),
        source,
    })
}

fn at<T>(path: &str, done: io::Result<T>) -> Result<T, Error> {
    done.map_err(|source| Error::Root {
        path: path.into(),
        source,
    })
}

fn command(launch: &Launch) -> Command {
    let (program, arguments) = launch
        .command
        .split_first()
        .map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .envs(&launch.environment);
    command.current_dir(launch.folder.as_deref().unwrap_or(Path::new("/")));
    command
}
