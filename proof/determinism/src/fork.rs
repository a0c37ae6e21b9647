//! Forks a process and returns the child's result to the parent.

use std::{
    fmt, fs,
    io::{self, PipeReader, PipeWriter, Read, Write},
    time::Duration,
};

use nix::{
    sys::{
        resource::{Resource, setrlimit},
        signal::Signal,
        wait::{WaitStatus, waitpid},
    },
    unistd::{ForkResult, Pid, alarm, fork},
};

use crate::fresh_thread;

/// The side of the fork that the caller is on.
#[derive(Debug)]
pub enum Role {
    Parent(Child),
    Child(ResultWriter),
}

/// A forked process, as seen by its parent.
#[derive(Debug)]
pub struct Child {
    process: Pid,
    pipe: PipeReader,
    limit: Duration,
}

/// Real time that a child may take beyond its CPU time, because it may have to wait for a core.
const SCHEDULING_GRACE: Duration = Duration::from_mins(5);

/// The child's end of the pipe to its parent.
pub struct ResultWriter(PipeWriter);

/// Forks this process. Refused unless the caller is the only thread that does anything: a lock that
/// another thread holds would stay locked in the child for ever.
///
/// The child is killed once it has used `limit` of CPU time. Real time says little about a run,
/// which may have to wait for a core; but a child that hangs uses no CPU time, so it is also killed
/// if it takes minutes longer. The time in which a child waits for a child of its own does not
/// count: of nested children the one that hangs is killed, and not those that wait for it.
pub fn fork_child(limit: Duration) -> io::Result<Role> {
    if fs::read_dir("/proc/self/task")?.count() > 1 + fresh_thread::waiting() {
        return Err(io::Error::other(
            "a process with several threads cannot fork",
        ));
    }
    let (pipe, writer) = io::pipe()?;
    // SAFETY: no other thread does anything, as was just checked: one may wait for this one to end,
    // and holds nothing meanwhile. So no lock is held by a thread that is not copied.
    match unsafe { fork() }? {
        ForkResult::Parent { child } => {
            drop(writer);
            Ok(Role::Parent(Child {
                process: child,
                pipe,
                limit,
            }))
        }
        ForkResult::Child => {
            drop(pipe);
            fresh_thread::forked();
            let seconds = limit.as_secs().max(1);
            let writer = ResultWriter(writer);
            if setrlimit(Resource::RLIMIT_CPU, seconds, seconds).is_err() {
                // The child must not go on as if it were the parent, nor without a limit.
                writer.finish(&[]);
            }
            alarm::set(wall_clock_limit(limit));
            Ok(Role::Child(writer))
        }
    }
}

impl Child {
    /// The child's result; the error says how the child was killed.
    pub fn wait(mut self) -> io::Result<Vec<u8>> {
        let left = alarm::cancel();
        let mut result = Vec::new();
        let read = self.pipe.read_to_end(&mut result);
        let ended = waitpid(self.process, None);
        if let Some(left) = left {
            alarm::set(left);
        }
        read?;
        match ended? {
            WaitStatus::Signaled(_, signal, _) => Err(io::Error::other(self.killed(signal))),
            _ => Ok(result),
        }
    }

    fn killed(&self, signal: Signal) -> String {
        let limit = self.limit;
        match signal {
            Signal::SIGALRM => format!(
                "it hung, and was killed after {:?}",
                limit + SCHEDULING_GRACE
            ),
            Signal::SIGKILL => format!("it used {limit:?} of CPU time without ending"),
            other => format!("it was killed by {other}"),
        }
    }
}

fn wall_clock_limit(limit: Duration) -> u32 {
    u32::try_from((limit + SCHEDULING_GRACE).as_secs()).unwrap_or(u32::MAX)
}

impl ResultWriter {
    /// Sends the result and ends this process at once: nothing is dropped, nothing else runs.
    pub fn finish(mut self, result: &[u8]) -> ! {
        let sent = self.0.write_all(result);
        // SAFETY: ends the process without running anything of it.
        unsafe { nix::libc::_exit(i32::from(sent.is_err())) }
    }
}

impl fmt::Debug for ResultWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResultWriter")
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, thread};

    use super::*;

    #[test]
    fn a_process_with_others_at_work_is_not_copied() {
        let (end, wait) = mpsc::sync_channel::<()>(0);
        let other = thread::spawn(move || wait.recv());
        let refused = fork_child(Duration::from_secs(1)).map(drop);
        drop(end);
        assert!(other.join().is_ok());
        let refused = refused.map_err(|error| error.to_string());
        let pipe = "a process with several threads cannot fork";
        assert_eq!(refused, Err(pipe.to_owned()));
    }

    #[test]
    fn how_a_copy_was_ended_is_told() -> io::Result<()> {
        let (pipe, _pen) = io::pipe()?;
        let child = Child {
            process: Pid::from_raw(0),
            pipe,
            limit: Duration::from_secs(20),
        };
        for (signal, result) in [
            (Signal::SIGALRM, "it hung, and was killed after 320s"),
            (Signal::SIGKILL, "it used 20s of CPU time without ending"),
            (Signal::SIGSEGV, "it was killed by SIGSEGV"),
        ] {
            assert_eq!(child.killed(signal), result);
        }
        Ok(())
    }
}
