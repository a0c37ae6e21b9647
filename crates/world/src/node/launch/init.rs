//! A process that looks after one other.

use std::process::{Command, ExitCode};

use nix::{
    errno::Errno,
    sys::{
        prctl,
        signal::{SigSet, Signal, kill},
        wait::{WaitPidFlag, WaitStatus, waitpid},
    },
    unistd::{Pid, getppid},
};

use super::Error;

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

/// This process is killed when the thread that started it ends, which must therefore last as long
/// as the process `parent` does. That may have ended already.
pub(super) fn die_with(parent: u32) -> Result<(), Error> {
    die_with_parent();
    if getppid().as_raw().unsigned_abs() == parent {
        Ok(())
    } else {
        Err(Error::Orphaned(parent))
    }
}

/// The same for a parent that is in another pid namespace and cannot be seen.
pub(super) fn die_with_parent() {
    // Refused for a signal that does not exist, which this one does.
    let _ = prctl::set_pdeathsig(Signal::SIGKILL);
}

/// Runs `command`, passes signals on to it, collects whatever dies below, and ends as it ends.
pub(super) fn mind(mut command: Command) -> Result<ExitCode, Error> {
    let mut signals = SigSet::from_iter(PASSED);
    signals.add(Signal::SIGCHLD);
    // Before the start, so that no signal comes too early; the child starts with none blocked.
    let _ = signals.thread_block();
    let child = command.spawn().map_err(|source| Error::Command {
        program: command.get_program().to_string_lossy().into_owned(),
        source,
    })?;
    let child = Pid::from_raw(child.id().cast_signed());
    loop {
        match signals.wait() {
            Ok(Signal::SIGCHLD) => {
                if let Some(code) = collect(child) {
                    return Ok(code.into());
                }
            }
            // One that has just ended needs no signal.
            Ok(signal) => drop(kill(child, signal)),
            Err(_) => {}
        }
    }
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
