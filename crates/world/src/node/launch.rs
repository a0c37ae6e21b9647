//! Starts a process of a container in rooms of its own.
//!
//! The binary runs itself again to do this. What runs then is no server: it enters user, mount,
//! pid, ipc and host name namespaces, which Linux allows without root, builds a root folder of bind
//! mounts in which a container's volumes are at their places, and starts the command under a small
//! init that passes signals on and collects the dead.
//!
//! Invariants:
//! - nothing that was started outlives whoever asked for it, not even if that is killed: each
//!   process here dies with its parent, and the last of them takes the pid namespace along. Without
//!   one the launcher is told that its parent died, and ends everything below it first;
//! - the command finds the environment it was given and nothing of ours;
//! - a command that joins a container runs in its rooms or not at all.

mod init;
mod namespaces;
mod report;
mod rights;
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

use nix::{
    sys::signal::Signal,
    unistd::{close, fchdir},
};
use rustix::io::{FdFlags, fcntl_setfd};
use serde::{Deserialize, Serialize};

pub(super) use self::init::END;
use self::{init::Left, report::Report};
use super::family;

/// What the exit code says if the command could not be started at all.
const NOT_STARTED: u8 = 127;
/// How the outer process tells the inner one what to run: the number of an open file. The text itself
/// may be too long for a variable. The command sees neither.
const INSIDE: &str = "NEAP_LAUNCH";
/// How it tells who it is.
const OUTSIDE: &str = "NEAP_LAUNCHER";
/// How the first process of a pid namespace tells the one that turns into the command.
const LAST: &str = "NEAP_LAUNCH_LAST";

/// Where a launch finds the machine's processes, in whatever rooms it is: it works in that folder.
/// What is called `/proc` may show those of a container alone.
const HERE: &str = ".";
/// And itself.
const OWN: &str = "self";

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// Program and arguments.
    pub command: Vec<String>,
    /// All of its environment.
    pub environment: BTreeMap<String, String>,
    /// Where it starts; the root folder if nothing is said.
    pub folder: Option<PathBuf>,
    /// Who asked for it: if that process is no longer there, nothing is started.
    pub parent: u32,
    /// Its rooms; without them it runs as a plain process of the machine.
    pub rooms: Option<Rooms>,
    /// A container whose rooms it shares, in place of ones of its own.
    pub joins: Option<Joined>,
    /// Whether its standard streams are a terminal that is to be its own.
    #[serde(default)]
    pub terminal: bool,
    /// Whether its standard input is a pipe that says why it could not be started, and ends once it
    /// was. The command itself finds nothing there.
    #[serde(default)]
    pub reports: bool,
}

/// A container by its launcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joined {
    /// The number of the launcher.
    pub launcher: u32,
    /// When that began, in ticks since the machine did: a number is given anew, this is not.
    pub began: u64,
    /// Whether it is root of the machine.
    #[serde(default)]
    pub as_root: bool,
}

/// Namespaces of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rooms {
    /// An empty folder over which the root is built; nobody else sees what is there.
    pub root: PathBuf,
    /// What is at which place.
    pub mounts: Vec<Mount>,
    /// Who it is inside; outside it is whoever started it.
    pub user: u32,
    /// Its group inside.
    pub group: u32,
    /// What the machine is called inside.
    pub host_name: String,
    /// Whether `/proc` shows its own processes and no others. Not every machine allows that.
    #[serde(default)]
    pub own_proc: bool,
    /// Whether it is root of the machine, with no more rights than containers usually have, and not
    /// only inside. Only root can grant that.
    #[serde(default)]
    pub as_root: bool,
}

/// A file or folder of the machine at another place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Where it is on the machine.
    pub from: PathBuf,
    /// Where it is to be inside.
    pub to: PathBuf,
    /// Whether it can only be read there.
    pub read_only: bool,
}

/// Why the command was not started.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The description cannot be used.
    #[error("what to launch cannot be read from {path}")]
    Description {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// There is nobody to run it for.
    #[error("the process that asked for this, {0}, is gone")]
    Orphaned(u32),
    /// There is nothing to join.
    #[error("the container has ended")]
    Over,
    /// The machine does not allow namespaces, or not these.
    #[error("namespaces of its own are refused: {action}")]
    Namespaces {
        /// What was tried.
        action: &'static str,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The root could not be built.
    #[error("{path} could not be put in its place")]
    Root {
        /// What it is about.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The command is not there, or cannot be run.
    #[error("{program} could not be started")]
    Command {
        /// Which program.
        program: String,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// Runs what the file at `description` says, and ends as that ends.
pub fn run(description: &Path) -> Result<ExitCode, Error> {
    let mut report = None;
    let done = match std::env::var(INSIDE) {
        Ok(number) => inside(&number, &mut report),
        Err(_) => outside(description, &mut report),
    };
    if let (Err(error), Some(report)) = (&done, report) {
        report.tell(&error.in_full());
    }
    done
}

impl Launch {
    fn is_root(&self) -> bool {
        let own = self.rooms.as_ref().is_some_and(|rooms| rooms.as_root);
        own || self.joins.is_some_and(|container| container.as_root)
    }
}

impl Error {
    /// What happened, and all that led to it.
    pub fn in_full(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        text
    }
}

/// The exit code of a launch that came to nothing.
pub fn not_started() -> ExitCode {
    NOT_STARTED.into()
}

fn outside(description: &Path, report: &mut Option<Report>) -> Result<ExitCode, Error> {
    let unreadable = |source| Error::Description {
        path: description.to_owned(),
        source,
    };
    // It stays open: where the others run, the file may not be found by its name.
    let file = File::open(description).map_err(unreadable)?;
    fcntl_setfd(&file, FdFlags::empty()).map_err(|error| unreadable(error.into()))?;
    let launch: Launch = read(&file).map_err(unreadable)?;
    *report = Report::of(&launch)?;
    let machine = at(family::PROC, File::open(family::PROC))?;
    // In a pid namespace everything goes when its first process goes; elsewhere somebody has to
    // see to it.
    let (at_end, left) = if launch.rooms.is_some() {
        (Signal::SIGKILL, Left::Gone)
    } else {
        init::adopt();
        (END, Left::Ended)
    };
    init::die_with(launch.parent, at_end)?;
    match (&launch.rooms, launch.joins) {
        (Some(rooms), _) => {
            namespaces::enter(rooms)?;
            root::build(&rooms.root, &rooms.mounts)?;
            rights::keep_to_mount(rooms)?;
        }
        (None, Some(container)) => namespaces::join(container)?,
        (None, None) => {}
    }
    at(family::PROC, fchdir(&machine).map_err(io::Error::from))?;
    // Other namespaces may come with other rights, and the wish to die is not kept across those.
    init::die_with(launch.parent, at_end)?;
    let mut again = again(&file.as_raw_fd().to_string());
    again.env(OUTSIDE, init::own_number());
    init::mind(again, left, report)
}

fn read(file: &File) -> io::Result<Launch> {
    serde_json::from_reader(BufReader::new(file)).map_err(io::Error::other)
}

/// This program once more, with what to launch.
fn again(number: &str) -> Command {
    let mut again = Command::new(Path::new(OWN).join("exe"));
    again.arg0("neap").args(["launch", "inside"]);
    again.env_clear().env(INSIDE, number);
    again
}

/// In the rooms: the first process there, or one that turns into the command.
fn inside(number: &str, report: &mut Option<Report>) -> Result<ExitCode, Error> {
    let is_last = std::env::var_os(LAST).is_some();
    if !is_last {
        init::die_with_launcher(&std::env::var(OUTSIDE).unwrap_or_default())?;
    }
    // Opened anew, so that each reads from the begin.
    let path = Path::new(OWN).join("fd").join(number);
    let read = File::open(&path).and_then(|file| read(&file));
    let launch = read.map_err(|source| Error::Description { path, source })?;
    *report = Report::of(&launch)?;
    if let Some(rooms) = launch.rooms.as_ref().filter(|_| !is_last) {
        namespaces::show_own_processes(rooms)?;
        rights::give_up_to_mount();
        let mut last = again(number);
        last.env(LAST, "1");
        return init::mind(last, Left::Gone, report);
    }
    if launch.terminal {
        init::own_terminal();
    }
    if launch.is_root() {
        rights::give_up()?;
    }
    // Nothing of ours is left to the command.
    let _ = number.parse().map(close::<RawFd>);
    let mut command = command(&launch);
    // Whoever waits for signals has blocked them, and what it starts has them blocked, too.
    init::unblock_signals();
    // The wish to die with the launcher is kept.
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
