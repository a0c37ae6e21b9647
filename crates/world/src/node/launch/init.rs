//! A process that looks after one other.

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

use super::{Error, HERE, OWN, report::Report};
use crate::node::family;

/// What the exit code says of whoever was killed.
const KILLED: u8 = 137;

/// What is passed on.
const PASSED: [Signal; 7] = [
    Signal::SIGTERM,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGHUP,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGWINCH,
];

/// Tells a launcher to end everything that came of it, and then itself. One that does not know how
/// yet ends at once, and has started nothing.
pub(in crate::node) const END: Signal = Signal::SIGPWR;

/// This process gets `signal` when the thread that started it ends, which must therefore last as
/// long as the process `parent` does. That may have ended already.
pub(super) fn die_with(parent: u32, signal: Signal) -> Result<(), Error> {
    // Refused for a signal that does not exist, which these do.
    let _ = prctl::set_pdeathsig(signal);
    if getppid().as_raw().unsigned_abs() == parent {
        Ok(())
    } else {
        Err(Error::Orphaned(parent))
    }
}

/// The same for a process in a pid namespace from which its launcher cannot be seen. The machine sees
/// both.
pub(super) fn die_with_launcher(launcher: &str) -> Result<(), Error> {
    let _ = prctl::set_pdeathsig(Signal::SIGKILL);
    let status = fs::read_to_string(Path::new(OWN).join("status")).unwrap_or_default();
    let mut lines = status.lines();
    let parent = lines.find_map(|line| line.strip_prefix("PPid:"));
    if parent.is_some_and(|parent| parent.trim() == launcher) {
        Ok(())
    } else {
        Err(Error::Orphaned(launcher.parse().unwrap_or(0)))
    }
}

/// The number of this process, as the machine has it.
pub(super) fn own_number() -> PathBuf {
    fs::read_link(OWN).unwrap_or_default()
}

/// Whoever loses its parent somewhere below becomes a child of this process, and stays in reach.
pub(super) fn adopt() {
    let _ = prctl::set_child_subreaper(true);
}

/// Makes the terminal that standard input is the one of this process, so that its keys send signals.
pub(super) fn own_terminal() {
    // Refused only to whoever has one already.
    let _ = setsid();
    let _ = ioctl_tiocsctty(io::stdin());
}

/// Takes signals as they come, those first that were held back.
pub(super) fn unblock_signals() {
    let _ = SigSet::empty().thread_set_mask();
}

/// What becomes of those that are left when the command has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// They go with the pid namespace.
    Gone,
    /// They are ended one by one.
    Ended,
}

/// Runs `command`, which is given the `report`, passes signals on to it, collects whatever dies
/// below, and ends as it ends.
pub(super) fn mind(
    command: Command,
    left: Left,
    report: &mut Option<Report>,
) -> Result<ExitCode, Error> {
    let mut signals = SigSet::from_iter(PASSED);
    signals.add(Signal::SIGCHLD);
    signals.add(END);
    // Before the start, so that no signal comes too early. The child has them blocked as well, until
    // it says otherwise.
    let _ = signals.thread_block();
    let child = start(command, report)?;
    if left == Left::Gone {
        // Those who share the pid namespace are not to find the machine's processes by way of us.
        let _ = chdir("/");
    }
    loop {
        match signals.wait() {
            Ok(Signal::SIGCHLD) => {
                if let Some(code) = collect(child) {
                    end_all(left);
                    return Ok(code.into());
                }
            }
            Ok(END) => {
                end_all(left);
                return Ok(KILLED.into());
            }
            // One that has just ended needs no signal.
            Ok(signal) => drop(kill(child, signal)),
            Err(_) => {}
        }
    }
}

/// Starts `command`, after which only that has the report.
fn start(mut command: Command, report: &mut Option<Report>) -> Result<Pid, Error> {
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

/// Collects everybody who has died; the exit code of `child` if it is among them.
fn collect(child: Pid) -> Option<u8> {
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

/// Everything below a process, stopped, so that nobody starts another one in the meantime: in the
/// rooms of a container, that one would belong to the container once its parent is gone.
fn held_below(own: u32) -> BTreeSet<u32> {
    let mut held = BTreeSet::new();
    loop {
        let before = held.len();
        for process in family::below(Path::new(HERE), own) {
            if held.insert(process) {
                signal(process, Signal::SIGSTOP);
            }
        }
        if held.len() == before {
            return held;
        }
    }
}

fn signal(process: u32, signal: Signal) {
    // One that has just ended needs none.
    let _ = kill(Pid::from_raw(process.cast_signed()), signal);
}

/// Ends whatever is left below this process.
fn end_all(left: Left) {
    let own = std::process::id();
    // Numbers from elsewhere mean somebody else.
    let is_known = own_number().as_os_str() == own.to_string().as_str();
    if left == Left::Gone || !is_known {
        return;
    }
    loop {
        for process in held_below(own) {
            signal(process, Signal::SIGKILL);
        }
        // Each death may bring orphans, which are found in the next round.
        if let Err(Errno::ECHILD) = waitpid(None, None) {
            return;
        }
    }
}
