//! The init of a container: a process that supervises one child.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use nix::{
    errno::Errno,
    sys::{
        prctl,
        signal::{SigSet, Signal, kill},
        wait::{WaitPidFlag, WaitStatus, waitpid},
    },
    unistd::{Pid, chdir, getppid, setsid},
};

use rustix::process::ioctl_tiocsctty;

use super::{Error, PROC_DIR, PROC_SELF, report::StartReport};
use crate::node::process_tree;

/// The exit code of a killed process.
const KILLED: u8 = 137;

/// The signals that are forwarded to the child.
const FORWARDED: [Signal; 7] = [
    Signal::SIGTERM,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGHUP,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGWINCH,
];

/// The signal on which a launcher kills all its descendants, and then itself. One that does not
/// handle it yet ends at once, and has started nothing.
pub(in crate::node) const END_SIGNAL: Signal = Signal::SIGPWR;

/// Sets the signal that this process gets when the thread that started it ends; that thread must
/// therefore last as long as the process `parent`. Fails if the parent has ended already.
pub(super) fn die_with(parent: u32, signal: Signal) -> Result<(), Error> {
    // Fails only for an invalid signal, which these are not.
    let _ = prctl::set_pdeathsig(signal);
    if getppid().as_raw().unsigned_abs() == parent {
        Ok(())
    } else {
        Err(Error::Orphaned(parent))
    }
}

/// The same for a process in a pid namespace from which its launcher cannot be seen; the machine's
/// procfs shows both.
pub(super) fn die_with_launcher(launcher: &str) -> Result<(), Error> {
    let _ = prctl::set_pdeathsig(Signal::SIGKILL);
    let status = fs::read_to_string(Path::new(PROC_SELF).join("status")).unwrap_or_default();
    let mut lines = status.lines();
    let parent = lines.find_map(|line| line.strip_prefix("PPid:"));
    if parent.is_some_and(|parent| parent.trim() == launcher) {
        Ok(())
    } else {
        Err(Error::Orphaned(launcher.parse().unwrap_or(0)))
    }
}

/// The pid of this process on the machine.
pub(super) fn own_pid() -> PathBuf {
    fs::read_link(PROC_SELF).unwrap_or_default()
}

/// Makes this process the subreaper: descendants that lose their parent become its children and
/// stay in reach.
pub(super) fn become_subreaper() {
    let _ = prctl::set_child_subreaper(true);
}

/// Makes the terminal on standard input the controlling terminal of this process, so that its keys
/// send signals.
pub(super) fn own_terminal() {
    // Fails only for a session leader.
    let _ = setsid();
    let _ = ioctl_tiocsctty(io::stdin());
}

/// Unblocks all signals; pending ones are delivered first.
pub(super) fn unblock_signals() {
    let _ = SigSet::empty().thread_set_mask();
}

/// How remaining descendants end when the command has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Descendants {
    /// They die with the pid namespace.
    DieWithNamespace,
    /// They are killed one by one.
    KillEach,
}

/// Runs `command`, which inherits the `report`, forwards signals to it, reaps zombies, and exits
/// with its exit code.
pub(super) fn supervise(
    command: Command,
    descendants: Descendants,
    report: &mut Option<StartReport>,
) -> Result<ExitCode, Error> {
    let mut signals = SigSet::from_iter(FORWARDED);
    signals.add(Signal::SIGCHLD);
    signals.add(END_SIGNAL);
    // Blocked before the start, so that no signal comes too early. The child inherits the mask
    // until it unblocks them.
    let _ = signals.thread_block();
    let child = start(command, report)?;
    if descendants == Descendants::DieWithNamespace {
        // Processes of the pid namespace must not find the machine's procfs through this process.
        let _ = chdir("/");
    }
    loop {
        match signals.wait() {
            Ok(Signal::SIGCHLD) => {
                if let Some(code) = reap(child) {
                    kill_descendants(descendants);
                    return Ok(code.into());
                }
            }
            Ok(END_SIGNAL) => {
                kill_descendants(descendants);
                return Ok(KILLED.into());
            }
            // The child may have just ended.
            Ok(signal) => drop(kill(child, signal)),
            Err(_) => {}
        }
    }
}

/// Starts `command`, after which only the child holds the report.
fn start(mut command: Command, report: &mut Option<StartReport>) -> Result<Pid, Error> {
    let given = report
        .as_ref()
        .map_or(Ok(()), |report| report.give(&mut command));
    let child = given.and_then(|()| command.spawn());
    let child = child.map_err(|source| Error::Command {
        program: command.get_program().to_string_lossy().into_owned(),
        source,
    })?;
    *report = None;
    Ok(Pid::from_raw(child.id().cast_signed()))
}

/// Reaps all children that have ended; returns the exit code of `child` if it is among them.
fn reap(child: Pid) -> Option<u8> {
    let mut code = None;
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(pid, status)) if pid == child => {
                code = Some(u8::try_from(status & 0xff).unwrap_or(u8::MAX));
            }
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == child => {
                code = u8::try_from(128 + signal as i32).ok();
            }
            Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => return code,
            Ok(_) | Err(_) => {}
        }
    }
}

/// Stops and returns all descendants of a process, so that none starts another one in the meantime:
/// in the namespaces of a container, that one would become the container's once its parent is gone.
fn stop_descendants(own: u32) -> BTreeSet<u32> {
    let mut stopped = BTreeSet::new();
    loop {
        let before = stopped.len();
        for process in process_tree::descendants(Path::new(PROC_DIR), own) {
            if stopped.insert(process) {
                signal(process, Signal::SIGSTOP);
            }
        }
        if stopped.len() == before {
            return stopped;
        }
    }
}

fn signal(process: u32, signal: Signal) {
    // The process may have just ended.
    let _ = kill(Pid::from_raw(process.cast_signed()), signal);
}

/// Kills all remaining descendants of this process.
fn kill_descendants(descendants: Descendants) {
    let own = std::process::id();
    // Pids of another pid namespace would name other processes.
    let is_own_namespace = own_pid().as_os_str() == own.to_string().as_str();
    if descendants == Descendants::DieWithNamespace || !is_own_namespace {
        return;
    }
    loop {
        for process in stop_descendants(own) {
            signal(process, Signal::SIGKILL);
        }
        // Each death may leave orphans, which are found in the next round.
        if let Err(Errno::ECHILD) = waitpid(None, None) {
            return;
        }
    }
}
