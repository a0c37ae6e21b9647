//! A process that goes on as two.

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

use crate::afresh;

/// Which of the two this is.
#[derive(Debug)]
pub enum Role {
    /// The one that was there before.
    Parent(Child),
    /// Its copy.
    Child(Pen),
}

/// The copy, as the original knows it.
#[derive(Debug)]
pub struct Child {
    process: Pid,
    words: PipeReader,
    limit: Duration,
}

/// So much longer than what it may use of a core a copy may take: it may have to wait for its turn.
const TURN: Duration = Duration::from_mins(5);

/// What the copy tells the original with.
pub struct Pen(PipeWriter);

/// Goes on as two processes. Refused unless the caller is the only thread of its process that does
/// anything: whatever another one holds would be held for ever in the copy.
///
/// The copy is killed once it has used `limit` of a core. Real time says little about a run, which may
/// have to wait for its turn; but one that stands still uses nothing, so it is killed if it takes
/// minutes longer. While it waits for a copy of its own that time does not count: of copies of copies
/// the one that stands still is killed, and not those that wait for it.
pub fn split(limit: Duration) -> io::Result<Role> {
    if fs::read_dir("/proc/self/task")?.count() > 1 + afresh::waiting() {
        return Err(io::Error::other(
            "a process with several threads cannot split",
        ));
    }
    let (words, pen) = io::pipe()?;
    // SAFETY: no other thread does anything, as was just seen: one may wait for this one to end, and
    // holds nothing meanwhile. So no lock is held by anybody who is not copied.
    match unsafe { fork() }? {
        ForkResult::Parent { child } => {
            drop(pen);
            Ok(Role::Parent(Child {
                process: child,
                words,
                limit,
            }))
        }
        ForkResult::Child => {
            drop(words);
            afresh::alone();
            let seconds = limit.as_secs().max(1);
            let pen = Pen(pen);
            if setrlimit(Resource::RLIMIT_CPU, seconds, seconds).is_err() {
                // It must not go on as if it were the original, nor without a limit.
                pen.finish(&[]);
            }
            alarm::set(patience(limit));
            Ok(Role::Child(pen))
        }
    }
}

impl Child {
    /// What the copy told before it ended; an error says how it ended if it was killed.
    pub fn wait(mut self) -> io::Result<Vec<u8>> {
        let left = alarm::cancel();
        let mut told = Vec::new();
        let heard = self.words.read_to_end(&mut told);
        let ended = waitpid(self.process, None);
        if let Some(left) = left {
            alarm::set(left);
        }
        heard?;
        match ended? {
            WaitStatus::Signaled(_, signal, _) => Err(io::Error::other(self.killed(signal))),
            _ => Ok(told),
        }
    }

    fn killed(&self, signal: Signal) -> String {
        let limit = self.limit;
        match signal {
            Signal::SIGALRM => format!("it stood still, and was ended after {:?}", limit + TURN),
            Signal::SIGKILL => format!("it used {limit:?} of a core without coming to an end"),
            other => format!("it was ended by {other}"),
        }
    }
}

fn patience(limit: Duration) -> u32 {
    u32::try_from((limit + TURN).as_secs()).unwrap_or(u32::MAX)
}

impl Pen {
    /// Tells `words` and ends this process at once: nothing is dropped, nothing else is run.
    pub fn finish(mut self, words: &[u8]) -> ! {
        let told = self.0.write_all(words);
        // SAFETY: ends the process without running anything of it.
        unsafe { nix::libc::_exit(i32::from(told.is_err())) }
    }
}

impl fmt::Debug for Pen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pen")
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
        let refused = split(Duration::from_secs(1)).map(drop);
        drop(end);
        assert!(other.join().is_ok());
        let refused = refused.map_err(|error| error.to_string());
        let words = "a process with several threads cannot split";
        assert_eq!(refused, Err(words.to_owned()));
    }

    #[test]
    fn how_a_copy_was_ended_is_told() -> io::Result<()> {
        let (words, _pen) = io::pipe()?;
        let child = Child {
            process: Pid::from_raw(0),
            words,
            limit: Duration::from_secs(20),
        };
        for (signal, told) in [
            (Signal::SIGALRM, "it stood still, and was ended after 320s"),
            (
                Signal::SIGKILL,
                "it used 20s of a core without coming to an end",
            ),
            (Signal::SIGSEGV, "it was ended by SIGSEGV"),
        ] {
            assert_eq!(child.killed(signal), told);
        }
        Ok(())
    }
}
